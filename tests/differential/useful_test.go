package differential

import (
	"flag"
	"testing"

	"vplay/replay/x86"
)

var seedFlag = flag.Uint64("seed", 1, "seed of random cases")

// alwaysTraps says whether a row ends in an exception whatever the operands. Only
// AMD has SSE4A, XEND is outside of a transaction.
func alwaysTraps(r *x86.Row, id *x86.CPUIdentity) bool {
	if id.Lacks(r) || r.Mnemonic == "XEND" {
		return true
	}
	return r.Attr("priv") || r.Mnemonic == "INT3" || r.Mnemonic == "INT1" || len(r.Mnemonic) >= 2 && r.Mnemonic[:2] == "UD"
}

// TestCasesAreUseful: a generator whose cases all fault tests nothing. At
// least one case in three of each row must get through.
func TestCasesAreUseful(t *testing.T) { eachReference(t, casesAreUseful) }

func casesAreUseful(t *testing.T, id *x86.CPUIdentity) {
	e := NewEmulator(id)
	g := NewGenerator(*seedFlag, id)
	for i := range x86.Rows() {
		r := &x86.Rows()[i]
		if i == 0 || WhyNotRun(r) != "" || alwaysTraps(r, id) {
			continue
		}
		const n = 64
		through := 0
		for range n {
			k := g.Case(i)
			o := e.Run(k)
			// A branch that lands on INT3 got through.
			if !o.Trap.Taken || r.Attr("end") && o.Out.RIP != k.In.RIP {
				through++
			}
		}
		if through < n/3 {
			t.Errorf("%s: %d of %d cases get through", rowName(i), through, n)
		}
	}
}
