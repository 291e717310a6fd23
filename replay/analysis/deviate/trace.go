package deviate

import (
	"context"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/x86"
)

// One run, executed again from its beginning to its end, with an eye on each branch, call and
// return. What is kept is not the trace but what there was to see in it: which way each branch
// went, from which callers, how often and when; how often loops turned and how deep functions
// called themselves. That is as large as the code, not as the run.

// way is where a branch went, and from which callers: ctx numbers them.
type way struct {
	from, to uint64
	ctx      uint32
}

// times says how often and when something was.
type times struct {
	count       uint64
	first, last checkpoint.Position // before the branch
	novelty     uint8               // of a bad run: how new it is, in quarters
	bit         uint64              // of the branch and its target among those of the function; 0: it has too many
	with        uint64              // the bits of those that were taken before it in the same activation
	grown       checkpoint.Position // when with has got more last
}

// loop is what is known of an edge back to a loop's beginning.
type loop struct {
	most  uint64 // turns in one activation, without leaving the loop
	bound uint64 // of a bad run: the most that a good run had
	has   bool   // bound is known
	over  checkpoint.Position
}

// depth is how often a function is under way.
type depth struct {
	now, most uint64
	bound     uint64
	has       bool
	over      checkpoint.Position

	pairs map[way]uint64 // the bits of branches and their targets, without callers
}

// callers are the two innermost calls that an activation is in, by the addresses of the
// instructions.
type callers struct{ site, outer uint64 }

// frame is an activation of a function.
type frame struct {
	slot  uint64 // where the return address is
	site  uint64 // of the call
	entry uint64
	began checkpoint.Position
	ctx   uint32
	of    *depth
	taken uint64 // the bits of what was taken so far
	turns []turn
}

// turn counts a loop in an activation.
type turn struct {
	from, to uint64
	n        uint64
	of       *loop
}

// thread is what is kept of a thread.
type thread struct {
	frames  []frame
	pending uint64 // the address of the branch that it has just executed; 0: none
	kind    x86.Transfer
}

// Bounds for recordings that are made to do harm.
const (
	maxFrames = 1 << 20 // of a thread; a stack of 8 MiB has as many
	maxWays   = 1 << 22
)

// pieces is how many pieces the picture of a run has.
const pieces = 60

// tracer watches a run.
type tracer struct {
	ways    map[way]*times
	loops   map[way]*loop // without callers
	depths  map[uint64]*depth
	ctxs    map[callers]uint32
	byCtx   []callers
	blocks  map[uint64]uint64 // from first to last instruction
	threads map[checkpoint.TID]*thread

	// judge, when set, says how new a way is, and what bounds good runs had.
	judge judge

	m        *replay.Machine
	interval uint32
	cur      *thread
	resync   bool
	block    uint64 // where it began
	cache    [1 << 14]cachedWay
	known    [1 << 13]uint64 // blocks that were noted

	lengths map[uint32]uint64 // of intervals, in instructions
	opening []opened          // the first branches, see finder.first

	before uint64 // instructions in the intervals before
	all    uint64 // instructions in the run, about
	novel  [pieces]float64
	total  [pieces]float64
}

// judge compares a bad run with the good ones while it is traced.
type judge interface {
	novelty(w way, c callers) uint8
	turns(from, to uint64) (most uint64, ok bool)
	depth(entry uint64) (most uint64, ok bool)
}

// opened is a branch of the beginning of a run.
type opened struct {
	from, to uint64
	at       checkpoint.Position
}

// maxOpening is how many of them are kept: 4 MB.
const maxOpening = 1 << 17

type cachedWay struct {
	way
	*times
}

func newTracer(j judge) *tracer {
	t := &tracer{ways: map[way]*times{}, loops: map[way]*loop{}, depths: map[uint64]*depth{}, ctxs: map[callers]uint32{}, blocks: map[uint64]uint64{}, threads: map[checkpoint.TID]*thread{}, lengths: map[uint32]uint64{}, judge: j}
	t.context(callers{})
	return t
}

// run traces a timeline up to a position.
func (t *tracer) run(ctx context.Context, tl *replay.Timeline, end checkpoint.Position, progress func(done uint64)) error {
	tr, err := tl.NewTracing(nil)
	if err != nil {
		return err
	}
	defer tr.Close()
	var ends []checkpoint.Position
	for _, id := range tl.Intervals() {
		if id > end.Interval {
			break
		}
		p := end
		if id < end.Interval {
			if p, err = tr.End(ctx, id); err != nil {
				return err
			}
		}
		ends = append(ends, p)
		t.all += p.Instr
		t.lengths[id] = p.Instr
	}
	const step = 4_000_000
	for _, to := range ends {
		t.interval = to.Interval
		for from := (checkpoint.Position{Interval: to.Interval}); from.Compare(to) < 0; {
			next := checkpoint.Position{Interval: to.Interval, Instr: from.Instr + step}
			if next.Compare(to) > 0 {
				next = to
			}
			if err := tr.Run(ctx, replay.Stretch{From: from, To: next, Begin: t.begin, Before: t.instruction, Event: t.event}); err != nil {
				return err
			}
			from = next
			progress(t.before + from.Instr)
		}
		t.before += to.Instr
	}
	for _, th := range t.threads {
		for i := range th.frames {
			th.frames[i].fold()
		}
	}
	return nil
}

func (t *tracer) begin(m *replay.Machine) { t.m, t.resync = m, true }

// event is called before an event is applied: the thread may be another one behind it.
func (t *tracer) event(m *replay.Machine, e *checkpoint.Event) {
	if e.Kind == checkpoint.EventSignal && t.cur != nil {
		t.cur.pending = 0
	}
	t.resync = true
}

// thread returns what is kept of the thread that runs.
func (t *tracer) thread() *thread {
	tid := t.m.TID()
	th := t.threads[tid]
	if th == nil {
		th = &thread{frames: []frame{{slot: ^uint64(0)}}}
		t.threads[tid] = th
	}
	return th
}

// instruction is called before each instruction.
func (t *tracer) instruction(c *x86.CPU, in *x86.Inst, _ *uint32) {
	if t.resync {
		t.cur, t.resync, t.block = t.thread(), false, c.RIP
	}
	if t.cur.pending != 0 {
		t.went(c)
	}
	if in.Flags&x86.InstEnd != 0 {
		t.cur.pending = c.RIP
		t.cur.kind, _ = in.Transfer()
		if k := &t.known[t.block%uint64(len(t.known))]; *k != t.block {
			*k = t.block
			if len(t.blocks) < maxWays {
				t.blocks[t.block] = max(t.blocks[t.block], c.RIP)
			}
		}
	}
}

// went is called where a branch has come to.
func (t *tracer) went(c *x86.CPU) {
	th, from, to := t.cur, t.cur.pending, c.RIP
	th.pending, t.block = 0, to
	f := &th.frames[len(th.frames)-1]
	switch th.kind {
	case x86.Call:
		t.entered(th, from, to, c)
		return
	case x86.Return:
		th.leave(c.R[x86.RSP])
		return
	case x86.Branch:
		t.took(f, way{from, to, f.ctx}, c.Retired-1)
	case x86.Jump, x86.NoTransfer:
	}
	if to <= from {
		t.turned(f, from, to, c.Retired-1)
	}
}

// took notes that a branch went somewhere.
func (t *tracer) took(f *frame, w way, at uint64) {
	e := &t.cache[(w.from^w.to<<3^uint64(w.ctx)*0x9e37)%uint64(len(t.cache))]
	if e.times == nil || e.way != w {
		e.way, e.times = w, t.times(f, w, at)
	}
	if len(t.opening) < maxOpening {
		t.opening = append(t.opening, opened{w.from, w.to, checkpoint.Position{Interval: t.interval, Instr: at}})
	}
	e.count++
	e.last = checkpoint.Position{Interval: t.interval, Instr: at}
	if f.taken&^e.with != 0 {
		e.with |= f.taken
		e.grown = e.last
	}
	f.taken |= e.bit
	if t.judge != nil {
		i := int((t.before + at) * pieces / max(t.all, 1))
		i = min(i, pieces-1)
		t.total[i]++
		t.novel[i] += float64(e.novelty) / 4
	}
}

