package replay

import (
	"slices"
	"testing"

	"vplay/checkpoint"
)

// TestNewestOf joins what the parts of a scan have found: a breakpoint at which one part ends
// and the next one begins is there once, and no older stop is lost for it.
func TestNewestOf(t *testing.T) {
	at := func(instrs ...uint64) (list []candidate) {
		for _, n := range instrs {
			p := checkpoint.Position{Instr: n}
			list = append(list, candidate{pos: p, after: p})
		}
		return list
	}
	for _, c := range []struct {
		n     int
		lists [][]candidate
		want  []uint64
	}{
		{3, [][]candidate{at(1, 2, 3), at(3), nil}, []uint64{1, 2, 3}},
		{3, [][]candidate{at(1, 2, 3), at(3, 4), at(4, 5)}, []uint64{3, 4, 5}},
		{1, [][]candidate{at(3), at(3), nil}, []uint64{3}},
		{2, [][]candidate{nil, at(3), at(7, 8)}, []uint64{7, 8}},
		{2, nil, nil},
	} {
		var got []uint64
		for _, x := range newestOf(c.n, c.lists...) {
			got = append(got, x.after.Instr)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d of %v: %d, want %d", c.n, c.lists, got, c.want)
		}
	}
}
