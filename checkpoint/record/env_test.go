//go:build linux && amd64

package record

import (
	"bytes"
	"testing"
)

// TestLookahead reads words and strings in any order, at the end of memory too, as each alone would be read.
func TestLookahead(t *testing.T) {
	const base = 0x7000
	mem := bytes.Repeat([]byte("abcdefg\x00"), 5000)
	copy(mem[16000:], bytes.Repeat([]byte{'x'}, 2*stringLimit)) // longer than a string may be, and across the end of a block
	sp := &space{mem: partMemory{base, mem}}
	l := lookahead{space: sp}
	end := uint64(base + len(mem))
	for _, addr := range []uint64{base, base + 8, base + 3, base + 15990, base + 16001, base + 16000 + 2*stringLimit - 5, base + 30000, end - 8, end - 3, base, end - 12, end, end + 100} {
		want, _ := sp.readString(addr)
		if got := l.string(addr); got != want {
			t.Errorf("string at %#x: %d bytes, want %d", addr, len(got), len(want))
		}
		var w [8]byte
		all := sp.readMem(addr, w[:]) == len(w)
		if v, ok := l.word(addr); ok != all || ok && v != le64(w[:]) {
			t.Errorf("word at %#x: %#x, %t; want %#x, %t", addr, v, ok, le64(w[:]), all)
		}
	}
}

// partMemory is memory at an address.
type partMemory struct {
	base uint64
	b    []byte
}

func (m partMemory) readAt(b []byte, addr uint64) (int, error) {
	if addr < m.base || addr-m.base >= uint64(len(m.b)) {
		return 0, nil
	}
	return copy(b, m.b[addr-m.base:]), nil
}
func (partMemory) writeAt([]byte, uint64) (int, error) { return 0, nil }
func (partMemory) close()                              {}
