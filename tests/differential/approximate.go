package differential

import "vplay/replay/x86"

// Which results may differ from the CPU's, and by how much: those of x87 instructions
// whose last bit no manual defines. Everything else is compared exactly, in diff.go.

// approximate names the instructions whose last bit is the CPU maker's secret:
// the emulator rounds correctly, the CPU errs by up to one unit in the last
// place. Results are compared to that, and C1 (rounded up) is left out. All
// other state is compared exactly.
var approximate = map[string]bool{
	"F2XM1": true, "FYL2X": true, "FYL2XP1": true, "FPTAN": true, "FPATAN": true,
	"FSIN": true, "FCOS": true, "FSINCOS": true,
}

// maxError is how many units in the last place may be between the two.
const maxError = 1

// isClose says whether want and got differ only as far as approximate allows.
func isClose(k *Case, want, got *Outcome) bool {
	if k.Row <= 0 || !approximate[x86.Rows()[k.Row].Mnemonic] || want.Trap != got.Trap {
		return false
	}
	const c1 = 1 << 9
	w, g := want.Out, got.Out
	for i := range w.FPU.R {
		if nearF80(w.FPU.R[i], g.FPU.R[i]) {
			g.FPU.R[i] = w.FPU.R[i]
		}
	}
	g.FPU.SW = g.FPU.SW&^c1 | w.FPU.SW&c1
	return w == g && sameRuns(want.Changed, got.Changed)
}

// nearF80 says whether two numbers of the same sign are at most maxError units
// apart, across a power of two as well.
func nearF80(a, b x86.F80) bool {
	if a.E == b.E {
		d := a.M - b.M
		return d <= maxError || -d <= maxError
	}
	if a.E > b.E {
		a, b = b, a
	}
	return a.E+1 == b.E && ^a.M < maxError && b.M == 1<<63
}
