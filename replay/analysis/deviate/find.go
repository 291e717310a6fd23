package deviate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/slice"
	"vplay/replay/debug"
	"vplay/replay/x86"
)

// The deviations of the bad run, and which of them led to what is wrong there. A deviation is a
// branch that went where no good run went, or turned a loop more often. Of those, only what is
// in the slice of the fault can have led to it; and what is in the slice of the same moment in a good
// run, and was not done in the bad one. The nearer it is to the fault in the slice, the more
// likely it is what is looked for.

// Options say what is compared.
type Options struct {
	Good []Run
	Bad  Run
	Expr string // what is wrong in the bad run; "" for what it died of
	TID  int    // the thread that is meant; 0 for the one that runs
	Most int    // how many deviations are returned
	// Progress, when not nil, is called now and then, from several goroutines.
	Progress func(string)
}

// Why says what kind of deviation it is.
type Why string

// The kinds of deviations.
const (
	NewBranch Why = "branch" // it went where no good run went
	Omission  Why = "skip"   // a good run did there what the fault's counterpart is made of
	MoreTurns Why = "loop"   // it turned more often than in any good run
	Deeper    Why = "depth"  // in a function that calls itself more often than in any good run
	Together  Why = "pair"   // good runs went there, but not after a branch before it in the same call of the function
	NewCaller Why = "caller" // good runs went there, but not called from there
	Data      Why = "data"   // what is wrong was made there, and not so in good runs
	Fault     Why = "fault"  // the fault itself: nothing before it is nearer
)

// penalty is by how many lines further from the fault a kind counts: what loops and callers do
// differs harmlessly more often.
var penalty = map[Why]int{NewBranch: 0, Omission: 4, MoreTurns: 3, Deeper: 3, Together: 4, NewCaller: 6, Data: 8, Fault: 14}

// foreign is the penalty of code of another module than the program's own.
const foreign = 8

// deviation is one under way.
type deviation struct {
	why    Why
	pc     uint64 // of the branch, in the bad run
	to     uint64
	at     checkpoint.Position
	lines  int // from the fault, in the slice
	score  int
	good   *run
	goodAt checkpoint.Position
	goodPC uint64
	goodTo uint64
	turns  [2]uint64 // of the bad run, and at most of good ones
}

// moment is when a run is at an instruction.
type moment struct {
	at checkpoint.Position
	pc uint64
}

// finder compares runs.
type finder struct {
	o       *Options
	good    []*run
	bad     *run
	seen    *seen
	main    string // the program's own module
	list    []deviation
	pairs   map[way]*times  // see together
	lines   map[place]bool  // see badDid
	moments map[*run]moment // the fault's counterparts
}

