package image

import (
	"debug/elf"
	"path/filepath"
)

// Files without a build-id. Linkers leave it out unless they are told to make one, and who tells them
// is the compiler: GCC as distributions configure it does, GCC as it comes, musl-gcc and Free Pascal do not.
// Such a file is known by its content: what was captured of segments that are not writable must be what it
// has, and code must be among it. The ELF header, which is always captured, says where the section table lies,
// and so nearly each change to the program, its names or its lines shows there.

// byContent returns the file that a module without a build-id is: one of its name in the folders, or that at its path.
func (s *Symbols) byContent(mod *Module, m Memory) (path string, ok bool) {
	s.once.Do(s.scan)
	for _, path := range s.unnamed[filepath.Base(mod.Path)] {
		if s.Agrees(mod, m, path) {
			return path, true
		}
	}
	return s.Local(mod, m)
}

// hasCode reports whether something is known of a segment with code, besides the headers.
func (im *image) hasCode() bool {
	found := false
	headers := im.mod.Phoff + uint64(len(im.mod.Segments))*56 // sizeof(Elf64_Phdr)
	for _, p := range im.mod.Segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Flags&elf.PF_W == 0 {
			im.gaps(max(p.Off, headers), p.Off+p.Filesz, false, func(from, to uint64) {
				found = found || from < min(to, uint64(len(im.b)))
			})
		}
	}
	return found
}
