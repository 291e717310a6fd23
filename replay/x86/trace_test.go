package x86

import (
	"math/rand/v2"
	"testing"
)

// TestTraceEngine runs random programs and holds what is told to what is executed: each instruction once, in order, with its
// count, whoever executes it, and behind it whether it was.
func TestTraceEngine(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 12))
	rows := blockRows()
	for i := range 500 {
		code := randomProgram(rng, rows, 1+rng.IntN(30))
		c, _ := machine(rng.Uint64(), code, Vendor(i&1))
		told, done, failed := uint64(0), uint64(0), 0
		pending := true
		note := func(*CPU, *Inst, *uint32) {
			if c.RepIter == 0 {
				told++
			}
		}
		c.OnInst = func(in *Inst) { note(c, in, nil) }
		c.SetEngine(&TraceEngine{Before: note, Pending: &pending, After: func(_ *CPU, _ *Inst, e Exit) {
			if e != ExitFault {
				done++
			} else {
				failed++
			}
		}})
		x := c.Run(1000)
		if want := c.Retired; told != want && told != want+1 || x == ExitLimit && told != want {
			t.Fatalf("program %d, exit %v: %d instructions told, %d retired: % x", i, x, told, want, code)
		}
		if done > told || failed > 1 || failed == 1 && x != ExitFault {
			t.Fatalf("program %d, exit %v: %d executed and %d not of %d told: % x", i, x, done, failed, told, code)
		}
	}
}