// Find compares runs. Errors: ErrNoFault, slice.ErrTooMany, those of a movement, and ctx's.
func Find(ctx context.Context, o Options) (*Result, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	f := &finder{o: &o, moments: map[*run]moment{}}
	var err error
	if f.bad, err = open(ctx, o.Bad, debug.SliceQuery{Expr: o.Expr, TID: o.TID}); err != nil {
		return nil, err
	}
	if f.bad.what == "" {
		return nil, ErrNoFault
	}
	for _, g := range o.Good {
		x, err := open(ctx, g, debug.SliceQuery{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
		f.good = append(f.good, x)
	}
	alike(append(slices.Clone(f.good), f.bad))
	if f.seen, err = traceAll(ctx, f.good, f.bad, o.Progress); err != nil {
		return nil, err
	}
	f.main = f.mainModule()
	if err := f.deviations(ctx); err != nil {
		return nil, err
	}
	return f.result(ctx)
}

// mainModule returns the path of the program's file in the bad run.
func (f *finder) mainModule() string {
	p := f.bad.Cursor.Recording().Processes()
	for i := range p {
		if p[i].PID == f.bad.Cursor.Timeline().PID() {
			return p[i].Program
		}
	}
	return ""
}

// deviations finds the deviations that led to the fault, the likeliest first.
func (f *finder) deviations(ctx context.Context) error {
	o := f.bad.o
	if o.At == f.bad.end {
		o.Here = f.bad.here
	}
	s, err := f.bad.slice(ctx, o, f.o.Progress)
	if err != nil {
		return fmt.Errorf("%s: %w", f.bad.Name, err)
	}
	dist := f.bad.distances(s, f.isAlarm)
	for i := range s.Decisions {
		f.committed(&s.Decisions[i], dist)
	}
	made := map[place]bool{}
	compared := false
	for _, g := range f.good {
		s, err := f.counterpart(ctx, g)
		if err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
		if s == nil {
			continue
		}
		dist := g.distances(s, func(uint64) bool { return false })
		shift := newShift(g, f.bad)
		compared = true
		for _, v := range s.Vertices {
			for _, p := range shift.of(v.PC) {
				made[p] = true
			}
		}
		for i := range s.Decisions {
			f.omitted(g, shift, &s.Decisions[i], dist)
		}
	}
	if compared {
		f.data(s, dist, made)
	}
	f.fault()
	f.rank()
	return nil
}

// committed adds what the bad run did and no good one did, if d is that.
func (f *finder) committed(d *slice.Decision, dist map[*slice.Vertex]int) {
	pc := d.Branch.PC
	if !isBranch(d.Branch) || !f.bad.names.isOwn(pc) {
		return
	}
	v := deviation{pc: pc, to: d.To, at: d.Oldest, lines: dist[d.Branch]}
	novelty := f.noveltyOf(pc, d.To)
	switch {
	case novelty >= isNew:
		v.why = NewBranch
		f.add(v)
		return
	case novelty > isKnown:
		v.why = NewCaller
		f.add(v)
	}
	if x := f.together(pc, d.To); x != nil {
		v.why, v.at = Together, x.grown
		f.add(v)
	}
	if l := f.turnsBy(pc, d.To); l != nil && l.over.Compare(f.bad.end) < 0 {
		v.why, v.at, v.turns = MoreTurns, l.over, [2]uint64{l.most, l.bound}
		f.add(v)
	}
	if e := f.deeper(pc); e != nil {
		v.why, v.at, v.turns = Deeper, e.over, [2]uint64{e.most, e.bound}
		f.add(v)
	}
}

// isBranch reports whether v is a branch that goes one way or another.
func isBranch(v *slice.Vertex) bool {
	kind, _ := v.Inst.Transfer()
	return kind == x86.Branch
}

// isTransfer reports whether v does nothing but go elsewhere.
func isTransfer(v *slice.Vertex) bool {
	kind, _ := v.Inst.Transfer()
	return kind != x86.NoTransfer
}

// noveltyOf returns how new a way is, from the callers that it was taken from.
func (f *finder) noveltyOf(pc, to uint64) (most uint8) {
	for ctx := range f.bad.t.byCtx {
		if x := f.bad.t.ways[way{pc, to, uint32(ctx)}]; x != nil {
			most = max(most, x.novelty)
		}
	}
	return most
}

// together returns the way that was taken behind another one, in the same activation, as in no good run.
func (f *finder) together(pc, to uint64) (found *times) {
	if f.pairs == nil {
		f.pairs = map[way]*times{}
		f.bad.pairs(func(a, b way, x *times) {
			if had := f.pairs[b]; !f.seen.pairs[[2]edge{f.bad.edge(a), f.bad.edge(b)}] && (had == nil || x.grown.Compare(had.grown) > 0) {
				f.pairs[b] = x
			}
		})
	}
	return f.pairs[way{from: pc, to: to}]
}

// turnsBy returns the loop that turns more often than in any good run because the branch at pc goes
// to an address; nil where there is none. The branch need not be the one that leads back.
func (f *finder) turnsBy(pc, to uint64) (found *loop) {
	for w, l := range f.bad.t.loops {
		if l.has && l.most > l.bound && (w.from == pc && w.to == to || w.to <= pc && pc <= w.from && w.to <= to && to <= w.from && f.leaves(pc, w)) {
			if found == nil || l.over.Compare(found.over) > 0 {
				found = l
			}
		}
	}
	return found
}

// leaves reports whether the branch at pc may leave the loop w: it has an end outside.
func (f *finder) leaves(pc uint64, w way) bool {
	for _, t := range f.bad.code.Targets(pc) {
		if t < w.to || t > w.from {
			return true
		}
	}
	return false
}

// deeper returns the depth of the function that has pc, where it is deeper than in any good run.
func (f *finder) deeper(pc uint64) *depth {
	l := f.bad.names.at(pc)
	if l.Inlined || l.Function == "" {
		return nil
	}
	if d := f.bad.t.depths[pc-l.Offset]; d != nil && d.has && d.most > d.bound && d.most > 1 {
		return d
	}
	return nil
}

// add adds a deviation.
func (f *finder) add(v deviation) {
	if v.why != Fault && f.isAlarm(v.pc) {
		return
	}
	v.score = v.lines + penalty[v.why]
	if f.isForeign(v.pc) {
		v.score += foreign
	}
	f.list = append(f.list, v)
}

// isForeign reports whether code is of another module than the program's own.
func (f *finder) isForeign(pc uint64) bool {
	return path.Base(f.bad.names.at(pc).Module) != path.Base(f.main)
}

// isAlarm reports whether code is in a function of a library that no good run has called. Nothing goes wrong there: it is called
// because something has, as abort(3) and what malloc(3) calls when its lists are damaged.
func (f *finder) isAlarm(pc uint64) bool {
	if !f.isForeign(pc) {
		return false
	}
	_, called := f.seen.depth(pc - f.bad.names.at(pc).Offset)
	return !called
}

// omitted adds a branch of the bad run that never did what d did in a good run, and what the
// counterpart of the fault there is made of.
func (f *finder) omitted(g *run, shift *shift, d *slice.Decision, dist map[*slice.Vertex]int) {
	if !isBranch(d.Branch) || !g.names.isOwn(d.Branch.PC) {
		return
	}
	isOther := g.names.isOther(d.Branch.PC)
	did := isOther && f.badDid(shift.of(d.To))
	for _, from := range shift.of(d.Branch.PC) {
		for w, x := range f.bad.t.ways {
			if f.bad.names.place(w.from) != from || x.novelty < isNew && (did || !isOther && !f.skips(w, from, shift.of(d.To))) {
				continue
			}
			f.add(deviation{why: Omission, pc: w.from, to: w.to, at: x.first, lines: dist[d.Branch], good: g, goodAt: d.Newest, goodPC: d.Branch.PC, goodTo: d.To})
		}
	}
}

// badDid reports whether the bad run executed one of some lines, or has no code of them.
func (f *finder) badDid(lines []place) bool {
	n := f.bad.names
	if f.lines == nil {
		f.lines = map[place]bool{}
		for first, last := range f.bad.t.blocks {
			if n.isOther(first) {
				for _, p := range n.lines(first, last, f.bad.code) {
					f.lines[p] = true
				}
			}
		}
	}
	return slices.ContainsFunc(lines, func(p place) bool { return f.lines[p] || !n.hasCode(p) })
}

// skips reports whether the branch w of the bad run never went to what a good run did.
func (f *finder) skips(w way, from place, to []place) bool {
	for v := range f.bad.t.ways {
		if f.bad.names.place(v.from) == from && slices.Contains(to, f.bad.names.place(v.to)) {
			return false
		}
	}
	return !slices.Contains(to, f.bad.names.place(w.to))
}

// rank sorts the deviations and takes each branch once.
func (f *finder) rank() {
	slices.SortStableFunc(f.list, func(a, b deviation) int {
		return cmp.Or(cmp.Compare(a.score, b.score), b.at.Compare(a.at), cmp.Compare(a.pc, b.pc), cmp.Compare(a.to, b.to), cmp.Compare(a.why, b.why))
	})
	type line struct {
		file string
		n    int
	}
	had := map[line]bool{}
	f.list = slices.DeleteFunc(f.list, func(v deviation) bool {
		l := f.bad.names.at(v.pc)
		k := line{l.File, l.Line}
		is := had[k]
		had[k] = true
		return is
	})
}

// distances returns how far the vertices of a slice are from its root, in source lines. Those where isNear says so are as near as what
// needs them.
func (r *run) distances(s *slice.Slice, isNear func(pc uint64) bool) map[*slice.Vertex]int {
	type where struct {
		function, file string
		line           int
	}
	of := func(v *slice.Vertex) where {
		if v.Kind != slice.Instruction {
			return where{}
		}
		l := r.names.at(v.PC)
		if l.Line == 0 {
			return where{function: l.Function, file: l.Module}
		}
		return where{l.Function, l.File, l.Line}
	}
	dist := map[*slice.Vertex]int{s.Root: 0}
	now, next := []*slice.Vertex{s.Root}, []*slice.Vertex(nil)
	for d := 0; len(now) > 0; d++ {
		for len(now) > 0 {
			v := now[len(now)-1]
			now = now[:len(now)-1]
			if dist[v] < d {
				continue
			}
			at := of(v)
			for i := range v.Needs {
				to, step := v.Needs[i].To, 1
				if to.IsSave() || of(to) == at || v == s.Root || to.Kind == slice.Instruction && isNear(to.PC) {
					step = 0
				}
				if had, ok := dist[to]; ok && had <= d+step {
					continue
				}
				dist[to] = d + step
				if step == 0 {
					now = append(now, to)
				} else {
					next = append(next, to)
				}
			}
		}
		now, next = next, now[:0]
	}
	return dist
}

// counterpart returns the slice of the moment in a good run that is the fault's counterpart, nil
// where there is none.
func (f *finder) counterpart(ctx context.Context, g *run) (*slice.Slice, error) {
	at, here, ok, err := f.sameMoment(ctx, g)
	if err != nil || !ok {
		return nil, err
	}
	f.moments[g] = moment{at, here}
	o := slice.Options{At: at, Here: here, TID: g.o.TID}
	err = g.Cursor.Timeline().Look(ctx, []checkpoint.Position{at}, func(_ int, m *replay.Machine) {
		o.TID = m.TID()
		if in, ok := instructionAt(m); ok {
			if o.Want = slice.TargetWants(m.CPU, &in); len(o.Want) == 0 {
				o.Want = slice.CrashWants(m.CPU, &in, true)
			}
		}
	}, func(int, *replay.Machine) {})
	if err != nil {
		return nil, err
	}
	s, err := g.slice(ctx, o, f.o.Progress)
	if errors.Is(err, slice.ErrTooMany) {
		return nil, nil
	}
	return s, err
}

// sameMoment returns when a good run was where the bad one is at the fault, and the instruction
// there: in the last call of the function that has it, in the same turn if there are as many. In a library it is the
// library's instruction, called from the same place.
func (f *finder) sameMoment(ctx context.Context, g *run) (at checkpoint.Position, here uint64, ok bool, err error) {
	own, in := f.bad.ownFrame()
	k := 1
	if in.entry != 0 {
		found, err := f.bad.Cursor.Timeline().ExecsFrom(ctx, []uint64{own}, nil, in.began, mostSame)
		if err != nil {
			return at, 0, false, err
		}
		k = max(1, len(found))
	}
	at, here, ok, err = f.turn(ctx, g, own, in.entry, k)
	if !ok || err != nil || own == f.bad.here {
		return at, here, ok, err
	}
	t := g.Cursor.Timeline()
	for _, a := range f.addressesIn(g, f.bad.here) {
		found, err := t.ExecsFrom(ctx, []uint64{a}, nil, at, 1)
		if err != nil || len(found) > 0 {
			return append(found, at)[0], a, err == nil, err
		}
	}
	return at, here, ok, nil
}

// mostSame is how many turns of the fault's activation are counted.
const mostSame = 256

// turn returns turn k of the instruction at pc of the bad run in the last call of a function in a good
// run, or the last turn there is.
func (f *finder) turn(ctx context.Context, g *run, pc, entry uint64, k int) (at checkpoint.Position, here uint64, ok bool, err error) {
	t := g.Cursor.Timeline()
	var call []checkpoint.Position
	if e, ok := f.entryIn(g, entry); ok {
		if call, err = t.Execs(ctx, []uint64{e}, nil, g.end, 1); err != nil {
			return at, 0, false, err
		}
	}
	for _, a := range f.addressesIn(g, pc) {
		var found []checkpoint.Position
		if len(call) > 0 {
			found, err = t.ExecsFrom(ctx, []uint64{a}, nil, call[0], k)
		} else {
			found, err = t.Execs(ctx, []uint64{a}, nil, g.end, 1)
		}
		if err != nil || len(found) > 0 {
			return append([]checkpoint.Position{at}, found...)[len(found)], a, err == nil, err
		}
	}
	if len(call) > 0 {
		return f.turn(ctx, g, pc, 0, k)
	}
	return at, 0, false, nil
}

// entryIn returns where in a good run the function is that the bad one has at entry.
func (f *finder) entryIn(g *run, entry uint64) (uint64, bool) {
	if entry == 0 {
		return 0, false
	}
	if !f.bad.names.isOther(entry) {
		return g.names.address(f.bad.names.place(entry))
	}
	a, mod := g.names.res.Lookup(f.bad.names.at(entry).Function)
	return a, mod != nil
}

// ownFrame returns the innermost instruction at the end of a run that is in code with source lines, and
// the activation it is in; where there is none, the end itself.
func (r *run) ownFrame() (pc uint64, in frame) {
	th := r.t.threads[r.o.TID]
	if th == nil {
		return r.here, frame{}
	}
	last := len(th.frames) - 1
	if r.names.isOwn(r.here) {
		return r.here, th.frames[last]
	}
	for i := last; i > 0; i-- {
		if r.names.isOwn(th.frames[i].site) {
			return th.frames[i].site, th.frames[i-1]
		}
	}
	return r.here, th.frames[last]
}

// addressesIn returns where in a good run the instruction at pc of the bad run is: in another build
// the instructions of its line, those first that are most like it.
func (f *finder) addressesIn(g *run, pc uint64) (out []uint64) {
	p := f.bad.names.place(pc)
	if !f.bad.names.isOther(pc) {
		if a, ok := g.names.address(p); ok {
			out = append(out, a)
		}
		return out
	}
	var like x86.Inst
	f.bad.code.Each(pc, pc, func(_ uint64, in *x86.Inst) { like = *in })
	shift := newShift(g, f.bad)
	unlike := map[uint64]int{}
	for first, last := range g.t.blocks {
		if !g.names.isOther(first) {
			continue
		}
		g.code.Each(first, last, func(pc uint64, in *x86.Inst) {
			if slices.Contains(shift.of(pc), p) {
				unlike[pc] = difference(&like, in)
			}
		})
	}
	for a := range unlike {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b uint64) int { return cmp.Or(cmp.Compare(unlike[a], unlike[b]), cmp.Compare(a, b)) })
	return out
}

// difference says how different two instructions are.
func difference(a, b *x86.Inst) (n int) {
	if a.Row != b.Row {
		n += 4
	}
	if (a.Flags^b.Flags)&x86.InstMem != 0 {
		n += 2
	}
	if a.Base != b.Base || a.Reg != b.Reg {
		n++
	}
	return n
}

// data adds what the fault is made of in the bad run, and its counterparts are not: made are theirs.
func (f *finder) data(s *slice.Slice, dist map[*slice.Vertex]int, made map[place]bool) {
	for _, v := range s.Vertices {
		if v.Kind != slice.Instruction || isTransfer(v) || v.IsSave() || !f.bad.names.isOwn(v.PC) || made[f.bad.names.place(v.PC)] {
			continue
		}
		f.add(deviation{why: Data, pc: v.PC, at: v.Newest, lines: dist[v]})
	}
}

// fault adds the fault itself.
func (f *finder) fault() {
	own, _ := f.bad.ownFrame()
	f.add(deviation{why: Fault, pc: own, at: f.bad.o.At})
}
