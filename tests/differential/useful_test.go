package differential

import (
	"testing"

	"vplay/replay/x86"
)

// alwaysTraps says whether a row ends in an exception whatever the operands.
func alwaysTraps(r *x86.Row) bool {
	return r.Attr("priv") || r.Mnemonic == "INT3" || r.Mnemonic == "INT1" || len(r.Mnemonic) >= 2 && r.Mnemonic[:2] == "UD"
}

// TestCasesAreUseful: a generator whose cases all fault tests nothing. At
// least one case in eight of each row must get through.
func TestCasesAreUseful(t *testing.T) {
	e := NewEmulator(regressIdentity)
	g := NewGenerator(11, regressIdentity.Vendor)
	for i := range x86.Rows() {
		r := &x86.Rows()[i]
		if i == 0 || WhyNotRun(r) != "" || alwaysTraps(r) {
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
