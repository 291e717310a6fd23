package loader

import (
	"testing"

	"vplay/checkpoint"
	"vplay/loader/image/imagetest"
)

// FuzzResolver names addresses and walks a stack in modules made to do harm.
func FuzzResolver(f *testing.F) {
	f.Add(imagetest.Flat())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, maps := imagetest.Hostile(b)
		r := NewResolver(maps, m, NewModuleFiles(NewSymbols(nil, false)))
		var regs checkpoint.Regs
		regs.RIP, regs.R[4], regs.R[5] = imagetest.Base+0x1012, imagetest.Base+0x2100, imagetest.Base+0x2110
		if n := len(r.Backtrace(&regs, 32)); n == 0 || n > 32 {
			t.Fatalf("%d frames", n)
		}
		_ = r.At(regs.RIP).String()
	})
}

// TestUnknownFile: an address in a file whose ELF header was not captured is said by its place in the file, not in the
// mapping, which begins in the midst of the file.
func TestUnknownFile(t *testing.T) {
	maps := []checkpoint.Mapping{
		{Start: 0x7000, End: 0x9000, Object: 3, Offset: 0x26000, Name: "/lib/libc.so.6"},
		{Start: 0xa000, End: 0xb000, Name: "[heap]"},
	}
	r := NewResolver(maps, imagetest.Memory{}, NewModuleFiles(NewSymbols(nil, false)))
	for addr, want := range map[uint64]string{0x824a: "libc.so.6+0x2724a", 0xa010: "[heap]+0x10", 0x100: "nothing is mapped there"} {
		if got := r.At(addr).String(); got != want {
			t.Errorf("%#x is %s, want %s", addr, got, want)
		}
	}
}