// times returns what is kept of a way.
func (t *tracer) times(f *frame, w way, at uint64) *times {
	x := t.ways[w]
	if x == nil && len(t.ways) >= maxWays {
		return &times{}
	}
	if x == nil {
		x = &times{first: checkpoint.Position{Interval: t.interval, Instr: at}}
		if t.judge != nil {
			x.novelty = t.judge.novelty(w, t.byCtx[w.ctx])
		}
		if f.of != nil {
			x.bit = f.of.bit(way{from: w.from, to: w.to})
		}
		t.ways[w] = x
	}
	return x
}

// bit returns the bit of a branch and its target, 0 where the function has more than can be told apart.
func (d *depth) bit(w way) uint64 {
	b, ok := d.pairs[w]
	if !ok && len(d.pairs) < 64 {
		if d.pairs == nil {
			d.pairs = map[way]uint64{}
		}
		b = 1 << len(d.pairs)
		d.pairs[w] = b
	}
	return b
}

// entered begins an activation.
func (t *tracer) entered(th *thread, from, to uint64, c *x86.CPU) {
	slot := c.R[x86.RSP]
	th.leave(slot + 1)
	if len(th.frames) >= maxFrames {
		return
	}
	d := t.depths[to]
	if d == nil {
		d = &depth{}
		if t.judge != nil {
			d.bound, d.has = t.judge.depth(to)
		}
		t.depths[to] = d
	}
	if d.now++; d.now > d.most {
		if d.most = d.now; d.now == d.bound+1 {
			d.over = checkpoint.Position{Interval: t.interval, Instr: c.Retired - 1}
		}
	}
	outer := th.frames[len(th.frames)-1].site
	// A function that calls itself has no more callers for each level.
	th.frames = append(th.frames, frame{slot: slot, site: from, entry: to, began: checkpoint.Position{Interval: t.interval, Instr: c.Retired}, ctx: t.context(callers{from, outer}), of: d})
}

// context returns the number of two callers.
func (t *tracer) context(c callers) uint32 {
	n, ok := t.ctxs[c]
	if !ok && len(t.byCtx) < maxWays {
		n = uint32(len(t.byCtx))
		t.ctxs[c], t.byCtx = n, append(t.byCtx, c)
	}
	return n
}

// leave ends the activations whose return address is below sp.
func (th *thread) leave(sp uint64) {
	n := len(th.frames)
	for n > 1 && th.frames[n-1].slot < sp {
		f := &th.frames[n-1]
		f.fold()
		if f.of != nil {
			f.of.now--
		}
		n--
	}
	th.frames = th.frames[:n]
}

// turned notes that a loop goes round. Loops within begin anew.
func (t *tracer) turned(f *frame, from, to, at uint64) {
	var it *turn
	n := 0
	for i := range f.turns {
		x := &f.turns[i]
		if x.from < from && x.to > to { // within
			x.of.most = max(x.of.most, x.n)
			continue
		}
		f.turns[n] = *x
		if x.from == from && x.to == to {
			it = &f.turns[n]
		}
		n++
	}
	f.turns = f.turns[:n]
	if it == nil {
		key := way{from: from, to: to}
		l := t.loops[key]
		if l == nil {
			l = &loop{}
			if t.judge != nil {
				l.bound, l.has = t.judge.turns(from, to)
			}
			if len(t.loops) < maxWays {
				t.loops[key] = l
			}
		}
		f.turns = append(f.turns, turn{from: from, to: to, of: l})
		it = &f.turns[len(f.turns)-1]
	}
	it.n++
	if it.n == it.of.bound+1 && it.of.over == (checkpoint.Position{}) {
		it.of.over = checkpoint.Position{Interval: t.interval, Instr: at}
	}
}

// fold ends the loops of an activation.
func (f *frame) fold() {
	for i := range f.turns {
		x := &f.turns[i]
		x.of.most = max(x.of.most, x.n)
	}
}
