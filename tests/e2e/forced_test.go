package e2e

import (
	"context"
	"debug/elf"
	"math/rand/v2"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/replay/mem"
	"vplay/tests/internal/tool"
)

// symbol returns the address of a global of a static program.
func (g *guest) symbol(t *testing.T, name string) uint64 {
	t.Helper()
	f, err := elf.Open(g.dir + "/symbols/" + g.name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range syms {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("no symbol %s", name)
	return 0
}

// stopsOf returns where Continue stops, from the beginning to the end, and
// which of these stops are behind a watched store.
func stopsOf(t *testing.T, tl *tool.Timeline) (stops []checkpoint.Position, watched map[checkpoint.Position]bool) {
	t.Helper()
	ctx := context.Background()
	if err := tl.Seek(ctx, tl.Begin()); err != nil {
		t.Fatal(err)
	}
	watched = map[checkpoint.Position]bool{}
	for {
		s, err := tl.Continue(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, tl.Position())
		if s.Reason == replay.StopWatch {
			watched[tl.Position()] = true
		}
		if s.Edge {
			return stops, watched
		}
	}
}

// TestForcedEnds moves at random over intervals that end anywhere, inside a REP
// instruction too: the same place has the same registers whichever way the
// cursor came, and Continue and ReverseContinue agree with one forward pass.
func TestForcedEnds(t *testing.T) {
	t.Parallel()
	g := compile(t, "spin", "-O1", "-static")
	path := g.record(t, "--keep", "always", "--interval", "5ms", "--force-every", "4", "--no-slim")
	tl := tool.OpenTimeline(t, path, 8<<20)
	ctx := context.Background()
	tl.SetBreakpoints([]uint64{g.symbol(t, "on_tick")}, nil)
	tl.SetWatches([]mem.Watch{{Addr: g.symbol(t, "ticks"), Len: 4, Kind: mem.WatchWrite}})
	stops, watched := stopsOf(t, tl)
	end := stops[len(stops)-1]
	t.Logf("%d intervals, %d stops, the end at %s", len(tl.Intervals()), len(stops), end)
	if len(tl.Intervals()) < 3 || len(stops) < 15 {
		t.Fatal("the recording is not what this test needs")
	}
	seen := map[checkpoint.Position]checkpoint.Regs{}
	look := func(what string) checkpoint.Position {
		t.Helper()
		p, regs := tl.Position(), loader.Regs(&tl.Machine().CPU.State)
		if old, ok := seen[p]; ok && old != regs {
			t.Fatalf("%s: registers at %s differ from before:\n%+v\n%+v", what, p, old, regs)
		}
		seen[p] = regs
		return p
	}
	r := rand.New(rand.NewPCG(3, 3))
	lengths := lengthsOf(t, path)
	for range 150 {
		p := anywhere(r, tl, lengths)
		if err := tl.Seek(ctx, p); err != nil {
			t.Fatalf("seek %s: %v", p, err)
		}
		at := look("seek")
		due := tl.Machine().Pending()
		n := r.IntN(40)
		back := 0
		for range n {
			s, err := tl.StepBack(ctx)
			if err != nil {
				t.Fatalf("back from %s: %v", at, err)
			}
			if !s.Edge {
				back++
			}
			look("reverse-stepi")
		}
		for range back {
			if _, err := tl.StepForward(ctx); err != nil {
				t.Fatalf("forward: %v", err)
			}
			look("stepi")
		}
		// A position between the events of one count is not come back to: behind
		// them is the same count, or the next interval where the last call ended this one.
		now := tl.Position()
		beyond := due != nil && at.Instr == lengths[at.Interval] && now == (checkpoint.Position{Interval: at.Interval + 1})
		if now != at && (now.Interval != at.Interval || now.Instr != at.Instr) && !beyond || now != at && back == 0 {
			t.Fatalf("%d steps back and forward lead from %s to %s", back, at, now)
		}
		at = tl.Position()
		if r.IntN(2) == 0 {
			_, err := tl.Continue(ctx)
			want := end
			for i := len(stops) - 1; i >= 0 && stops[i].Compare(at) > 0; i-- {
				want = stops[i]
			}
			if got := look("continue"); err != nil || got != want {
				t.Fatalf("continue from %s: at %s, want %s (%v)", at, got, want, err)
			}
			continue
		}
		s, err := tl.ReverseContinue(ctx)
		got := look("reverse-continue")
		if err != nil {
			t.Fatal(err)
		}
		checkBack(t, tl, s, at, got, stops, watched)
	}
}

// anywhere is a position of the recording, often one near an interval's boundary.
func anywhere(r *rand.Rand, tl *tool.Timeline, lengths map[uint32]uint64) checkpoint.Position {
	id := tl.Intervals()[r.IntN(len(tl.Intervals()))]
	p := checkpoint.Position{Interval: id, Instr: r.Uint64N(lengths[id] + 1)}
	if r.IntN(3) == 0 {
		p.Instr = max(lengths[id], 20) - r.Uint64N(20)
	}
	return p
}

// TestStepOverUnknownEnd steps over a forced end of which nothing is known yet,
// from a few instructions before it, and finds the start of the next interval.
func TestStepOverUnknownEnd(t *testing.T) {
	t.Parallel()
	path := compile(t, "spin", "-O1", "-static").record(t, "--keep", "always", "--interval", "5ms", "--force-every", "4", "--no-slim")
	lengths := lengthsOf(t, path)
	ctx := context.Background()
	for before := range uint64(4) {
		tl := tool.OpenTimeline(t, path, 64<<20)
		ids := tl.Intervals()
		p := checkpoint.Position{Interval: ids[0], Instr: lengths[ids[0]] - before}
		if err := tl.Seek(ctx, p); err != nil {
			t.Fatal(err)
		}
		for steps := 0; tl.Position().Interval == ids[0]; steps++ {
			if steps > 5000 {
				t.Fatalf("the end at %d was stepped over: at %s", lengths[ids[0]], tl.Position())
			}
			if _, err := tl.StepForward(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := tl.Position(); got != (checkpoint.Position{Interval: ids[1]}) && got.Instr != 0 {
			t.Fatalf("from %s to %s", p, got)
		}
	}
}

// lengthsOf returns the number of instructions of each interval.
func lengthsOf(t *testing.T, path string) map[uint32]uint64 {
	t.Helper()
	rec, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	results, err := tool.Verify(context.Background(), rec, replay.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lengths := map[uint32]uint64{}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		lengths[r.Interval] = r.Instructions
	}
	return lengths
}

// checkBack checks a backward run from at that went to got: forward stops are
// behind a watched store, backward ones before it; all others are the same. From
// behind such a store it is that store again; a signal's stop is not come back to.
func checkBack(t *testing.T, tl *tool.Timeline, s replay.Stop, at, got checkpoint.Position, stops []checkpoint.Position, watched map[checkpoint.Position]bool) {
	t.Helper()
	var last *checkpoint.Position
	for i := range stops[:len(stops)-1] {
		if stops[i].Compare(at) < 0 || stops[i] == at && watched[at] {
			last = &stops[i]
		}
	}
	switch {
	case last == nil:
		if !s.Edge || got != tl.Begin() {
			t.Fatalf("reverse-continue from %s: at %s, want the beginning", at, got)
		}
	case s.Reason == replay.StopWatch:
		if _, err := tl.StepForward(context.Background()); err != nil {
			t.Fatal(err)
		}
		if p := tl.Position(); p != *last {
			t.Fatalf("reverse-continue from %s: before the store that leads to %s, want %s", at, p, *last)
		}
	case got != *last:
		t.Fatalf("reverse-continue from %s: at %s, want %s", at, got, *last)
	}
}

// TestBreakInEmptyLoop runs to a breakpoint on an instruction that jumps to itself, where
// forced ends fall, until a signal ends the program: the breakpoint is hit in each interval,
// forward and backward at the same positions, and then the signal comes.
func TestBreakInEmptyLoop(t *testing.T) {
	t.Parallel()
	c := openCrew(t, compile(t, "idle", "-O1", "-static").record(t, "--no-slim", "--interval", "5ms", "--force-every", "4"))
	loop := c.view().rip
	c.set(api.Breakpoint{Kind: api.BreakSoftware, Addr: loop, Len: 1})
	var hits [2][]checkpoint.Position
	run := func(dir api.Direction, end api.StopKind, signo int) {
		for {
			stop := c.resume(api.Resume{Dir: dir})
			if stop.Kind == end && stop.Signo == signo && len(hits[dir]) > 1 {
				return
			}
			if stop.Kind != api.StopBreakpoint || c.view().rip != loop || len(hits[dir]) > 100 {
				t.Fatalf("stop %d of a run in direction %d: %+v at %s", len(hits[dir]), dir, stop, c.position())
			}
			hits[dir] = append(hits[dir], c.position())
		}
	}
	c.monitor("seek begin")
	run(api.Forward, api.StopSignal, int(abi.SIGVTALRM))
	run(api.Backward, api.StopReplayBegin, 0)
	slices.Reverse(hits[api.Backward])
	if !slices.Equal(hits[0], hits[1]) {
		t.Errorf("forward at %s\nbackward at %s", hits[0], hits[1])
	}
}
