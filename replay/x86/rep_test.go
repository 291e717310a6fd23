package x86

import "testing"

// TestStepRep compares iterations taken in one go with those taken one by one,
// also up to a fault, and where nothing may be taken.
func TestStepRep(t *testing.T) {
	for _, x := range []struct {
		name string
		code []byte
		rcx  uint64
		rdi  uint64
		n    uint64
		want uint64
	}{
		{"movsb", []byte{0xf3, 0xa4}, 100, testData + 200, 60, 60},
		{"movsb backwards over itself", []byte{0xf3, 0xa4}, 100, testData + 1, 99, 99},
		{"stosq", []byte{0xf3, 0x48, 0xab}, 50, testData + 8, 49, 49},
		{"stosq to a fault", []byte{0xf3, 0x48, 0xab}, 100, testTop - 40, 50, 5},
		{"all of them", []byte{0xf3, 0xa4}, 100, testData + 200, 100, 0},
		{"lodsb", []byte{0xf3, 0xac}, 100, testData + 200, 60, 0},
		{"no prefix", []byte{0xa4}, 100, testData + 200, 60, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			start := func() (*CPU, *testBus) {
				c, bus := program(append(x.code, 0x0f, 0x0b)...)
				c.R[RAX], c.R[RCX], c.R[RSI], c.R[RDI] = 0x1122334455667788, x.rcx, testData, x.rdi
				bus.put(testData, []byte("some bytes to be moved about"))
				return c, bus
			}
			got, gotBus := start()
			want, wantBus := start()
			var began, ended uint64 // as those who trace are told
			got.OnInst = func(*Inst) { began = got.R[RCX] }
			got.AfterInst = func(*Inst, Exit) { ended = got.R[RCX] }
			if n := got.StepRep(x.n); n != x.want {
				t.Fatalf("took %d, want %d", n, x.want)
			}
			if began-ended != x.want {
				t.Errorf("told of %d iterations, want %d", began-ended, x.want)
			}
			for range x.want {
				want.Step()
			}
			if got.R != want.R || got.RIP != want.RIP || got.RepIter != want.RepIter || got.Retired != 0 {
				t.Errorf("registers %x rip %#x iterations %d, want %x %#x %d", got.R, got.RIP, got.RepIter, want.R, want.RIP, want.RepIter)
			}
			for a, p := range wantBus.pages {
				if gotBus.pages[a].b != p.b {
					t.Errorf("page %#x differs", a)
				}
			}
		})
	}
}
