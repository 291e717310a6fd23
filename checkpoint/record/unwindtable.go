//go:build linux && amd64

package record

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"io"
	"slices"
	"sort"

	"vplay/checkpoint/abi"
)

// Where the functions of an ELF file start and end, by its unwind table: .eh_frame_hdr has a row for each, in the order of their addresses,
// which leads to its entry in .eh_frame (Linux Standard Base Core Specification, 10.6). Static programs have no rows: the entries
// are read one by one.

// Encodings of pointers in .eh_frame_hdr (DW_EH_PE_* of the Linux Standard Base, 10.5.1), as all linkers write it.
const (
	pcrelInt32   = 0x1b
	uint32Plain  = 0x03
	datarelInt32 = 0x3b
)

// unwindTable is the rows, of which all else is read when it is asked for.
type unwindTable struct {
	r      io.ReaderAt
	rows   []byte // an offset from base of the function, and one of its entry, each time
	base   uint64
	frames elf.SectionHeader
}

// readUnwindTable reads the rows of a file; none where they are not as usual.
func readUnwindTable(f *elf.File, r io.ReaderAt) *unwindTable {
	s, h := f.Section(".eh_frame"), f.Section(".eh_frame_hdr")
	if s != nil && h == nil && s.Type != elf.SHT_NOBITS && s.FileSize <= codeLimit {
		return readEntries(s, r)
	}
	if s == nil || h == nil || h.FileSize < 12 || h.FileSize > codeLimit || s.Type == elf.SHT_NOBITS || h.Type == elf.SHT_NOBITS {
		return &unwindTable{}
	}
	table := make([]byte, h.FileSize)
	if _, err := r.ReadAt(table, int64(h.Offset)); err != nil || !bytes.Equal(table[:4], []byte{1, pcrelInt32, uint32Plain, datarelInt32}) {
		return &unwindTable{}
	}
	return &unwindTable{r: r, rows: table[12:], base: h.Addr, frames: s.SectionHeader}
}

// readEntries makes the rows of the entries of .eh_frame (Linux Standard Base Core Specification, 10.6.1): each begins with its length,
// and 0 in front of what entries have in common.
func readEntries(s *elf.Section, r io.ReaderAt) *unwindTable {
	t := &unwindTable{r: r, base: s.Addr, frames: s.SectionHeader}
	b := make([]byte, s.FileSize)
	if _, err := r.ReadAt(b, int64(s.Offset)); err != nil {
		return t
	}
	type row struct{ start, entry uint32 } // from base
	var rows []row
	const head, size = 12, 16
	for at := uint64(0); at+size <= uint64(len(b)); {
		n := uint64(binary.LittleEndian.Uint32(b[at:]))
		if n == 0 || n >= 0xfffffff0 { // the end, or longer than any is
			break
		}
		if binary.LittleEndian.Uint32(b[at+4:]) != 0 && n >= head {
			rows = append(rows, row{uint32(at) + 8 + binary.LittleEndian.Uint32(b[at+8:]), uint32(at)})
		}
		at += 4 + n
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(int32(a.start), int32(b.start)) })
	for _, x := range rows {
		t.rows = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(t.rows, x.start), x.entry)
	}
	return t
}

// readSymbols returns the functions that a file's symbols name, in order: Go has no other table that is as usual.
func readSymbols(f *elf.File) (list []abi.Range) {
	all, err := f.Symbols()
	if err != nil { // it has none
		return nil
	}
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 && s.Size <= codeLimit && s.Section != elf.SHN_UNDEF {
			list = append(list, abi.Range{Addr: s.Value, Len: s.Size})
		}
	}
	slices.SortFunc(list, func(a, b abi.Range) int { return cmp.Compare(a.Addr, b.Addr) })
	return list
}

// holdingOf returns the one of functions, in order, that has an address.
func holdingOf(list []abi.Range, addr uint64) (fn abi.Range, ok bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr > addr }) - 1
	if i < 0 || addr-list[i].Addr >= list[i].Len {
		return fn, false
	}
	return list[i], true
}

// holding returns the function that has an address.
func (t *unwindTable) holding(addr uint64) (fn abi.Range, ok bool) {
	start := func(i int) uint64 { return t.base + offset32(t.rows[8*i:]) }
	i := sort.Search(len(t.rows)/8, func(i int) bool { return start(i) > addr }) - 1
	if i < 0 {
		return fn, false
	}
	fn, ok = t.function(t.base + offset32(t.rows[8*i+4:]))
	return fn, ok && fn.Addr == start(i) && addr-fn.Addr < fn.Len
}

// function reads the function that the entry at an address is for. Its start is taken for an offset from where that
// stands, which is right where it is what the row says, too.
func (t *unwindTable) function(entry uint64) (fn abi.Range, ok bool) {
	const start, size = 8, 12 // behind a length and the offset of what it has in common with others
	at := entry - t.frames.Addr
	if entry < t.frames.Addr || at >= t.frames.FileSize {
		return fn, false
	}
	var b [size + 4]byte
	if _, err := t.r.ReadAt(b[:], int64(t.frames.Offset+at)); err != nil {
		return fn, false
	}
	return abi.Range{Addr: entry + start + offset32(b[start:]), Len: uint64(binary.LittleEndian.Uint32(b[size:]))}, true
}

// offset32 is a signed offset of 32 bits.
func offset32(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }
