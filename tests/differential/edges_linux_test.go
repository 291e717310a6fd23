//go:build linux && amd64

package differential

import (
	"testing"

	"vplay/tests/need"
)

// TestEdges walks the memory operand of every EVEX form over the end of the canonical
// addresses, of mapped and of writable memory, and over the wraps, byte by byte.
func TestEdges(t *testing.T) {
	s := newSession(t)
	zen4 := references[0]
	need.Machine(t, "an AMD CPU of family 25, model 16 to 31: no other's order of faults in AVX-512 is known", zen4.isLike(s.Emulator.ID()))
	rows := EdgeRows()
	each, step := max(1, *casesFlag/(len(rows)*len(memoryEdges)*66)), 1
	if testing.Short() {
		step = 5
	}
	g := NewGenerator(*seedFlag, s.Emulator.ID())
	y, ran := newTally(), map[int]int{}
	for _, r := range rows {
		var batch []*Case
		for _, edge := range memoryEdges {
			for before := -1; before <= 64; before += step {
				for range each {
					batch = append(batch, g.Edge(r, edge, before))
				}
			}
		}
		l, err := s.Check(batch)
		if err != nil {
			t.Fatalf("%s: %v", rowName(r), err)
		}
		y.add(l)
		ran[r] = len(batch)
	}
	total := 0
	for _, n := range ran {
		total += n
	}
	t.Logf("%d rows, %d cases, %d differ, %v", len(rows), total, y.differ(), s.LeftOut)
	if len(y.first) > 0 {
		t.Errorf("%d rows differ from the CPU\n%s", len(y.first), y.report(t, s, ran))
	}
}
