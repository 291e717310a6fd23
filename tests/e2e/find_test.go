package e2e

import (
	"context"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/tests/internal/tool"
)

// TestFind asks what was executed and accessed, and compares with a plain run
// through the recording that looks at every step.
func TestFind(t *testing.T) {
	t.Parallel()
	rec := compile(t, "moves", "-O0", "-static").record(t, "--keep", "always", "--interval", "5ms", "--force-every", "5", "--no-slim")
	w := newWalker(t, tool.OpenTimeline(t, rec, 256<<20), 7)
	ctx := context.Background()
	places, accesses := w.accesses(12)
	for range 60 {
		end := w.r.IntN(len(w.all)-1) + 1
		q := replay.Search{Most: 1 + w.r.IntN(20), Oldest: w.r.IntN(3) == 0, Before: w.all[end].pos}
		if w.r.IntN(4) == 0 {
			q.Before, end = checkpoint.Position{}, len(w.all)
		}
		var want []int
		if w.r.IntN(2) == 0 {
			at := w.r.IntN(len(w.all))
			if w.r.IntN(4) == 0 { // where a signal comes
				at = max(0, slices.IndexFunc(w.all, func(m moment) bool { return m.signal }))
			}
			rip := w.all[at].regs.RIP
			q.Exec = []uint64{rip}
			for i := range end {
				if w.isExec(i, rip) {
					want = append(want, i)
				}
			}
		} else {
			x := places[w.r.IntN(len(places))]
			x.Kind = []mem.WatchKind{mem.WatchWrite, mem.WatchRead}[w.r.IntN(2)]
			q.Watches = []mem.Watch{x}
			kind := x.Kind
			x.Kind = mem.WatchAccess
			for i, did := range accesses[x] {
				if did&kind != 0 && i < end {
					want = append(want, i)
				}
			}
		}
		if q.Oldest {
			want = want[:min(len(want), q.Most)]
		} else {
			want = want[max(0, len(want)-q.Most):]
		}
		w.find(ctx, &q, want)
	}
}

// find makes a search and compares the answers with moments.
func (w *walker) find(ctx context.Context, q *replay.Search, want []int) {
	w.t.Helper()
	got, err := w.tl.Find(ctx, q)
	if err != nil {
		w.t.Fatal(err)
	}
	w.check("find", w.at) // it has not moved
	if len(got) != len(want) {
		w.t.Fatalf("%+v: %d moments, want %d", q, len(got), len(want))
	}
	for i, m := range got {
		if x := w.all[want[i]]; m.Pos != x.pos || m.RIP != x.regs.RIP || m.R != x.regs.R {
			w.t.Fatalf("%+v: answer %d is at %s (rip %#x), want %s (rip %#x)", q, i, m.Pos, m.RIP, x.pos, x.regs.RIP)
		}
	}
}

// accesses chooses n places near the stack and steps through everything once;
// it returns what the step from each moment did to each place.
func (w *walker) accesses(n int) (places []mem.Watch, did map[mem.Watch][]mem.WatchKind) {
	did = map[mem.Watch][]mem.WatchKind{}
	for range n {
		x := mem.Watch{Addr: w.all[w.r.IntN(len(w.all))].regs.R[4] - uint64(w.r.IntN(64)), Len: 1 + uint64(w.r.IntN(8)), Kind: mem.WatchAccess}
		places = append(places, x)
		did[x] = make([]mem.WatchKind, len(w.all))
	}
	ctx := context.Background()
	if err := w.tl.Seek(ctx, w.tl.Begin()); err != nil {
		w.t.Fatal(err)
	}
	w.tl.SetBreakpoints(nil, nil)
	w.tl.SetWatches(places)
	for i := range len(w.all) - 1 {
		s, err := w.tl.StepForward(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, h := range s.Hits {
			kind := mem.WatchRead
			if h.Access == mem.Store {
				kind = mem.WatchWrite
			}
			did[h.Watch][i] |= kind
		}
	}
	w.tl.SetWatches(nil)
	w.check("looking", len(w.all)-1)
	return places, did
}

// TestSeeks goes to events and shares of the recording.
func TestSeeks(t *testing.T) {
	t.Parallel()
	rec := compile(t, "moves", "-O0", "-static").record(t, "--keep", "always", "--interval", "5ms", "--no-slim")
	tl := tool.OpenTimeline(t, rec, 256<<20)
	ctx := context.Background()
	n := tl.EventCount(^uint32(0))
	last := tl.Begin()
	for i := range n {
		if err := tl.SeekEvent(ctx, i); err != nil {
			t.Fatal(err)
		}
		if p := tl.Position(); p.Compare(last) < 0 {
			t.Fatalf("event %d is at %s, the one before at %s", i, p, last)
		}
		last = tl.Position()
	}
	if err := tl.SeekEvent(ctx, n); err == nil {
		t.Error("an event behind the last was found")
	}
	last = checkpoint.Position{}
	for i := range 21 {
		if err := tl.SeekFraction(ctx, float64(i)/20); err != nil {
			t.Fatal(err)
		}
		p := tl.Position()
		if p.Compare(last) < 0 || i == 0 && p != tl.Begin() || (i == 20) != tl.AtEnd() {
			t.Fatalf("%d/20 is at %s, the one before at %s", i, p, last)
		}
		last = p
	}
}
