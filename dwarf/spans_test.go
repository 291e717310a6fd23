package dwarf

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSpans compares lookups with a way through all ranges.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s spans
		wide := 1 + r.Uint64N(40)
		for i := range r.IntN(60) {
			for range 1 + r.IntN(3) {
				low := r.Uint64N(400)
				s = append(s, span{low: low, high: low + r.Uint64N(wide), of: i})
			}
		}
		s.order()
		for pc := range uint64(450) {
			var want []int
			for _, k := range s {
				if pc >= k.low && pc < k.high {
					want = append(want, k.of)
				}
			}
			slices.Sort(want)
			if got, _ := s.at(pc); !slices.Equal(got, slices.Compact(want)) {
				t.Fatalf("at %d: %v, want %v", pc, got, slices.Compact(want))
			}
		}
	}
}

// TestSpansApart wants a lookup among ranges that do not overlap to look at no more than two.
func TestSpansApart(t *testing.T) {
	var s spans
	for i := range 100000 {
		s = append(s, span{low: uint64(16 * i), high: uint64(16*i + 15), of: i})
	}
	s.order()
	for pc := range uint64(64) {
		if found, looked := s.at(16*50000 + pc); looked > 2 || len(found) > 1 {
			t.Errorf("%v, %d looked at", found, looked)
		}
	}
}
