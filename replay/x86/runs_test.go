package x86

import (
	"math/rand/v2"
	"testing"
)

// TestRunEngine runs random programs and holds the runs to what is executed: each instruction that retires is in one, in order.
func TestRunEngine(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	rows := blockRows()
	longer := 0
	for i := range 500 {
		code := randomProgram(rng, rows, 1+rng.IntN(30))
		seed := rng.Uint64()
		c, _ := machine(seed, code, Vendor(i&1))
		var want, got []uint64
		c.SetEngine(StepEngine{})
		retired, pc := uint64(0), uint64(0)
		c.OnInst = func(*Inst) { retired, pc = c.Retired, c.RIP }
		c.AfterInst = func(*Inst, Exit) {
			if c.Retired > retired {
				want = append(want, pc)
			}
		}
		x := c.Run(1000)

		d, _ := machine(seed, code, Vendor(i&1))
		e := &RunEngine{}
		d.SetEngine(e)
		e.Tell(d, func(r *Run) {
			at := r.PC
			for k := range r.N {
				got = append(got, at)
				at += uint64(r.Inst(k).Len)
			}
			if r.N > 1 {
				longer++
			}
			if d.Retired != uint64(len(got)) {
				t.Fatalf("program %d: %d retired, %d told", i, d.Retired, len(got))
			}
			*r.Tag++
		})
		if y := d.Run(1000); y != x || len(got) != len(want) {
			t.Fatalf("program %d: %v, %d instructions; one by one %v, %d", i, y, len(got), x, len(want))
		}
		for k := range want {
			if got[k] != want[k] {
				t.Fatalf("program %d: instruction %d at %#x, not %#x", i, k, got[k], want[k])
			}
		}
	}
	if longer < 100 {
		t.Errorf("%d runs of several instructions", longer)
	}
}
