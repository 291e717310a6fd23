package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"vplay/checkpoint"
)

// The section table of a file and the names in it lie behind what is mapped, so
// no memory image has them. Debuggers need them: they place a separate debug
// file by the addresses of equally named sections (gdb, symfile.c,
// addr_info_make_relative), so that guessed sections put every symbol at a wrong
// address. The recorder keeps the pages of the file that hold the table
// (SectionTablePages); recordings without them get made-up sections.

// FileReader is a [Memory] that also reads mapped files where no mapping shows
// them.
type FileReader interface {
	Memory
	// ReadFile returns how many bytes of b could be read at offset off of a
	// checkpoint object, the readable prefix.
	ReadFile(object uint32, off uint64, b []byte) int
}

// maxSections bounds the sections of a module, maxNames their names in bytes.
const (
	maxSections = 4096
	maxNames    = 256 << 10
)

// sectionHeaderSize is the size of an Elf64_Shdr.
const sectionHeaderSize = 64

// readFile reads the module's file. The vDSO has none and lies in memory whole.
func (mod *Module) readFile(m Memory, off uint64, b []byte) bool {
	if mod.Object == 0 {
		return m.ReadMemory(mod.Base+off, b) == len(b)
	}
	f, ok := m.(FileReader)
	return ok && f.ReadFile(mod.Object, off, b) == len(b)
}

// sectionTable returns the sections of the module's file as its table has them,
// without section 0; nil when the table is not known or makes no sense.
func (mod *Module) sectionTable(m Memory) []section {
	raw, names := mod.rawSections(m)
	if raw == nil {
		return nil
	}
	out := make([]section, 0, mod.Shnum-1)
	for i := 1; i < mod.Shnum; i++ {
		name, s := sectionHeader(raw[i*sectionHeaderSize:])
		if uint64(name) >= uint64(len(names)) {
			return nil
		}
		end := bytes.IndexByte(names[name:], 0)
		if end < 0 {
			return nil
		}
		s.name = string(names[name : int(name)+end])
		out = append(out, s)
	}
	return out
}

// rawSections reads the section table and the names that belong to it.
func (mod *Module) rawSections(m Memory) (table, names []byte) {
	if mod.Shnum < 2 || mod.Shnum > maxSections || mod.Shstrndx <= 0 || mod.Shstrndx >= mod.Shnum || mod.Shoff > maxImage {
		return nil, nil
	}
	table = make([]byte, mod.Shnum*sectionHeaderSize)
	if !mod.readFile(m, mod.Shoff, table) {
		return nil, nil
	}
	_, s := sectionHeader(table[mod.Shstrndx*sectionHeaderSize:])
	if s.typ != elf.SHT_STRTAB || s.size > maxNames || s.off > maxImage {
		return nil, nil
	}
	names = make([]byte, s.size)
	if !mod.readFile(m, s.off, names) {
		return nil, nil
	}
	return table, names
}

// sectionHeader decodes one Elf64_Shdr; name is where its name begins in the
// section of names.
func sectionHeader(b []byte) (name uint32, s section) {
	le := binary.LittleEndian
	return le.Uint32(b), section{
		typ: elf.SectionType(le.Uint32(b[4:])), flags: elf.SectionFlag(le.Uint64(b[8:])),
		addr: le.Uint64(b[16:]), off: le.Uint64(b[24:]), size: le.Uint64(b[32:]),
		link: le.Uint32(b[40:]), info: le.Uint32(b[44:]), align: le.Uint64(b[48:]), entsize: le.Uint64(b[56:]),
	}
}

// FilePage is a page of a checkpoint object.
type FilePage struct {
	Object uint32
	Index  uint64 // offset in the object / PageSize
}

// SectionTablePages returns the pages of files that hold the section tables of
// the modules in a memory map, and the names of the sections.
func SectionTablePages(maps []checkpoint.Mapping, m FileReader) (pages []FilePage) {
	for _, mod := range Modules(maps, m) {
		table, names := mod.rawSections(m)
		if mod.Object == 0 || table == nil {
			continue
		}
		_, s := sectionHeader(table[mod.Shstrndx*sectionHeaderSize:])
		add := func(off, n uint64) {
			for i := off / checkpoint.PageSize; n > 0 && i <= (off+n-1)/checkpoint.PageSize; i++ {
				pages = append(pages, FilePage{Object: mod.Object, Index: i})
			}
		}
		add(mod.Shoff, uint64(len(table)))
		add(s.off, uint64(len(names)))
	}
	return pages
}

// recorded makes an image with the sections that the module's file had. Those
// that are not part of the process, such as .comment, are left out, but keep their
// numbers, which symbols refer to.
func recorded(im *image, table []section) []section {
	out := make([]section, len(table))
	for i, s := range table {
		if s.flags&elf.SHF_ALLOC == 0 {
			continue // out[i] is an inactive section, SHT_NULL
		}
		if s.align&(s.align-1) != 0 || s.align > maxAlign {
			s.align = 1
		}
		if !im.locate(&s) {
			s.typ = elf.SHT_NOBITS
		}
		out[i] = s
	}
	// A symbol table with names that are not known would give wrong ones.
	for i := range out {
		s := &out[i]
		if s.typ != elf.SHT_DYNSYM && s.typ != elf.SHT_GNU_VERDEF && s.typ != elf.SHT_GNU_VERNEED && s.typ != elf.SHT_DYNAMIC {
			continue
		}
		if s.link == 0 || int(s.link) > len(out) || out[s.link-1].typ != elf.SHT_STRTAB {
			s.typ = elf.SHT_NOBITS
		}
	}
	return out
}

// maxAlign bounds the alignment of a section, in bytes.
const maxAlign = 1 << 21
