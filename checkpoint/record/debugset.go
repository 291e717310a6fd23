//go:build linux && amd64

package record

import (
	"vplay/checkpoint"
	"vplay/loader/image"
)

// A debugger reads what the program itself need never have touched: symbol
// and unwind tables, headers, notes. While the program still stands, at the end
// of the recording, those pages are read, which brings them in, and kept as
// pages of their files.

// liveMemory is the program's memory for the loader.
type liveMemory struct{ t *tracer }

// ReadMemory implements image.Memory. What stands behind the end of a file
// ends the read.
func (m liveMemory) ReadMemory(addr uint64, b []byte) int { return m.t.readMem(addr, b) }

// keepDebuggerSet keeps the pages of files that debuggers read. Pages that
// belong to the address are in the final image already; at an execve, the same for the image that ends.
func (t *tracer) keepDebuggerSet(f *checkpoint.Final) error {
	b := make([]byte, checkpoint.PageSize)
	for _, r := range image.DebuggerSet(f.Maps, f.Contexts, liveMemory{t}) {
		for _, m := range t.maps.overlap(r.Start, r.End) {
			if m.Object == 0 || !m.private() || t.objs.list[m.Object-1].Kind != checkpoint.ObjectFile {
				continue
			}
			start, end := max(m.Start, r.Start), min(m.End, r.End)
			for a := start; a < end; a += checkpoint.PageSize {
				t.readMem(a, b)
			}
			if err := t.captureFilePages(start, end); err != nil {
				return err
			}
		}
	}
	return t.keepSectionTables(f)
}

// ReadFile implements image.FileReader.
func (m liveMemory) ReadFile(object uint32, off uint64, b []byte) int {
	for _, g := range m.t.maps.all() {
		if g.Object != object {
			continue
		}
		f, done, err := m.t.openMapped(&g)
		if err != nil {
			return 0
		}
		defer done()
		n, _ := f.ReadAt(b, int64(off)) // a short read is one
		return n
	}
	return 0
}

// keepSectionTables keeps the pages that hold the section tables of the modules,
// which no mapping shows: from the files, as long as they are what they were when they were mapped.
func (t *tracer) keepSectionTables(f *checkpoint.Final) error {
	live := liveMemory{t}
	for _, p := range image.SectionTablePages(f.Maps, live) {
		b := make([]byte, checkpoint.PageSize)
		if t.objs.list[p.Object-1].Changed || live.ReadFile(p.Object, p.Index*checkpoint.PageSize, b) == 0 {
			continue
		}
		if err := t.keepObjectPage(pageKey{p.Object, p.Index}, b); err != nil {
			return err
		}
	}
	return nil
}
