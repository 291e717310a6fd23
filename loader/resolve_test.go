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
