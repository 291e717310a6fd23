package gdbstub

import (
	"encoding/binary"
	"strings"
)

// The fake program's ELF file: code, data, symbols, and line numbers of a
// source that reads
//
//	1 void bump(void) {
//	2   counter++;
//	3 }
//	4
//	5 void _start(void) { int n = 5;
//	6   do bump();
//	7   while (--n);
//	8   *(int *)0 = 0;
//	9 }

// elfSection is one section of the file.
type elfSection struct {
	name              string
	typ               uint32
	flags, addr, off  uint64 // off 0: appended
	data              []byte
	link, info, entry uint64
}

// fakeELF builds the file.
func fakeELF() []byte {
	le := binary.LittleEndian
	img := make([]byte, 0x3000)
	copy(img, "\x7fELF\x02\x01\x01")
	le.PutUint16(img[16:], 2)  // ET_EXEC
	le.PutUint16(img[18:], 62) // EM_X86_64
	le.PutUint32(img[20:], 1)
	le.PutUint64(img[24:], fakeText)
	le.PutUint64(img[32:], 64) // program headers
	le.PutUint16(img[52:], 64)
	le.PutUint16(img[54:], 56)
	le.PutUint16(img[56:], 2)
	le.PutUint16(img[58:], 64)
	phdr := func(i int, flags uint32, off, addr uint64) {
		p := img[64+56*i:]
		le.PutUint32(p, 1) // PT_LOAD
		le.PutUint32(p[4:], flags)
		for j, v := range []uint64{off, addr, addr, 0x1000, 0x1000, 0x1000} {
			le.PutUint64(p[8+8*j:], v)
		}
	}
	phdr(0, 5, 0x1000, fakeText)
	phdr(1, 6, 0x2000, fakeCounter)
	copy(img[0x1000:], fakeCode)
	symtab, strtab := fakeSymbols()
	sections := []elfSection{
		{},
		{name: ".text", typ: 1, flags: 6, addr: fakeText, off: 0x1000, data: fakeCode},
		{name: ".data", typ: 1, flags: 3, addr: fakeCounter, off: 0x2000, data: make([]byte, 0x1000)},
		{name: ".symtab", typ: 2, data: symtab, link: 4, info: 1, entry: 24},
		{name: ".strtab", typ: 3, data: strtab},
		{name: ".debug_abbrev", typ: 1, data: fakeAbbrev},
		{name: ".debug_info", typ: 1, data: fakeInfo()},
		{name: ".debug_line", typ: 1, data: fakeLines()},
		{name: ".shstrtab", typ: 3},
	}
	names := []byte{0}
	for _, s := range sections[1:] {
		names = append(append(names, s.name...), 0)
	}
	sections[len(sections)-1].data = names
	var headers []byte
	for _, s := range sections {
		off := s.off
		if off == 0 {
			off = uint64(len(img))
			img = append(img, s.data...)
		}
		headers = append(headers, s.header(names, off)...)
	}
	for len(img)%8 != 0 {
		img = append(img, 0)
	}
	le.PutUint64(img[40:], uint64(len(img)))
	le.PutUint16(img[60:], uint16(len(sections)))
	le.PutUint16(img[62:], uint16(len(sections)-1))
	return append(img, headers...)
}

// header makes the section's header.
func (s elfSection) header(names []byte, off uint64) []byte {
	le := binary.LittleEndian
	h := make([]byte, 64)
	if s.name == "" {
		return h
	}
	le.PutUint32(h, uint32(strings.Index(string(names), "\x00"+s.name+"\x00")+1))
	le.PutUint32(h[4:], s.typ)
	le.PutUint64(h[8:], s.flags)
	le.PutUint64(h[16:], s.addr)
	le.PutUint64(h[24:], off)
	le.PutUint64(h[32:], uint64(len(s.data)))
	le.PutUint32(h[40:], uint32(s.link))
	le.PutUint32(h[44:], uint32(s.info))
	le.PutUint64(h[48:], 1)
	le.PutUint64(h[56:], s.entry)
	return h
}

