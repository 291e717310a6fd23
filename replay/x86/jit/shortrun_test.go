//go:build linux && amd64

package jit

import "testing"

// TestShortRuns: runs of any length leave the state that the interpreter leaves. Those with room for fewer than
// MinRun instructions translate nothing, and what was translated by others goes on behind them.
func TestShortRuns(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	want, c := loopForever(), loopForever()
	e := pool.Engine(c)
	defer e.Close()
	e.Threshold = 0
	c.SetEngine(e)
	begin(e)
	run := func(n uint64) {
		t.Helper()
		if x, y := want.Run(want.Retired+n), c.Run(c.Retired+n); x != y || want.State != c.State {
			t.Fatalf("%d instructions: exit %d, %+v; by the interpreter %d, %+v", n, y, c.State, x, want.State)
		}
	}
	for n := uint64(1); n < e.MinRun; n++ {
		run(n)
	}
	if e.Stats.Units != 0 {
		t.Errorf("short runs have translated %d units", e.Stats.Units)
	}
	run(e.MinRun)
	unit := e.entries.unit(textAt)
	if unit == nil {
		t.Fatal("a run that is long enough has translated nothing")
	}
	for n := uint64(1); n < 3*e.MinRun; n += 7 {
		run(n)
	}
	if e.entries.unit(textAt) != unit || unit.dead {
		t.Error("what was translated is gone behind short runs")
	}
}
