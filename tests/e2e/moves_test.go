package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

// moment is what a settled moment looks like.
type moment struct {
	pos    checkpoint.Position
	regs   checkpoint.Regs
	fault  bool // a signal or fault is pending
	signal bool // a signal is
}

func here(tl *tool.Timeline) moment {
	m := tl.Machine()
	e := m.Pending()
	return moment{tl.Position(), loader.Regs(&m.CPU.State), e != nil, e != nil && e.Kind == checkpoint.EventSignal}
}

// history steps through the whole recording and returns every settled moment.
func history(t testing.TB, tl *tool.Timeline) []moment {
	t.Helper()
	ctx := context.Background()
	if err := tl.Seek(ctx, tl.Begin()); err != nil {
		t.Fatal(err)
	}
	all := []moment{here(tl)}
	for {
		s, err := tl.StepForward(ctx)
		if err != nil {
			t.Fatalf("step %d: %v", len(all), err)
		}
		if s.Edge {
			return all
		}
		now := here(tl)
		if last := all[len(all)-1]; now.pos.Compare(last.pos) <= 0 {
			t.Fatalf("a step forward went from %s to %s", last.pos, now.pos)
		}
		all = append(all, now)
	}
}

// walker moves a timeline at random and knows where it must be.
type walker struct {
	t     *testing.T
	tl    *tool.Timeline
	all   []moment
	index map[checkpoint.Position]int
	at    int
	r     *rand.Rand

	breaks []uint64
	watch  []mem.Watch
	hit    []bool // by moment: the step to it touched the watched bytes
}

func newWalker(t *testing.T, tl *tool.Timeline, seed uint64) *walker {
	w := &walker{t: t, tl: tl, all: history(t, tl), index: map[checkpoint.Position]int{}, r: rand.New(rand.NewPCG(seed, 1))}
	for i, m := range w.all {
		w.index[m.pos] = i
	}
	w.at = len(w.all) - 1
	return w
}

// check compares the cursor with where the walker must be.
func (w *walker) check(what string, want int) {
	w.t.Helper()
	got := here(w.tl)
	if got != w.all[want] {
		w.t.Fatalf("%s from %s: at %s (rip %#x, pending %t), want %s (rip %#x, pending %t)", what, w.all[w.at].pos,
			got.pos, got.regs.RIP, got.fault, w.all[want].pos, w.all[want].regs.RIP, w.all[want].fault)
	}
	w.at = want
}

