package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sort"
	"strings"

	"vplay/checkpoint"
)

// A stripped file names only what it exports. Debuggers need more: gdb's finish,
// step and next ask for the bounds of the function, and look for a symbol to tell
// them. The unwind table has the bounds of nearly every function, so functions
// without a symbol get one by their address.
//
// These symbols are in a section .gnu_debugdata ("MiniDebugInfo", gdb manual,
// 18.4): an ELF file with a symbol table, in the xz format. gdb reads it only where it
// finds no separate debug file. In .symtab they would hide the names in such a
// file.

// functionSymbols returns the section with symbols for the functions of the
// unwind table that have none; none when there are no such functions. list are the
// sections of the image, numbered from 1.
func (im *image) functionSymbols(list []section, m Memory) []section {
	index := map[string]int{}
	for i := range list {
		index[list[i].name] = i
	}
	i, ok := index[".eh_frame"]
	if _, has := index[".gnu_debugdata"]; !ok || has || list[i].typ == elf.SHT_NOBITS {
		return nil
	}
	eh := &list[i]
	functions := im.functions(im.b[eh.off:eh.off+eh.size], eh.addr, budgetOf(m))
	if take(m, madeSymbolBytes*len(functions)) != nil {
		return nil
	}
	named := im.exported(list)
	code := codeSections(list)
	tab, names := make([]byte, 24), []byte{0}
	le := binary.LittleEndian
	for _, f := range functions {
		n := sectionOf(list, code, f.Start)
		if n == 0 || named[f.Start] || strings.HasPrefix(list[n-1].name, ".plt") {
			continue
		}
		tab = le.AppendUint32(tab, uint32(len(names)))
		tab = append(tab, byte(elf.STB_LOCAL)<<4|byte(elf.STT_FUNC), 0)
		tab = le.AppendUint16(tab, uint16(n))
		tab = le.AppendUint64(tab, f.Start)
		tab = le.AppendUint64(tab, f.End-f.Start)
		names = append(append(names, im.unwind.Name(f.Start)...), 0)
	}
	if len(tab) == 24 {
		return nil
	}
	data := xzStored(symbolELF(im, list, tab, names))
	return []section{{name: ".gnu_debugdata", typ: elf.SHT_PROGBITS, off: im.append(data, 1), size: uint64(len(data)), align: 1}}
}

// functions returns those of the image's unwind table, which is read once.
func (im *image) functions(section []byte, addr uint64, budget *checkpoint.Budget) []Range {
	if im.listed == nil {
		im.listed = im.unwind.Functions(section, addr, budget)
	}
	return im.listed
}

// madeSymbolBytes is what a symbol takes in memory while the section is made: in a
// table of symbols, one of names, the file that holds both, and its copy in the xz
// format.
const madeSymbolBytes = 200

// codeSections returns the numbers of the loaded sections with code, sorted by
// address.
func codeSections(list []section) (code []int) {
	for i := range list {
		if s := &list[i]; s.flags&elf.SHF_ALLOC != 0 && s.flags&elf.SHF_EXECINSTR != 0 {
			code = append(code, i+1)
		}
	}
	slices.SortStableFunc(code, func(a, b int) int { return cmp.Compare(list[a-1].addr, list[b-1].addr) })
	return code
}

// sectionOf returns which of the sections of code holds an address; 0 when none
// does.
func sectionOf(list []section, code []int, addr uint64) int {
	i := sort.Search(len(code), func(i int) bool { return list[code[i]-1].addr > addr })
	if i > 0 && addr-list[code[i-1]-1].addr < list[code[i-1]-1].size {
		return code[i-1]
	}
	return 0
}

// exported returns the addresses of the functions in the dynamic symbol table.
func (im *image) exported(list []section) map[uint64]bool {
	out := map[uint64]bool{}
	for i := range list {
		s := &list[i]
		if s.typ != elf.SHT_DYNSYM {
			continue
		}
		le := binary.LittleEndian
		for b := im.b[s.off : s.off+s.size]; len(b) >= 24; b = b[24:] {
			t := elf.ST_TYPE(b[4])
			if (t == elf.STT_FUNC || t == elf.STT_GNU_IFUNC) && le.Uint16(b[6:]) != uint16(elf.SHN_UNDEF) && le.Uint64(b[16:]) > 0 {
				out[le.Uint64(b[8:])] = true
			}
		}
	}
	return out
}

// symbolELF makes the ELF file that .gnu_debugdata holds: the sections of the
// image, without their content, and a symbol table.
func symbolELF(im *image, list []section, tab, names []byte) []byte {
	out := &image{mod: im.mod, b: bytes.Clone(im.b[:64])}
	le := binary.LittleEndian
	le.PutUint64(out.b[32:], 0) // no program headers
	le.PutUint16(out.b[56:], 0)
	all := make([]section, len(list), len(list)+2)
	for i, s := range list {
		if s.flags&elf.SHF_ALLOC != 0 {
			all[i] = section{name: s.name, typ: elf.SHT_NOBITS, flags: s.flags, addr: s.addr, size: s.size, align: s.align}
		}
	}
	symbols := section{
		name: ".symtab", typ: elf.SHT_SYMTAB, off: out.append(tab, 8), size: uint64(len(tab)),
		link: uint32(len(list) + 2), info: uint32(len(tab) / 24), align: 8, entsize: 24,
	}
	strings := section{name: ".strtab", typ: elf.SHT_STRTAB, off: out.append(names, 1), size: uint64(len(names)), align: 1}
	return out.finish(append(all, symbols, strings))
}

// xzStored wraps b in the xz format without compressing it (The .xz File Format
// 1.0.4, tukaani.org; LZMA2 chunks of kind 1 and 2).
func xzStored(b []byte) []byte {
	le := binary.LittleEndian
	check := func(p []byte) []byte { return le.AppendUint32(nil, crc32.ChecksumIEEE(p)) }
	pad := func(p []byte) []byte {
		for len(p)%4 != 0 {
			p = append(p, 0)
		}
		return p
	}
	const checkCRC32 = 1
	flags := []byte{0, checkCRC32}
	out := append([]byte("\xfd7zXZ\x00"), flags...)
	out = append(out, check(flags)...)

	start := len(out)
	block := []byte{2, 0, 0x21, 1, 0, 0, 0, 0} // 12 bytes of header, one filter: LZMA2 with 4 KiB of dictionary
	out = append(append(out, block...), check(block)...)
	for i, kind := 0, byte(1); i < len(b); i, kind = i+1<<16, 2 {
		chunk := b[i:min(i+1<<16, len(b))]
		out = append(out, kind, byte((len(chunk)-1)>>8), byte(len(chunk)-1))
		out = append(out, chunk...)
	}
	out = append(out, 0)
	unpadded := len(out) - start + 4
	out = append(pad(out), check(b)...)

	index := []byte{0, 1} // one block
	index = binary.AppendUvarint(index, uint64(unpadded))
	index = pad(binary.AppendUvarint(index, uint64(len(b))))
	out = append(append(out, index...), check(index)...)
	footer := append(le.AppendUint32(nil, uint32(len(index))/4), flags...)
	return append(append(append(out, check(footer)...), footer...), "YZ"...)
}
