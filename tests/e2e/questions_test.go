package e2e

import (
	"bytes"
	"context"
	"flag"
	"reflect"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/dwarf/agentexpr"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
	"vplay/tests/internal/tool"
)

var questions = flag.Int("questions", 600, "questions about the past to compare with a linear scan, for each recording")

// historian knows the whole past of a recording: each settled moment and each
// access to some ranges of memory, by a linear scan.
type historian struct {
	walker
	ranges []mem.Watch
	hits   [][]mem.Hit // by moment: what the step to it touched
	rngs   map[mem.Watch]int
}

// newHistorian scans a recording, with n ranges of memory watched for
// everything. Half of them are of bytes on the stack and in the program's
// variables, the others where symbols point to.
func newHistorian(t *testing.T, g *guest, tl *tool.Timeline, seed uint64, n int) *historian {
	h := &historian{walker: *newWalker(t, tl, seed), rngs: map[mem.Watch]int{}}
	ptr := func(name string) uint64 {
		var b [8]byte
		tl.Machine().Mem.Peek(g.symbol(t, name), b[:])
		var v uint64
		for i := range b {
			v |= uint64(b[i]) << (8 * i)
		}
		return v
	}
	places := []uint64{g.symbol(t, "counter"), g.symbol(t, "same"), g.symbol(t, "text"), ptr("one"), ptr("two"), ptr("one") + 4090, ptr("two") + 4990, ptr("one") + 200, ptr("two") + 100}
	lens := []uint64{1, 2, 3, 4, 8, 13, 64, 300, 5000}
	for len(h.ranges) < n {
		a := h.all[h.r.IntN(len(h.all))].regs.R[x86.RSP] - uint64(h.r.IntN(64))
		if h.r.IntN(2) == 0 {
			a = places[h.r.IntN(len(places))] + uint64(h.r.IntN(20))
		}
		w := mem.Watch{Addr: a, Len: lens[h.r.IntN(len(lens))], Kind: mem.WatchAccess}
		if _, ok := h.rngs[w]; !ok {
			h.rngs[w] = len(h.ranges)
			h.ranges = append(h.ranges, w)
		}
	}
	ctx := context.Background()
	if err := tl.Seek(ctx, tl.Begin()); err != nil {
		t.Fatal(err)
	}
	tl.SetWatches(h.ranges)
	h.hits = make([][]mem.Hit, len(h.all))
	for i := 1; i < len(h.all); i++ {
		s, err := tl.StepForward(ctx)
		if err != nil {
			t.Fatal(err)
		}
		h.hits[i] = s.Hits
	}
	h.at = len(h.all) - 1
	tl.SetWatches(nil)
	return h
}

// touched reports whether the step to moment i touched w, which is one of the
// ranges with another kind. changing leaves out stores that change nothing.
func (h *historian) touched(i int, w mem.Watch, changing bool) bool {
	full := w
	full.Kind = mem.WatchAccess
	for _, x := range h.hits[i] {
		switch {
		case x.Watch != full:
		case x.Access == mem.Load && w.Kind&mem.WatchRead != 0, x.Access == mem.Store && w.Kind == mem.WatchAccess:
			return true
		case x.Access == mem.Store && w.Kind&mem.WatchWrite != 0 && (x.Changed || !changing):
			return true
		}
	}
	return false
}

// someRange returns one of the ranges, with a random kind.
func (h *historian) someRange() mem.Watch {
	w := h.ranges[h.r.IntN(len(h.ranges))]
	w.Kind = mem.WatchKind(1 + h.r.IntN(3))
	return w
}

// somewhere returns an index of a moment.
func (h *historian) somewhere() int { return h.r.IntN(len(h.all)) }