// arm chooses breakpoints at places that are executed, some of them often, and
// a watch on a byte that is, by a linear scan of the whole history.
func (w *walker) arm() {
	w.breaks = w.breaks[:0]
	for range w.r.IntN(4) {
		w.breaks = append(w.breaks, w.all[w.r.IntN(len(w.all))].regs.RIP)
	}
	w.tl.SetBreakpoints(w.breaks, nil)
	w.hit = make([]bool, len(w.all))
	w.watch = nil
	if w.r.IntN(2) == 0 {
		at := w.all[w.r.IntN(len(w.all))].regs.R[x86.RSP] - uint64(w.r.IntN(64))
		w.watch = []mem.Watch{{Addr: at, Len: 1 + uint64(w.r.IntN(8)), Kind: mem.WatchKind(1 + w.r.IntN(3))}}
	}
	w.tl.SetWatches(w.watch)
	if w.watch == nil {
		return
	}
	ctx := context.Background()
	if err := w.tl.Seek(ctx, w.tl.Begin()); err != nil {
		w.t.Fatal(err)
	}
	for i := 1; i < len(w.all); i++ {
		s, err := w.tl.StepForward(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		w.hit[i] = s.Reason == replay.StopWatch
	}
	w.check("arming", len(w.all)-1)
}

// stops reports whether a run stops at moment i: coming from before it when
// forward, from behind it when not.
func (w *walker) stops(i int, forward bool) bool {
	m := &w.all[i]
	if m.fault && i < len(w.all)-1 || forward && w.hit[i] || !forward && i+1 < len(w.all) && w.hit[i+1] {
		return true
	}
	for _, b := range w.breaks {
		if m.regs.RIP == b && (i == 0 || !w.insideRep(i)) {
			return true
		}
	}
	return false
}

// insideRep reports whether moment i is between two iterations of a REP
// instruction: the same count and instruction as the one before, and no event.
func (w *walker) insideRep(i int) bool {
	a, b := &w.all[i-1], &w.all[i]
	return a.pos.Interval == b.pos.Interval && a.pos.Instr == b.pos.Instr && a.regs.RIP == b.regs.RIP && a.regs.R[x86.RCX] == b.regs.R[x86.RCX]+1
}

// isExec reports whether the instruction at pc begins at moment i. Where a signal is
// pending its frame comes first, and the instruction behind the handler.
func (w *walker) isExec(i int, pc uint64) bool {
	return w.all[i].regs.RIP == pc && !w.all[i].signal && (i == 0 || !w.insideRep(i))
}

func (w *walker) move() {
	ctx := context.Background()
	var err error
	want := w.at
	var what string
	switch k := w.r.IntN(10); {
	case k < 3:
		what, want = "stepi", min(w.at+1, len(w.all)-1)
		_, err = w.tl.StepForward(ctx)
	case k < 6:
		what, want = "reverse-stepi", max(w.at-1, 0)
		_, err = w.tl.StepBack(ctx)
	case k == 6:
		what = "continue"
		for want < len(w.all)-1 {
			if want++; w.stops(want, true) {
				break
			}
		}
		_, err = w.tl.Continue(ctx)
	case k == 7:
		what = "reverse-continue"
		for want > 0 {
			if want--; w.stops(want, false) {
				break
			}
		}
		_, err = w.tl.ReverseContinue(ctx)
	default:
		want = w.r.IntN(len(w.all))
		what = fmt.Sprintf("seek %s", w.all[want].pos)
		err = w.tl.Seek(ctx, w.all[want].pos)
	}
	if err != nil {
		w.t.Fatalf("%s from %s: %v", what, w.all[w.at].pos, err)
	}
	w.check(fmt.Sprintf("%s (breaks %#x, watch %v)", what, w.breaks, w.watch), want)
}

// TestRandomMoves makes 10,000 moves and compares the place and the registers
// with those of a plain run through the recording.
func TestRandomMoves(t *testing.T) {
	t.Parallel()
	rec := compile(t, "moves", "-O0", "-static").record(t, "--keep", "always", "--interval", "5ms", "--force-every", "5", "--no-slim")
	w := newWalker(t, tool.OpenTimeline(t, rec, 256<<20), 1)
	t.Logf("%d moments in %d intervals", len(w.all), len(w.tl.Intervals()))
	for i := range 10_000 {
		if i%1000 == 0 {
			w.arm()
		}
		w.move()
	}
}

// TestStepsAreInverse steps n back and n forward from many places.
func TestStepsAreInverse(t *testing.T) {
	t.Parallel()
	rec := compile(t, "moves", "-O1", "-static").record(t, "--keep", "always", "--interval", "5ms", "--no-slim")
	w := newWalker(t, tool.OpenTimeline(t, rec, 4<<20), 2)
	ctx := context.Background()
	for range 60 {
		at := w.r.IntN(len(w.all))
		if err := w.tl.Seek(ctx, w.all[at].pos); err != nil {
			t.Fatal(err)
		}
		w.check("seek", at)
		n := w.r.IntN(min(at, 200) + 1)
		for range n {
			if _, err := w.tl.StepBack(ctx); err != nil {
				t.Fatal(err)
			}
			w.check("reverse-stepi", w.at-1)
		}
		for range n {
			if _, err := w.tl.StepForward(ctx); err != nil {
				t.Fatal(err)
			}
			w.check("stepi", w.at+1)
		}
	}
}

// TestBreakBeforeRep goes back from between two iterations of a REP instruction
// to a breakpoint on it: that is where it began, and Continue does not stop at
// it again.
func TestBreakBeforeRep(t *testing.T) {
	t.Parallel()
	rec := compile(t, "moves", "-O0", "-static").record(t, "--keep", "always", "--no-slim")
	w := newWalker(t, tool.OpenTimeline(t, rec, 64<<20), 3)
	ctx := context.Background()
	first := 1
	for !w.insideRep(first) || !w.insideRep(first+9) {
		first++
	}
	w.tl.SetBreakpoints([]uint64{w.all[first].regs.RIP}, nil)
	if err := w.tl.Seek(ctx, w.all[first+9].pos); err != nil {
		t.Fatal(err)
	}
	w.check("seek", first+9)
	if s, err := w.tl.ReverseContinue(ctx); err != nil || s.Reason != replay.StopBreak {
		t.Fatal(s, err)
	}
	w.check("reverse-continue", first-1)
	if _, err := w.tl.StepForward(ctx); err != nil {
		t.Fatal(err)
	}
	w.check("stepi", first)
	if _, err := w.tl.Continue(ctx); err != nil {
		t.Fatal(err)
	}
	if p := w.tl.Position(); p.Interval == w.all[first].pos.Interval && p.Instr == w.all[first].pos.Instr {
		t.Fatalf("continue from %s stopped at %s, inside the same instruction", w.all[first].pos, p)
	}
}
