package image

import (
	"debug/elf"
	"encoding/binary"
)

// An image for a module without a symbol file: with the sections that the file's own
// table lists (sectiontable.go), or with a few that are made up. Images with a .debug
// file are in merge.go.

// synthetic makes an ELF file for a module of which no symbol file is known.
// With the section table of the file it has the sections of the file, with the
// build-id, by which a debugger finds a symbol file of its own. Without, it has
// .text .data .bss .eh_frame_hdr .eh_frame .dynsym .dynstr .dynamic, as far as
// they exist, and no note of the build-id, or a debugger would place the symbol
// file by the made-up .text.
func synthetic(mod *Module, m Memory, unwind *Unwind) ([]byte, error) {
	im, err := memoryImage(mod, m, unwind)
	if err != nil {
		return nil, err
	}
	return im.withSections(m), nil
}

// withSections ends the image with the sections that are known, or made up.
func (im *image) withSections(m Memory) []byte {
	list := im.mod.sectionTable(m)
	if list != nil {
		list = recorded(im, list)
	} else {
		list = madeUp(im, m)
	}
	im.bindIFuncs(list, m) // before names are made up for functions without one
	return im.finish(append(list, im.functionSymbols(list, m)...))
}

// madeUp makes sections from the program headers and the dynamic section.
func madeUp(im *image, m Memory) []section {
	mod := im.mod
	s := &sections{im: im}
	for _, p := range mod.Segments {
		s.segment(p)
	}
	s.unwind(m)
	s.symbols(m)
	return s.list
}

// sections collects the made-up sections of an image. They are numbered from
// 1 in the file.
type sections struct {
	im   *image
	list []section
}

// add appends a section whose bytes are at a file virtual address; its type
// becomes NOBITS where bytes are missing.
func (s *sections) add(x section) {
	off, ok := s.im.mod.offsetOf(x.addr)
	if !ok && x.typ != elf.SHT_NOBITS || x.size == 0 {
		return
	}
	if x.typ != elf.SHT_NOBITS {
		x.off = off
		if !s.im.has(off, x.size) {
			x.typ = elf.SHT_NOBITS
		}
	}
	s.list = append(s.list, x)
}

func (s *sections) has(name string) bool {
	for i := range s.list {
		if s.list[i].name == name {
			return true
		}
	}
	return false
}

// segment makes .text of the first executable segment, and .data and .bss of
// the first writable one.
func (s *sections) segment(p elf.ProgHeader) {
	if p.Type != elf.PT_LOAD {
		return
	}
	if p.Flags&elf.PF_X != 0 && !s.has(".text") {
		s.add(section{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, addr: p.Vaddr, size: p.Filesz, align: 16})
	}
	if p.Flags&elf.PF_W != 0 && !s.has(".data") {
		s.add(section{name: ".data", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: p.Vaddr, size: p.Filesz, align: 8})
		if p.Memsz > p.Filesz {
			s.add(section{name: ".bss", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: p.Vaddr + p.Filesz, size: p.Memsz - p.Filesz, align: 8})
		}
	}
}

// unwind makes .eh_frame_hdr and .eh_frame.
func (s *sections) unwind(m Memory) {
	mod := s.im.mod
	for _, p := range mod.Segments {
		if p.Type == elf.PT_GNU_EH_FRAME && !s.has(".eh_frame_hdr") {
			s.add(section{name: ".eh_frame_hdr", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: p.Vaddr, size: p.Memsz, align: 4})
		}
	}
	if start, end := mod.EhFrame(m); end > start {
		s.add(section{name: ".eh_frame", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: start - mod.Bias, size: end - start, align: 8})
	}
}

// symbols makes .dynsym, .dynstr and .dynamic, and rewrites the section
// numbers of the symbols, which were those of the lost table. There are none
// unless all of the symbols and of their names were captured.
func (s *sections) symbols(m Memory) {
	mod := s.im.mod
	n := uint64(mod.SymbolCount(m))
	sym, str := mod.Address(mod.Dynamic[elf.DT_SYMTAB])-mod.Bias, mod.Address(mod.Dynamic[elf.DT_STRTAB])-mod.Bias
	strsz := mod.Dynamic[elf.DT_STRSZ]
	if n == 0 || strsz == 0 || !s.hasBytes(sym, n*24) || !s.hasBytes(str, strsz) {
		return
	}
	s.renumber(sym, n)
	dynstr := uint32(len(s.list) + 2)
	s.add(section{
		name: ".dynsym", typ: elf.SHT_DYNSYM, flags: elf.SHF_ALLOC, addr: sym, size: n * 24,
		link: dynstr, info: 1, align: 8, entsize: 24,
	})
	s.add(section{name: ".dynstr", typ: elf.SHT_STRTAB, flags: elf.SHF_ALLOC, addr: str, size: strsz, align: 1})
	for _, p := range mod.Segments {
		if p.Type == elf.PT_DYNAMIC && !s.has(".dynamic") && s.hasBytes(p.Vaddr, p.Filesz) {
			s.add(section{
				name: ".dynamic", typ: elf.SHT_DYNAMIC, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: p.Vaddr, size: p.Filesz,
				link: dynstr, align: 8, entsize: 16,
			})
		}
	}
}

// hasBytes reports whether n bytes at a file virtual address are known.
func (s *sections) hasBytes(addr, n uint64) bool {
	off, ok := s.im.mod.offsetOf(addr)
	return ok && s.im.has(off, n)
}

// renumber sets st_shndx of the defined symbols to the sections made here.
// Preconditions: the n symbols at addr are known.
func (s *sections) renumber(addr, n uint64) {
	off, _ := s.im.mod.offsetOf(addr)
	le := binary.LittleEndian
	for i := range n {
		e := s.im.b[off+i*24 : off+i*24+24]
		shndx := elf.SectionIndex(le.Uint16(e[6:]))
		if shndx == elf.SHN_UNDEF || shndx >= elf.SHN_LORESERVE {
			continue
		}
		le.PutUint16(e[6:], s.sectionAt(le.Uint64(e[8:])))
	}
}

// sectionAt returns the number of the section that holds an address; symbols
// in no section of ours, such as read-only data, count as absolute.
func (s *sections) sectionAt(addr uint64) uint16 {
	for i := range s.list {
		if x := &s.list[i]; addr >= x.addr && addr-x.addr < x.size {
			return uint16(i + 1)
		}
	}
	if len(s.list) > 0 {
		return 1
	}
	return uint16(elf.SHN_ABS)
}
