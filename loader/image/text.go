package image

import (
	"debug/elf"
	"os"

	"vplay/checkpoint"
	"vplay/dwarf/elffile"
)

// Code that the recording lacks, from files of the same build-id: for function calls in a
// diversion, which may go where the program did not. What debuggers read of such files is in
// build.go.

// Text fills b with the bytes that module mod has at addr, from a file of the same
// build-id, and returns how many: up to the end of the segment, 0 when there is no
// such file. Only segments that are never writable are read, for the dynamic linker
// changes the others, and only files that have what was captured (m is the memory): what comes from
// the file is what the program had.
func (s *Symbols) Text(mod *Module, m Memory, addr uint64, b []byte) int {
	path, ok := s.Whole(mod, m)
	if !ok {
		return 0
	}
	r, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = r.Close() }() // only read
	f, err := elffile.Open(r)
	if err != nil {
		return 0
	}
	for _, p := range f.Progs {
		at := addr - mod.Bias - p.Vaddr
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W != 0 || addr < mod.Bias+p.Vaddr || at >= p.Filesz {
			continue
		}
		if n := p.Filesz - at; uint64(len(b)) > n {
			b = b[:n]
		}
		if n, err := p.ReadAt(b, int64(at)); err == nil {
			return n
		}
	}
	return 0
}

// Whole returns the file that a module is: one of the same build-id, or none, in the folders or at the module's
// path, that holds code, and what was captured (m is the memory) of segments that are never writable.
func (s *Symbols) Whole(mod *Module, m Memory) (path string, ok bool) {
	if mod.BuildID == "" {
		return s.byContent(mod, m)
	}
	s.once.Do(s.scan)
	path, ok = s.whole[mod.BuildID]
	if !ok {
		path, ok = s.Local(mod, m)
	}
	return path, ok && s.Agrees(mod, m, path)
}

// ModuleAt returns the module that lies at addr, nil when there is none.
func ModuleAt(maps []checkpoint.Mapping, m Memory, addr uint64) *Module {
	for _, mod := range Modules(maps, m) {
		if addr >= mod.Base && addr < mod.End {
			return mod
		}
	}
	return nil
}