// accesses asks for the newest accesses before a moment.
func (h *historian) accesses() {
	w, at, n := h.someRange(), h.somewhere(), 1+h.r.IntN(4)
	got, err := h.tl.Accesses(context.Background(), []mem.Watch{w}, h.all[at].pos, n)
	if err != nil {
		h.t.Fatal(err)
	}
	var want []int
	for i := at; i > 0 && len(want) < n; i-- {
		if h.touched(i, w, false) {
			want = append(want, i)
		}
	}
	if len(got) != len(want) {
		h.t.Fatalf("%d accesses to %+v before %s, want %d of %d: %v", len(got), w, h.all[at].pos, len(want), n, got)
	}
	for k, i := range want {
		if g := &got[k]; g.At != h.all[i-1].pos || g.PC != h.all[i-1].regs.RIP {
			h.t.Fatalf("access %d to %+v before %s: from %s to %s (rip %#x), want from %s to %s (rip %#x)", k, w, h.all[at].pos,
				g.At, g.After, g.PC, h.all[i-1].pos, h.all[i].pos, h.all[i-1].regs.RIP)
		}
	}
}

// execs asks for executions of an instruction, in both directions.
func (h *historian) execs() {
	pc, at, n := h.all[h.somewhere()].regs.RIP, h.somewhere(), 1+h.r.IntN(4)
	switch h.r.IntN(4) {
	case 0:
		pc++
	case 1: // where a signal came
		for i := h.somewhere(); i < len(h.all); i++ {
			if h.all[i].fault {
				pc = h.all[i].regs.RIP
				break
			}
		}
	}
	older, err := h.tl.Execs(context.Background(), []uint64{pc}, nil, h.all[at].pos, n)
	if err != nil {
		h.t.Fatal(err)
	}
	newer, err := h.tl.ExecsFrom(context.Background(), []uint64{pc}, nil, h.all[at].pos, n)
	if err != nil {
		h.t.Fatal(err)
	}
	var before, from []checkpoint.Position
	for i := at - 1; i >= 0 && len(before) < n; i-- {
		if h.isExec(i, pc) {
			before = append(before, h.all[i].pos)
		}
	}
	for i := at; i < len(h.all) && len(from) < n; i++ {
		if h.isExec(i, pc) {
			from = append(from, h.all[i].pos)
		}
	}
	if !slices.Equal(older, before) || !slices.Equal(newer, from) {
		h.t.Fatalf("executions of %#x around %s: before %v, want %v; from there %v, want %v", pc, h.all[at].pos, older, before, newer, from)
	}
}

// condition is that the low bits of a register are value.
type condition struct {
	register, bits int
	value          uint64
}

func (c condition) holds(regs *[16]uint64) bool {
	return regs[c.register]<<(64-c.bits)>>(64-c.bits) == c.value
}

// conditions makes conditions for some breakpoints, which hold at one moment at least, and has the timeline ask for them in both ways.
func (h *historian) conditions() map[uint64]condition {
	conds := map[uint64]condition{}
	codes := x86.Conditions{At: map[uint64][][]byte{}}
	for _, pc := range h.breaks {
		i := h.somewhere()
		for range h.all {
			if i = (i + 1) % len(h.all); h.all[i].regs.RIP == pc {
				break
			}
		}
		number := h.r.IntN(agentexpr.RIP)
		c := condition{register: int(agentexpr.GPR[number]), bits: 1 + h.r.IntN(16)}
		c.value = h.all[i].regs.R[c.register] << (64 - c.bits) >> (64 - c.bits)
		var b agentexpr.Builder
		b.Register(number)
		b.Extend(c.bits, false)
		b.Number(c.value)
		b.Op(agentexpr.Equal)
		b.Op(agentexpr.End)
		conds[pc], codes.At[pc] = c, [][]byte{b.Code}
	}
	h.tl.SetBreakpoints(h.breaks, func(m *replay.Machine) bool { return conds[m.CPU.RIP].holds(&m.CPU.R) })
	h.tl.SetConditions(&codes)
	return conds
}

