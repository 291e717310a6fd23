package image

import (
	"bytes"
	"debug/elf"

	"vplay/checkpoint"
	"vplay/dwarf/elffile"
)

// A recording that was made from a core file may hold the whole file of a module, with symbols and debugging
// information that no memory has. Then that is the file that debuggers get. Other recordings are not asked: of a
// program of a few pages they, too, have all of the file, and of the next one not.

// isEmbedded reports whether the recording holds what the section table has as symbols or debugging
// information, as far as the ends of these sections tell.
func (mod *Module) isEmbedded(m Memory) bool {
	found := false
	for _, s := range mod.sectionTable(m) {
		isNamed := s.typ == elf.SHT_SYMTAB || s.name == ".debug_info" || s.name == ".zdebug_info"
		if !isNamed || s.flags&elf.SHF_ALLOC != 0 || s.size == 0 || s.off > maxImage || s.size > maxImage {
			continue
		}
		var b [1]byte
		if !mod.readFile(m, s.off, b[:]) || !mod.readFile(m, s.off+s.size-1, b[:]) {
			return false
		}
		found = true
	}
	return found
}

// embedded returns the module's file where the recording holds all of it, nil where it does not, with
// the error of the budget.
func (mod *Module) embedded(m Memory) ([]byte, error) {
	if mod.Object == 0 || !mod.isEmbedded(m) {
		return nil, nil
	}
	end := mod.Shoff + uint64(mod.Shnum)*sectionHeaderSize
	for _, s := range mod.sectionTable(m) {
		if s.typ != elf.SHT_NOBITS && s.off <= maxImage && s.size <= maxImage {
			end = max(end, s.off+s.size)
		}
	}
	if end > maxImage {
		return nil, nil
	}
	if err := take(m, int(end)); err != nil {
		return nil, err
	}
	b := make([]byte, end)
	for at := uint64(0); at < end; at += checkpoint.PageSize {
		if !mod.readFile(m, at, b[at:min(at+checkpoint.PageSize, end)]) {
			return nil, nil
		}
	}
	f, err := elffile.Open(bytes.NewReader(b))
	if err != nil || f.Type != mod.Type {
		return nil, nil
	}
	return b, nil
}
