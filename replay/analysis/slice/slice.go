package slice

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/mem"
)

// What a slice is asked for and what it is, and the way there: stretch by stretch, newest
// first.

// Location is something whose value is to be explained: bytes of memory, or of a register
// of a thread.
type Location struct {
	IsMemory bool
	Addr     uint64 // IsMemory
	Len      uint64 // bytes; of a general register from its lowest on
	Reg      uint8  // a general register, in the processor's order
	IsVector bool   // Reg is a vector register
	// IsAddress: it is no part of the value, but decided where that was loaded from.
	IsAddress bool
}

// Options say what a slice is of.
type Options struct {
	// At is the settled position at which the values are wanted, TID the thread whose
	// registers are meant.
	At   checkpoint.Position
	TID  checkpoint.TID
	Want []Location
	// Values leaves out what only decided where something was loaded from or stored to: a
	// thin slice.
	Values bool
	// Copies follows the value only as long as it is copied: what has no Needs then is what
	// made it.
	Copies bool
	// Controls has control dependences followed. It returns which conditional branches, and jumps
	// through registers or memory, of its function decide whether the instruction at pc is executed.
	// It is called once for each address, from one goroutine. The instruction at Here, where that is not
	// 0, is in the slice for being executed: what led to it is asked, besides the values.
	Controls func(pc uint64) []uint64
	Here     uint64
	// Oldest is an interval: the slice goes back no further than its start.
	Oldest uint32
	// Progress, when not nil, is called now and then with the number of instructions that
	// were walked over, and how many there are in all as far as that is known.
	Progress func(done, all uint64)

	visit func(Instance)
	start func(w *walker)
	// length is that of the stretches, in instructions, and transitions how many of these are kept; 0 for the usual ones.
	length      uint64
	transitions int
}

// Instance is an instruction of the slice at a moment.
type Instance struct {
	Interval uint32
	Instr    uint64 // retired before it
	Retires  bool   // false for a REP that is left between two iterations

	in *instruction
}

// Slice is the dynamic backward slice of a value.
type Slice struct {
	Root     *Vertex   // the criterion
	Vertices []*Vertex // the others, newest first
	// Instances is how many executed instructions are in the slice, of Executed. Values of them
	// made the value, Controls only decided that others were executed; the rest only decided where something was loaded from or stored to.
	Instances, Values, Controls, Executed uint64
	// From is where the walk ended: at the recording's start, or earlier when everything was
	// explained.
	From checkpoint.Position
	// IsExplained says that nothing of the start of the recording is in the slice.
	IsExplained bool
	// Decisions are the branches and calls that are in the slice for where they went, by their newest
	// instance, the newest first; nil without Options.Controls.
	Decisions []Decision
}

// stretchLength is how many instructions a stretch has: the distance of the snapshots that a
// run leaves behind.
const stretchLength = 2_000_000

// Of returns the slice of what o asks for. Errors: ErrTooMany, ctx's, and those of a
// movement of the timeline.
func Of(ctx context.Context, t *replay.Timeline, o Options) (*Slice, error) {
	p := newProgram()
	w := newWalker(p)
	w.thin, w.only, w.visit = o.Values || o.Copies, o.Copies, o.visit
	w.transitions.most = cmp.Or(o.transitions, maxTransitions)
	if o.Controls != nil {
		w.control = newControl(o.Controls)
	}
	w.want(&o)
	executed, from, err := w.back(ctx, t, &o)
	if err != nil {
		return nil, err
	}
	w.transitions.flush()
	if o.start != nil {
		o.start(w)
	}
	explained := w.isDone()
	w.atStart(from)
	s, of := w.graph.slice(w.met, o.At)
	s.Decisions = w.control.list(of)
	s.Executed, s.From, s.IsExplained = executed, from, explained
	return s, nil
}

// want makes the locations asked for live.
func (w *walker) want(o *Options) {
	value, address := w.sets.of(member(criterion, ForValue)), w.sets.of(member(criterion, ForAddress))
	w.cur = w.of(o.TID)
	for _, l := range o.Want {
		root := value
		if l.IsAddress {
			root = address
		}
		switch {
		case l.IsAddress && (o.Values || o.Copies):
		case l.IsMemory:
			for off := uint64(0); off < l.Len; off += 64 {
				w.over = !w.mem.put(l.Addr+off, 1<<min(l.Len-off, 64)-1, root, w.sets) || w.over
			}
		case l.IsVector:
			w.cur.put(dataflow.LanesOf(l.Reg&31, 0, 8), root, w.sets)
		default:
			w.cur.put(dataflow.BytesOf(l.Reg&15, 0, int(min(max(l.Len, 1), 8))), root, w.sets)
		}
	}
	if w.control != nil && o.Here != 0 {
		w.cur.next = o.Here
		w.wait(w.control.set(o.Here), w.sets.of(member(criterion, ForControl)))
	}
}