// backward runs back from a moment with watches and breakpoints set.
func (h *historian) backward() {
	var ws []mem.Watch
	for range h.r.IntN(3) {
		ws = append(ws, h.someRange())
	}
	h.breaks = h.breaks[:0]
	for range h.r.IntN(3) {
		h.breaks = append(h.breaks, h.all[h.somewhere()].regs.RIP)
	}
	at := h.somewhere()
	ctx := context.Background()
	if err := h.tl.Seek(ctx, h.all[at].pos); err != nil {
		h.t.Fatal(err)
	}
	h.check("seek", at)
	var conds map[uint64]condition
	if h.tl.SetBreakpoints(h.breaks, nil); h.r.IntN(2) == 0 {
		conds = h.conditions()
	}
	stops := func(i int, pc uint64) bool {
		c, has := conds[pc]
		return h.isExec(i, pc) && (!has || c.holds(&h.all[i].regs.R))
	}
	h.tl.SetWatches(ws)
	if h.r.IntN(2) == 0 {
		h.tl.SetSignals(func(int32) bool { return false })
	} else {
		h.tl.SetSignals(nil)
	}
	if h.r.IntN(2) == 0 {
		_, _ = h.tl.StepForward(ctx) // whatever it stops for
		if _, err := h.tl.StepBack(ctx); err != nil {
			h.t.Fatal(err)
		}
		at = h.index[h.tl.Position()]
		h.at = at
	}
	quiet := h.r.IntN(2) == 0
	if quiet {
		h.tl.SetSignals(func(int32) bool { return false })
	} else {
		h.tl.SetSignals(nil)
	}
	want := at
	for want > 0 {
		want--
		if h.all[want].fault && !quiet || slices.ContainsFunc(h.breaks, func(b uint64) bool { return stops(want, b) }) {
			break
		}
		if slices.ContainsFunc(ws, func(w mem.Watch) bool { return h.touched(want+1, w, true) }) {
			break
		}
	}
	if _, err := h.tl.ReverseContinue(ctx); err != nil {
		h.t.Fatal(err)
	}
	h.check("reverse-continue", want)
}

// reopen goes on with another timeline, which has the index of this one from a
// file and nothing else.
func (h *historian) reopen(rec string) {
	h.t.Helper()
	var file bytes.Buffer
	written, err := h.tl.WriteIndex(&file)
	if err != nil || written != len(h.tl.Intervals()) {
		h.t.Fatalf("%d intervals written, %v", written, err)
	}
	tl := tool.OpenTimeline(h.t, rec, 256<<20)
	if read, err := tl.ReadIndex(bytes.NewReader(file.Bytes())); err != nil || read != written {
		h.t.Fatalf("%d intervals read, %d written, %v", read, written, err)
	}
	if a, b := h.tl.Segments(), tl.Segments(); !reflect.DeepEqual(a, b) {
		h.t.Fatalf("%d segments written, %d others read", len(a), len(b))
	}
	h.tl, h.at = tl, h.index[tl.Position()]
}

// TestQuestions compares answers about the past with a linear scan of it: a sample,
// or as many as -questions says. The stretches are short, so that there are many;
// the budgets leave room for all snapshots, for some, and for none.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flags []string
		args  []string
	}{
		{"forced", []string{"-O1", "-static"}, []string{"--interval", "5ms", "--force-every", "5"}},
		{"remapped", []string{"-O1", "-static", "-DREMAP"}, nil},
	} {
		g := compile(t, "alias", c.flags...)
		rec := g.record(t, append([]string{"--keep", "always", "--no-slim"}, c.args...)...)
		for i, memory := range []int64{256 << 20, 2 << 20, 0} {
			tl := tool.OpenTimeline(t, rec, memory)
			tl.SetSpacing([]uint64{1000, 300, 5000}[i])
			h := newHistorian(t, g, tl, uint64(i)+10, 60)
			t.Logf("%s, budget %d: %d moments in %d intervals, %+v", c.name, memory, len(h.all), len(tl.Intervals()), tl.Progress())
			for k := range *questions / 3 {
				if k == *questions/12 && memory != 0 {
					if err := tl.BuildIndex(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
				if k == *questions/6 && i == 0 {
					h.reopen(rec)
				}
				[]func(){h.accesses, h.execs, h.backward}[h.r.IntN(3)]()
			}
		}
	}
}
