//go:build linux && amd64

package record

import (
	"testing"

	"vplay/checkpoint"
)

// TestPassStored: a thread that is stopped at REP STOS is taken over the iterations whose bytes are in memory already.
func TestPassStored(t *testing.T) {
	const value = 0x1122334455667788
	for _, c := range []struct {
		name, code, there string
		off, rcx, flags   uint64 // off is where RDI stands in its page
		size, done        uint64 // of an operand; iterations
	}{
		{"bytes", "\xf3\xaa", "\x88\x88\x88", 16, 1000, 0, 1, 3},
		{"longs", "\xf3\xab", "\x88\x77\x66\x55\x88\x77\x66\x55\x88\x77\x66", 16, 1000, 0, 4, 2},
		{"words", "\x66\xf3\xab", "\x88\x77\x88\x77\x88", 16, 1000, 0, 2, 2},
		{"quads", "\xf3\x48\xab", "\x88\x77\x66\x55\x44\x33\x22\x11\x88", 16, 1000, 0, 8, 1},
		{"REX that does not count", "\x48\xf3\xab", "\x88\x77\x66\x55\x88\x77\x66\x55", 16, 1000, 0, 4, 2},
		{"no iteration", "\xf3\xaa", "\x87\x88", 16, 1000, 0, 1, 0},
		{"the last stays", "\xf3\xaa", "\x88\x88\x88", 16, 3, 0, 1, 2},
		{"no count", "\xf3\xaa", "\x88\x88\x88", 16, 0, 0, 1, 0},
		{"to the page's end", "\xf3\xaa", "\x88\x88\x88", 4094, 1000, 0, 1, 2},
		{"backwards", "\xf3\xaa", "\x88\x88\x88", 16, 1000, flagDF, 1, 0},
		{"without REP", "\xaa", "\x88\x88\x88", 16, 1000, 0, 1, 0},
		{"MOVS", "\xf3\xa4", "\x88\x88\x88", 16, 1000, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, th := newFake(t, Options{Keep: KeepCrash})
			clear(f.pages[fakeData])
			f.store(fakeText+0x40, c.code)
			f.store(fakeData+c.off, c.there[:min(uint64(len(c.there)), checkpoint.PageSize-c.off)])
			f.regs.Rip, f.regs.Rdi, f.regs.Rcx, f.regs.Rax, f.regs.Eflags = fakeText+0x40, fakeData+c.off, c.rcx, value, c.flags
			if err := th.readRegs(); err != nil {
				t.Fatal(err)
			}
			want := f.regs
			want.Rdi += c.done * c.size
			want.Rcx -= c.done
			if err := th.passStored(); err != nil {
				t.Fatal(err)
			}
			if th.regs != want || f.regs != want {
				t.Errorf("rdi %#x, rcx %d, want %#x, %d", th.regs.Rdi, th.regs.Rcx, want.Rdi, want.Rcx)
			}
		})
	}
}
