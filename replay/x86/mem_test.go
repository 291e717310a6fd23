package x86

import (
	"fmt"
	"testing"
)

// TestFlushTLB has pages replaced, as when a snapshot is restored: behind a flush no load and no
// store goes to the former ones, however many there were, and in whatever order they were used.
func TestFlushTLB(t *testing.T) {
	const from = 0x100000
	named := len(fills{}.at)
	for _, n := range []int{1, named - 1, named, named + 1, named + 2, 2 * named, tlbSize, tlbSize + 9} {
		for _, use := range []struct {
			name        string
			load, store bool
		}{{"loads", true, false}, {"stores", false, true}, {"both", true, true}} {
			t.Run(fmt.Sprint(n, " ", use.name), func(t *testing.T) {
				bus := newTestBus()
				c := New(bus, nil)
				for round := range 3 { // few fills may come behind many, and many behind few
					pages := n
					if round == 1 {
						pages = 1
					}
					for i := range pages {
						a := uint64(from + i*pageSize)
						bus.pages[a] = &testPage{r: true, w: true}
						if use.load && c.loadPage(a) != &bus.pages[a].b || use.store && c.storePage(a) != &bus.pages[a].b {
							t.Fatalf("round %d: page %d is the former one", round, i)
						}
					}
					c.FlushTLB()
					for i := range uint64(tlbSize) {
						if c.rtlb[i].page != nil || c.wtlb[i].page != nil || c.rtlb[i].base != emptyBase(i) || c.wtlb[i].base != emptyBase(i) {
							t.Fatalf("round %d: entry %d is not empty", round, i)
						}
					}
				}
			})
		}
	}
}
