// Package imagetest has a small shared library in memory, for tests of those who read
// modules there.
package imagetest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"vplay/checkpoint"
)

// Memory is guest memory in pages; those that are not there were not captured.
type Memory map[uint64]*[checkpoint.PageSize]byte

// ReadMemory returns how many bytes of b could be read, up to the first page that was
// not captured.
func (f Memory) ReadMemory(addr uint64, b []byte) int {
	n := 0
	for n < len(b) {
		a := addr + uint64(n)
		p := f[a&^(checkpoint.PageSize-1)]
		if p == nil {
			break
		}
		n += copy(b[n:], p[a%checkpoint.PageSize:])
	}
	return n
}

// Put lays bytes at an address.
func (f Memory) Put(addr uint64, b []byte) {
	for i := range b {
		a := addr + uint64(i)
		page := a &^ (checkpoint.PageSize - 1)
		if f[page] == nil {
			f[page] = new([checkpoint.PageSize]byte)
		}
		f[page][a%checkpoint.PageSize] = b[i]
	}
}

// Library is a small shared library in memory at base: header and tables in its
// first page, code in the second, data with the dynamic section in the third.
// It exports f at 0x1010.
func Library(base uint64) Memory {
	le := binary.LittleEndian
	m := Memory{}
	h := make([]byte, 64)
	copy(h, elf.ELFMAG)
	h[elf.EI_CLASS], h[elf.EI_DATA], h[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	le.PutUint16(h[16:], uint16(elf.ET_DYN))
	le.PutUint16(h[18:], uint16(elf.EM_X86_64))
	le.PutUint32(h[20:], 1)
	le.PutUint64(h[32:], 64)
	le.PutUint16(h[52:], 64)
	le.PutUint16(h[54:], 56)
	le.PutUint64(h[24:], 0x1000)
	segments := []elf.ProgHeader{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Filesz: 0x1000, Memsz: 0x1000, Align: 0x1000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Off: 0x1000, Vaddr: 0x1000, Filesz: 0x1000, Memsz: 0x1000, Align: 0x1000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Off: 0x2000, Vaddr: 0x2000, Filesz: 0x200, Memsz: 0x800, Align: 0x1000},
		{Type: elf.PT_DYNAMIC, Flags: elf.PF_R | elf.PF_W, Off: 0x2000, Vaddr: 0x2000, Filesz: 0x100, Memsz: 0x100, Align: 8},
		{Type: elf.PT_NOTE, Flags: elf.PF_R, Off: 0x300, Vaddr: 0x300, Filesz: 36, Memsz: 36, Align: 4},
		{Type: elf.PT_GNU_EH_FRAME, Flags: elf.PF_R, Off: 0x500, Vaddr: 0x500, Filesz: 12, Memsz: 12, Align: 4},
	}
	le.PutUint16(h[56:], uint16(len(segments)))
	for _, p := range segments {
		h = le.AppendUint32(h, uint32(p.Type))
		h = le.AppendUint32(h, uint32(p.Flags))
		for _, v := range []uint64{p.Off, p.Vaddr, p.Vaddr, p.Filesz, p.Memsz, p.Align} {
			h = le.AppendUint64(h, v)
		}
	}
	m.Put(base, h)
	note := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 4), 20), 3)
	m.Put(base+0x300, append(append(note, "GNU\x00"...), bytes.Repeat([]byte{0xab}, 20)...))
	sym := make([]byte, 48)
	le.PutUint32(sym[24:], 1)
	sym[28] = byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC)
	le.PutUint16(sym[30:], 7)
	le.PutUint64(sym[32:], 0x1010)
	le.PutUint64(sym[40:], 16)
	m.Put(base+0x400, sym)
	m.Put(base+0x440, []byte("\x00f\x00"))
	m.Put(base+0x480, le.AppendUint32(le.AppendUint32(nil, 1), 2)) // DT_HASH: two symbols
	hdr := []byte{1, 0x1b, 0x3b, 0xff}
	m.Put(base+0x500, le.AppendUint32(hdr, 0x600-0x504))
	m.Put(base+0x600, EhFrame(0x600, 0x1010, 16))
	m.Put(base+0x1010, bytes.Repeat([]byte{0x90}, 16))
	var dyn []byte
	for _, d := range [][2]uint64{
		{uint64(elf.DT_SYMTAB), base + 0x400},
		{uint64(elf.DT_STRTAB), base + 0x440},
		{uint64(elf.DT_STRSZ), 3},
		{uint64(elf.DT_HASH), base + 0x480},
		{uint64(elf.DT_DEBUG), 0},
		{0, 0},
	} {
		dyn = le.AppendUint64(le.AppendUint64(dyn, d[0]), d[1])
	}
	m.Put(base+0x2000, dyn)
	return m
}

// EhFrame is an unwind table at a file address for one function.
func EhFrame(at, low, size uint32) []byte {
	le := binary.LittleEndian
	cie := le.AppendUint32(nil, 20)
	cie = append(cie, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0)
	b := le.AppendUint32(cie, 16)
	b = le.AppendUint32(b, uint32(len(cie))+4)
	b = le.AppendUint32(b, low-at-uint32(len(b)))
	b = le.AppendUint32(b, size)
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}

// Base is where the library of Maps lies.
const Base = 0x7f0000000000

// Maps is the memory map of a library at Base.
func Maps() []checkpoint.Mapping {
	return []checkpoint.Mapping{
		{Start: Base, End: Base + 0x1000, Prot: 1, Object: 1, Name: "/lib/f.so"},
		{Start: Base + 0x1000, End: Base + 0x2000, Prot: 5, Object: 1, Offset: 0x1000, Name: "/lib/f.so"},
		{Start: Base + 0x2000, End: Base + 0x3000, Prot: 3, Object: 1, Offset: 0x2000, Name: "/lib/f.so"},
	}
}

// Hostile lays fuzzed bytes where modules would be. It returns the memory map, too.
func Hostile(b []byte) (Memory, []checkpoint.Mapping) {
	m := Memory{}
	if len(b) > 1<<16 {
		b = b[:1<<16]
	}
	m.Put(Base, b)
	return m, append(Maps(), checkpoint.Mapping{Start: Base, End: Base + 0x2000, Name: "[vdso]"})
}

// Flat is the library at Base as one run of bytes.
func Flat() []byte {
	m := Library(Base)
	b := make([]byte, 0x3000)
	m.ReadMemory(Base, b)
	return b
}
