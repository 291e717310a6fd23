package e2e

import (
	"debug/elf"
	"path/filepath"
	"testing"

	"vplay/replay/observe"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

// TestObserveCalls follows calls to their returns, over the ends of intervals too, and compares arguments
// and results with what the program computes.
func TestObserveCalls(t *testing.T) {
	t.Parallel()
	g := compile(t, "returns", "-O1", "-static", "-no-pie", "-pthread", "-foptimize-sibling-calls", "-fno-inline", "-fno-ipa-icf")
	rec := g.record(t, "--keep", "always", "--interval", "5ms", "--force-every", "5", "--no-slim")
	s := tool.OpenSession(t, rec)
	if n := len(s.Rec.Intervals()); n < 2 {
		t.Errorf("only %d interval", n)
	}
	names := map[uint64]string{}
	var entries []uint64
	f, err := elf.Open(filepath.Join(g.dir, "symbols", "returns"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, sym := range list {
		switch sym.Name {
		case "leaf", "tail", "deep", "jumps":
			names[sym.Value] = sym.Name
			entries = append(entries, sym.Value)
		}
	}
	type called struct {
		name string
		arg  uint64
	}
	var calls observe.Calls[called]
	entered, left := map[string]int{}, map[string]int{}
	observeAll(t, s, func(*observe.View) *observe.Observer {
		return &observe.Observer{
			Functions: entries,
			Enter: func(v *observe.View) {
				c := v.CPU()
				name := names[c.RIP]
				entered[name]++
				calls.Enter(int32(v.TID()), c.R[x86.RSP], called{name, c.R[x86.RDI]})
			},
			Leave: func(v *observe.View, slot uint64) {
				c, ok := calls.Leave(int32(v.TID()), slot)
				if !ok {
					return
				}
				left[c.name]++
				want := map[string]uint64{"leaf": c.arg * 3, "tail": (c.arg + 1) * 3, "deep": c.arg + 1}[c.name]
				if got := v.CPU().R[x86.RAX]; got != want {
					t.Errorf("%s(%d) gave %d, want %d", c.name, c.arg, got, want)
				}
			},
		}
	})
	want := map[string]int{"leaf": 410, "tail": 405, "deep": 10005, "jumps": 505}
	for name, n := range want {
		if entered[name] != n {
			t.Errorf("%s: entered %d times, want %d", name, entered[name], n)
		}
	}
	// A tail call has the slot of the function that makes it: the one that was entered last returns.
	if left["deep"] != 10005 || left["jumps"] != 0 || left["leaf"] != 410 {
		t.Errorf("left: %v", left)
	}
}