// fakeSymbols makes .symtab and .strtab.
func fakeSymbols() (symtab, strtab []byte) {
	const names = "\x00_start\x00bump\x00counter\x00"
	le := binary.LittleEndian
	symtab = make([]byte, 24)
	for _, s := range []struct {
		name       string
		info       byte
		shndx      uint16
		addr, size uint64
	}{{"_start", 0x12, 1, fakeText, 18}, {"bump", 0x12, 1, fakeBump, 13}, {"counter", 0x11, 2, fakeCounter, 4}} {
		symtab = le.AppendUint32(symtab, uint32(strings.Index(names, s.name)))
		symtab = le.AppendUint16(append(symtab, s.info, 0), s.shndx)
		symtab = le.AppendUint64(le.AppendUint64(symtab, s.addr), s.size)
	}
	return symtab, []byte(names)
}

// fakeAbbrev declares four kinds of entry (DWARF 4, 7.5.3): a unit with name,
// directory, language, bounds and lines; a function; an int; a variable.
var fakeAbbrev = []byte{
	1, 0x11, 1, 0x03, 0x08, 0x1b, 0x08, 0x13, 0x0b, 0x11, 0x01, 0x12, 0x01, 0x10, 0x17, 0, 0,
	2, 0x2e, 0, 0x03, 0x08, 0x3f, 0x19, 0x11, 0x01, 0x12, 0x01, 0, 0,
	3, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0,
	4, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x3f, 0x19, 0x02, 0x18, 0, 0,
	0,
}

// fakeInfo makes .debug_info.
func fakeInfo() []byte {
	le := binary.LittleEndian
	b := []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8} // length, version 4, abbreviations at 0, 8-byte addresses
	b = append(b, "\x01prog.c\x00/replay\x00\x0c"...)
	b = le.AppendUint64(le.AppendUint64(b, fakeText), fakeBump+13)
	b = le.AppendUint32(b, 0)
	for _, f := range []struct {
		name     string
		from, to uint64
	}{{"_start", fakeText, fakeCrash + 2}, {"bump", fakeBump, fakeBump + 13}} {
		b = append(append(b, 2), f.name+"\x00"...)
		b = le.AppendUint64(le.AppendUint64(b, f.from), f.to)
	}
	intAt := uint32(len(b))
	b = append(b, "\x03int\x00\x04\x05"...)
	b = le.AppendUint32(append(b, "\x04counter\x00"...), intAt)
	b = le.AppendUint64(append(b, 9, 3), fakeCounter) // DW_OP_addr
	b = append(b, 0)
	le.PutUint32(b, uint32(len(b)-4))
	return b
}

// fakeLines makes .debug_line.
func fakeLines() []byte {
	le := binary.LittleEndian
	b := []byte{0, 0, 0, 0, 2, 0, 0, 0, 0, 0}
	b = append(b, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0) // no directories
	b = append(b, "prog.c\x00\x00\x00\x00\x00"...)
	le.PutUint32(b[6:], uint32(len(b)-10))
	row := func(addr uint64, line int8) {
		b = le.AppendUint64(append(b, 0, 9, 2), addr) // DW_LNE_set_address
		b = append(b, 3, byte(line)&0x7f, 1)          // DW_LNS_advance_line, DW_LNS_copy
	}
	row(fakeText, 4) // lines are counted from 1, in steps
	row(fakeLoop, 1)
	row(0x40100a, 1)
	row(0x40100e, 1)
	row(fakeBump, -7)
	row(fakeIncl, 1)
	row(fakeIncl+7, 1)
	b = le.AppendUint64(append(b, 0, 9, 2), fakeBump+13)
	b = append(b, 0, 1, 1) // DW_LNE_end_sequence
	le.PutUint32(b, uint32(len(b)-4))
	return b
}