// back goes back through stretches until everything is explained or the recording begins. It
// returns how many instructions it went over, and where it ended.
func (w *walker) back(ctx context.Context, t *replay.Timeline, o *Options) (executed uint64, from checkpoint.Position, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	src := newSource(ctx, t, w.p, o)
	defer src.close()
	defer cancel() // before close waits
	from = o.At
	for !w.isDone() {
		s, err := src.next()
		if err != nil || s == nil {
			return executed, from, err
		}
		if s.skipped && !w.canSkip(t, s) { // it was looked at too early
			if err = src.make(s); err != nil {
				return executed, from, err
			}
		}
		if !s.skipped {
			if err := w.stretch(s); err != nil {
				return executed, from, err
			}
		}
		executed += s.retired - s.from.Instr
		from = s.from
		if s.seam != nil {
			w.seam(s.seam)
		}
		src.idle.Store(w.idle())
		src.recycle(s)
		if o.Progress != nil {
			o.Progress(executed, src.planned.Load())
		}
	}
	return executed, from, nil
}

// maxIdle bounds the pages that are looked up to skip a stretch.
const maxIdle = 64

// idle returns the live pages when nothing else is live, so that stretches which do not write
// them matter not; nil otherwise, or when they are many.
func (w *walker) idle() *[]uint64 {
	if w.control != nil || !w.registersDone() {
		return nil
	}
	var out []uint64
	for base, p := range w.mem.pages {
		if p.count > 0 {
			if out = append(out, base); len(out) > maxIdle {
				return nil
			}
		}
	}
	return &out
}

// canSkip reports whether s writes nothing that is live now.
func (w *walker) canSkip(t *replay.Timeline, s *stretch) bool {
	pages := w.idle()
	return pages != nil && untouched(t, *pages, s.from, s.to)
}

// untouched reports whether it is known that none of the pages is written in a stretch.
func untouched(t *replay.Timeline, pages []uint64, from, to checkpoint.Position) bool {
	for _, p := range pages {
		if p >= mem.MaxUser || !t.Untouched(from, to, p, mem.PageSize) {
			return false
		}
	}
	return true
}

// atStart says that what is live still was there when the recording began.
func (w *walker) atStart(from checkpoint.Position) {
	at := here(from)
	w.isHit = false
	var only run
	w.mem.within(0, ^uint64(0), func(a, mask uint64) {
		only.add(a, mask)
		w.mem.take(a, mask, w.needed)
	})
	if w.isHit {
		w.graph.outside(source{kind: Start, what: "memory", arg: only.start()}, w.need, at)
	}
	w.isHit = false
	for _, r := range w.regs {
		r.take(r.live(), w.needed)
	}
	if w.isHit {
		w.graph.outside(source{kind: Start, what: "registers", arg: noArg}, w.need, at)
	}
}

// run is bytes of memory without a gap, as far as there is none.
type run struct {
	from, to uint64
	broken   bool // there is a gap
}

// add adds the bytes of mask at a, which are behind those before.
func (r *run) add(a, mask uint64) {
	first, n := uint64(bits.TrailingZeros64(mask)), uint64(bits.OnesCount64(mask))
	r.broken = r.broken || mask>>first&(mask>>first+1) != 0 || r.to != 0 && r.to != a+first
	if r.to == 0 {
		r.from = a + first
	}
	r.to = a + first + n
}

// start returns where the bytes are, noArg where there is a gap between them, or none at all.
func (r *run) start() uint64 {
	if r.broken || r.to == 0 {
		return noArg
	}
	return r.from
}

// slice returns the graph as it is shown, and its vertices by their numbers. met are the instructions by theirs.
func (g *graph) slice(met []*instruction, at checkpoint.Position) (*Slice, map[uint32]*Vertex) {
	s := &Slice{Root: &Vertex{Kind: Criterion, Count: 1, Newest: at}}
	of := map[uint32]*Vertex{criterion: s.Root}
	sources := map[uint32]source{}
	for k, n := range g.keys {
		sources[n] = k
	}
	all := slices.Concat(g.nodes[:]...)
	for _, n := range g.other {
		all = append(all, n)
	}
	for _, n := range all {
		if n == nil {
			continue
		}
		id := n.id & (sourceBit | numberMask)
		v := &Vertex{Count: n.count, Newest: n.newest, Arg: noArg, Role: roleOf(n.id)}
		if k, ok := sources[id]; ok {
			v.Kind, v.NR, v.Arg, v.Note, v.What = k.kind, k.nr, k.arg, k.note, k.what
		} else {
			v.PC, v.Inst = met[id-1].PC, met[id-1].Inst
			s.Instances += n.count
			switch v.Role {
			case ForValue:
				s.Values += n.count
			case ForControl:
				s.Controls += n.count
			case ForAddress, roles:
			}
		}
		of[n.id] = v
		s.Vertices = append(s.Vertices, v)
	}
	for _, e := range g.edges {
		if from := of[e.from&nodeMask]; from != nil {
			from.Needs = append(from.Needs, Edge{To: of[e.to], Count: e.count, Newest: e.newest, Role: Role(e.from >> edgeShift & roleMask)})
		}
	}
	newest := func(a, b *Vertex) int {
		return cmp.Or(b.Newest.Compare(a.Newest), cmp.Compare(a.PC, b.PC), cmp.Compare(a.NR, b.NR), cmp.Compare(a.Arg, b.Arg), cmp.Compare(a.What, b.What), cmp.Compare(a.Note, b.Note), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Role, b.Role))
	}
	for _, v := range append(s.Vertices, s.Root) {
		slices.SortFunc(v.Needs, func(a, b Edge) int {
			return cmp.Or(b.Newest.Compare(a.Newest), newest(a.To, b.To), cmp.Compare(a.Role, b.Role))
		})
	}
	slices.SortFunc(s.Vertices, newest)
	return s, of
}
