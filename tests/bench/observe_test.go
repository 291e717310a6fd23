package bench

import (
	"context"
	"os"
	"testing"
	"time"

	"vplay/checkpoint"
	"vplay/replay/observe"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

// TestObserveFigures measures package observe on the recording that VPLAY_OBSERVE names: what
// replay/observe/RATIONALE.md has.
func TestObserveFigures(t *testing.T) {
	path := os.Getenv("VPLAY_OBSERVE")
	if path == "" {
		return // it takes minutes
	}
	s := tool.OpenSession(t, path)
	ids := []uint32{}
	for _, i := range s.Rec.Intervals() {
		ids = append(ids, i.ID)
	}
	var n [64]struct {
		n uint64
		_ [7]uint64
	}
	measure := func(name string, o func(count *uint64) *observe.Observer) {
		t.Run(name, func(t *testing.T) {
			clear(n[:])
			began := time.Now()
			var insns [64]uint64
			err := observe.Run(context.Background(), s, observe.Options{Intervals: ids, Begin: func(v *observe.View) (*observe.Observer, error) {
				ob := o(&n[v.Position().Interval%64].n)
				ob.Done = func(v *observe.View) { insns[v.Position().Interval%64] = v.Position().Instr }
				return ob, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			sum, all := uint64(0), uint64(0)
			for i := range n {
				sum, all = sum+n[i].n, all+insns[i]
			}
			t.Logf("%-30s %10.2f s  %12d callbacks  %7.2f M/s  %8.1f M insn/s", name, took.Seconds(), sum, float64(sum)/1e6/took.Seconds(), float64(all)/1e6/took.Seconds())
		})
	}
	measure("nothing", func(*uint64) *observe.Observer { return &observe.Observer{} })
	measure("events", func(n *uint64) *observe.Observer {
		return &observe.Observer{Event: func(*observe.View, *checkpoint.Event) { *n++ }}
	})
	measure("instructions", func(n *uint64) *observe.Observer {
		return &observe.Observer{Instr: func(*observe.View, *x86.Inst) { *n++ }}
	})
	measure("runs", func(n *uint64) *observe.Observer {
		return &observe.Observer{Run: func(*observe.View, *x86.Run) { *n++ }}
	})
	measure("branches", func(n *uint64) *observe.Observer {
		return &observe.Observer{Branch: func(*observe.View, *observe.Branch) { *n++ }}
	})
	measure("accesses in lists without bytes", func(n *uint64) *observe.Observer {
		return &observe.Observer{NoData: true, Accesses: func(_ *observe.View, list []observe.PastAccess) { *n += uint64(len(list)) }}
	})
	measure("accesses in lists", func(n *uint64) *observe.Observer {
		return &observe.Observer{Accesses: func(_ *observe.View, list []observe.PastAccess) { *n += uint64(len(list)) }}
	})
	measure("accesses in lists, bytes looked at", func(n *uint64) *observe.Observer {
		return &observe.Observer{Accesses: func(v *observe.View, list []observe.PastAccess) {
			for i := range list {
				if data, _ := v.Bytes(&list[i]); len(data) > 0 {
					*n++
				}
			}
		}}
	})
	measure("accesses without bytes", func(n *uint64) *observe.Observer {
		return &observe.Observer{AllAccesses: true, NoData: true, Access: func(*observe.View, *observe.Access) { *n++ }}
	})
	measure("accesses", func(n *uint64) *observe.Observer {
		return &observe.Observer{AllAccesses: true, Access: func(*observe.View, *observe.Access) { *n++ }}
	})
}
