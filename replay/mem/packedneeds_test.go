package mem

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestPackedNeeds packs random needs and compares what Pages and Objects yield with them.
func TestPackedNeeds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := NewNeeds()
		for range rng.IntN(20) {
			m := n.Page(rng.Uint64N(1<<35) * PageSize)
			if rng.IntN(3) == 0 {
				m = n.Object(ObjectPage{rng.Uint32(), rng.Uint64()})
			}
			switch rng.IntN(4) {
			case 0:
				m.Fill()
			case 1: // nothing
			default:
				for range rng.IntN(30) {
					o := rng.IntN(PageSize)
					m.AddRange(o, 1+rng.IntN(min(PageSize-o, 100)))
				}
			}
		}
		p := n.Pack()
		got, last := NewNeeds(), uint64(0)
		for a, m := range p.Pages() {
			if a < last {
				t.Fatalf("%#x behind %#x", a, last)
			}
			got.Pages[a], last = m, a
		}
		maps.Insert(got.Objects, p.Objects())
		same := func(a, b *Mask) bool { return *a == *b }
		if !maps.EqualFunc(got.Pages, n.Pages, same) || !maps.EqualFunc(got.Objects, n.Objects, same) {
			t.Fatalf("%d and %d pages, packed %d and %d", len(n.Pages), len(n.Objects), len(got.Pages), len(got.Objects))
		}
		if len(n.Pages)+len(n.Objects) > 0 && p.Size() == 0 {
			t.Fatal("it takes no memory")
		}
	}
}
