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
type spaceMemory struct{ *space }

// ReadMemory implements image.Memory. What stands behind the end of a file
// ends the read.
func (m spaceMemory) ReadMemory(addr uint64, b []byte) int { return m.readMem(addr, b) }

// keepDebuggerSet keeps the pages of files that debuggers read. Pages that
// belong to the address are in the final image already; at an execve, the same for the image that ends.
func (sp *space) keepDebuggerSet(c *call, f *checkpoint.Final) error {
	b := make([]byte, checkpoint.PageSize)
	for _, r := range image.DebuggerSet(f.Maps, f.Contexts, spaceMemory{sp}) {
		for _, m := range sp.maps.overlap(r.Start, r.End) {
			if m.Object == 0 || !m.private() || sp.objects.at(m.Object).Kind != checkpoint.ObjectFile {
				continue
			}
			start, end := max(m.Start, r.Start), min(m.End, r.End)
			for a := start; a < end; a += checkpoint.PageSize {
				sp.readMem(a, b)
			}
			if err := sp.captureFilePages(c, start, end); err != nil {
				return err
			}
		}
	}
	return sp.keepSectionTables(f)
}

// ReadFile implements image.FileReader.
func (m spaceMemory) ReadFile(object uint32, off uint64, b []byte) int {
	f, done, err := m.openObject(object)
	if err != nil {
		return 0
	}
	defer done()
	n, _ := f.ReadAt(b, int64(off)) // a short read is one
	return n
}

// keepSectionTables keeps the pages that hold the section tables of the modules,
// which no mapping shows: from the files, as long as they are what they were when they were mapped.
func (sp *space) keepSectionTables(f *checkpoint.Final) error {
	live := spaceMemory{sp}
	for _, p := range image.SectionTablePages(f.Maps, live) {
		b := make([]byte, checkpoint.PageSize)
		if sp.objects.at(p.Object).Changed || live.ReadFile(p.Object, p.Index*checkpoint.PageSize, b) == 0 {
			continue
		}
		if err := sp.objects.keep(pageKey{p.Object, p.Index}, b); err != nil {
			return err
		}
	}
	return nil
}
