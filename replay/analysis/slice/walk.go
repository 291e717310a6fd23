package slice

import (
	"errors"

	"vplay/checkpoint"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// The walk: back through the trace of a stretch, with the set of live locations. An
// instruction that wrote a live location is in the slice: what it wrote is explained, and
// what it read becomes live in its place (Korel and Laski 1988; the trace is not kept).

// ErrTooMany says that more memory is needed for what the value depends on, or for the
// program's instructions, than a slice may take.
var ErrTooMany = errors.New("slice: the value depends on too much")

// walker goes back through stretches.
type walker struct {
	p     *program
	mem   *liveMemory
	regs  map[checkpoint.TID]*liveRegs
	cur   *liveRegs // of the thread that runs
	sets  *needSets
	graph *graph
	// What is live of registers, and what plain instructions do to the slice.
	pieces      *livePieces
	transitions *transitions

	thin  bool // addresses are not followed
	only  bool // only copies are followed
	visit func(Instance)
	// control is nil where control dependences are not followed.
	control *control
	// onNeed is needed, made a function once.
	onNeed func(need uint32)

	s    *stretch
	list []*instruction
	// numbers are those of vertices, by instruction.code: in the order in which the walk came to them, which is the same
	// each time, as which of many edges are left out is told by them. Tracers meet instructions as it happens.
	numbers []uint32
	met     []*instruction // by number, 1 less
	need    uint32         // of what the present instruction or event wrote
	isHit   bool
	over    bool // too much is live
}

func newWalker(p *program) *walker {
	sets := newNeedSets()
	w := &walker{p: p, mem: newLiveMemory(), regs: map[checkpoint.TID]*liveRegs{}, sets: sets, graph: newGraph(sets), pieces: newLivePieces(), transitions: newTransitions()}
	w.onNeed = w.needed
	return w
}

// of returns what is live of a thread.
func (w *walker) of(tid checkpoint.TID) *liveRegs {
	r := w.regs[tid]
	if r == nil {
		r = &liveRegs{of: w.pieces}
		w.regs[tid] = r
	}
	return r
}

// isDone reports whether nothing is live any more.
func (w *walker) isDone() bool {
	return w.mem.count == 0 && w.registersDone() && (w.control == nil || w.control.waiting == 0)
}

// registersDone reports whether no register is live.
func (w *walker) registersDone() bool {
	for _, r := range w.regs {
		if r.sum != 0 {
			return false
		}
	}
	return true
}

// stretch goes back through one stretch.
func (w *walker) stretch(s *stretch) error {
	if w.p.over.Load() {
		return ErrTooMany
	}
	w.s, w.list = s, w.p.all()
	w.cur = w.of(s.tid)
	words, retired := len(s.words), s.retired
	at := &moment{s: s}
	for i := len(s.ids) - 1; i >= 0; i-- {
		id := s.ids[i]
		if id&eventBit != 0 {
			e := &s.events[id&^eventBit]
			retired = e.retired
			at.index, at.retired = i, retired
			w.event(e, at)
			continue
		}
		k := w.list[id]
		words -= int(k.words)
		if k.retires {
			retired--
		}
		if w.control != nil {
			if len(w.cur.brought) > 0 {
				w.calledKernel(k)
			}
			if k.Transfer != x86.NoTransfer {
				at.index, at.retired = i, retired
				w.flowOfControl(k, words, at)
			}
			w.cur.next = k.PC
		}
		if k.touch&w.cur.sum == 0 && !k.stores {
			continue
		}
		at.index, at.retired = i, retired
		w.instruction(k, id, words, at)
	}
	if w.over {
		return ErrTooMany
	}
	return nil
}

// moment is where an instruction or an event is in a stretch.
type moment struct {
	s       *stretch
	index   int // of stretch.ids
	retired uint64
}

// position returns the settled position of m, before the instruction.
func (m *moment) position() checkpoint.Position {
	p := checkpoint.Position{Interval: m.s.from.Interval, Instr: m.retired}
	for i := m.index - 1; i >= 0 && m.s.ids[i]&eventBit != 0; i-- {
		e := &m.s.events[m.s.ids[i]&^eventBit]
		if e.retired != m.retired {
			break
		}
		p.Step += e.steps
	}
	return p
}

// needed is called with the need of a location that the present instruction wrote.
func (w *walker) needed(n uint32) {
	if w.isHit {
		n = w.sets.union(w.need, n)
	}
	w.need, w.isHit = n, true
}

// instruction explains what k wrote, if it was needed. id is its number, and words where its words begin.
func (w *walker) instruction(k *instruction, id uint32, words int, at *moment) {
	w.isHit = false
	ws := w.s.words[words : words+int(k.words)]
	if k.plain {
		w.plain(k, id, ws, at)
		return
	}
	var after func(*node)
	if k.Spied {
		after = w.spied(k, w.s.spied[ws[0]])
	} else {
		after = w.repeated(k, ws)
	}
	if w.isHit {
		n := w.graph.hit(w.vertex(k), w.need, at)
		w.goOn(k, n, at)
		after(n)
	}
}

// vertex returns the number of the vertex of k.
func (w *walker) vertex(k *instruction) uint32 {
	if int(k.code) >= len(w.numbers) {
		w.numbers = append(w.numbers, make([]uint32, int(k.code)+1-len(w.numbers))...)
	}
	n := &w.numbers[k.code]
	if *n == 0 {
		w.met = append(w.met, k)
		*n = uint32(len(w.met))
	}
	return *n
}

// goOn goes on from k, which was added to the slice as n.
func (w *walker) goOn(k *instruction, n *node, at *moment) {
	if w.control != nil {
		w.waitFor(k, n)
	}
	if w.visit != nil {
		w.visit(Instance{Interval: w.s.from.Interval, Instr: at.retired, Retires: k.retires, in: k})
	}
}

// plain explains what an ordinary instruction wrote.
func (w *walker) plain(k *instruction, id uint32, ws []uint64, at *moment) {
	var c cause
	if k.store >= 0 {
		if live := w.mem.window(ws[k.store], int(k.stored)); live != 0 {
			w.mem.take(ws[k.store], live, w.onNeed)
			c.stored = taken{live, w.need}
		}
	}
	if c.stored.mask == 0 && k.touch&w.cur.sum == 0 {
		return
	}
	n := w.transitions.instruction(k, id)
	if n.n < 0 {
		t := w.explain(k, &c, at)
		w.make(t, k, ws, at)
		t.flush()
		return
	}
	t := n.latest(&w.cur.pieces, c.stored)
	if t == nil {
		n.from(&c, &w.cur.pieces)
		if t = w.transitions.find(n, id, &c); t == nil {
			if w.forget() {
				n.from(&c, &w.cur.pieces)
			}
			w.make(w.keep(w.explain(k, &c, at), id), k, ws, at)
			return
		}
	}
	for i, p := range n.list[:n.n] {
		w.cur.pieces[p] = t.to[i]
	}
	w.cur.sum = w.cur.sum&^n.bits | t.sum
	w.make(t, k, ws, at)
}

// keep keeps t, a transition of instruction id that was just made.
func (w *walker) keep(t *transition, id uint32) *transition {
	n := &w.transitions.of[id]
	for i, p := range n.list[:n.n] {
		t.to[i] = w.cur.pieces[p]
	}
	t.sum = w.cur.sum & n.bits
	w.transitions.all[fullCause{t.cause, id}] = t
	n.keep(t)
	return t
}

// make does what t says but for the registers.
func (w *walker) make(t *transition, k *instruction, ws []uint64, at *moment) {
	if t.node == nil {
		return
	}
	t.count++
	for i := range t.loads {
		l := &t.loads[i]
		w.over = !w.mem.put(ws[l.word], l.mask, l.need, w.sets) || w.over
	}
	if w.control != nil || w.visit != nil {
		w.goOn(k, t.node, at)
	}
}

// explain finds what instruction k does to the slice for c, and changes the registers.
func (w *walker) explain(k *instruction, c *cause, at *moment) *transition {
	t := &transition{cause: *c}
	w.isHit = false
	var masks [maxFlows]uint64
	var hits [maxFlows]bool
	for i := range k.Flows {
		masks[i], hits[i] = w.takeFlow(&k.Flows[i], &c.stored)
	}
	if w.isHit {
		w.explained(k, t, &masks, &hits, at)
	}
	return t
}

// explained is explain for an instruction of the slice, which wrote what is live by hits: of copies the bytes in masks.
func (w *walker) explained(k *instruction, t *transition, masks *[maxFlows]uint64, hits *[maxFlows]bool, at *moment) {
	n := w.graph.nodeFor(w.vertex(k), w.need, at)
	t.node, t.edges = n, w.graph.edgesOf(n, w.need, at)
	from := n.need[ForValue]
	if k.saves { // which is needed by those that needed what it kept, each by its own
		from = w.need
	}
	for i := range k.Flows {
		f := &k.Flows[i]
		switch {
		case !hits[i]:
		case f.Copies && f.From.Kind == dataflow.InMemory:
			t.loads = append(t.loads, load{int(f.From.Reg), masks[i], from})
		case f.Copies:
			if p := pieceOf(f.From, masks[i]); p.Mask != 0 && p.N != x86.RSP { // see dataflow.Ignored
				w.cur.putPiece(p, from, w.sets)
			}
		case !w.only:
			w.putPieces(f.Reads, n.need[ForValue])
			for _, l := range f.Loads {
				t.loads = append(t.loads, load{int(l), bytesMask(int(k.Ops[l].Size)), n.need[ForValue]})
			}
		}
	}
	w.putAddress(k, n)
}

// takeFlow takes what f wrote; of memory stored was taken. Of a copy it returns the bytes that are wanted of what was
// copied.
func (w *walker) takeFlow(f *dataflow.Flow, stored *taken) (mask uint64, hit bool) {
	was := w.isHit
	w.isHit = false
	before := w.need
	if f.Store >= 0 && stored.mask != 0 {
		mask = stored.mask
		w.needed(stored.need)
	}
	for _, p := range f.Writes {
		if p.Mask = w.cur.takePiece(p, w.onNeed); p.Mask != 0 && f.Copies {
			mask |= copied(f, p)
		}
	}
	hit = w.isHit
	if was && hit {
		w.need = w.sets.union(before, w.need)
	} else if was {
		w.need = before
	}
	w.isHit = was || hit
	return mask, hit
}

// copied returns which of the bytes that f copied became the parts of p.
func copied(f *dataflow.Flow, p dataflow.Piece) (mask uint64) {
	switch {
	case f.To.Kind == dataflow.InGeneral && p.N == f.To.Reg:
		all := uint64(p.Mask) >> f.To.Off
		if mask = all & (1<<f.N - 1); f.Extends && all&^(1<<f.N-1) != 0 {
			mask |= 1 << (f.N - 1)
		}
	case f.To.Kind == dataflow.InVector && p.N == dataflow.VecWord*8+f.To.Reg:
		for i := range 8 {
			if p.Mask>>i&1 != 0 {
				mask |= 0xff << (8 * i)
			}
		}
		mask &= 1<<f.N - 1
	}
	return mask
}

// pieceOf returns the parts of the register at p that hold the bytes of mask.
func pieceOf(p dataflow.Place, mask uint64) dataflow.Piece {
	if p.Kind == dataflow.InGeneral {
		return dataflow.Piece{N: p.Reg, Mask: uint8(mask << p.Off)}
	}
	lanes := dataflow.Piece{N: dataflow.VecWord*8 + p.Reg}
	for i := range 8 {
		if mask>>(8*i)&0xff != 0 {
			lanes.Mask |= 1 << i
		}
	}
	return lanes
}

// takePieces takes what is live of parts of registers, and reports whether that was anything.
func (w *walker) takePieces(list []dataflow.Piece) (isLive bool) {
	for _, p := range list {
		isLive = w.cur.takePiece(p, w.onNeed) != 0 || isLive
	}
	return isLive
}

// putPieces makes parts of registers live.
func (w *walker) putPieces(list []dataflow.Piece, need uint32) {
	for _, p := range list {
		w.cur.putPiece(p, need, w.sets)
	}
}

// putMemory makes n bytes live.
func (w *walker) putMemory(a uint64, n int, need uint32) {
	for ; n > 0; n, a = n-64, a+64 {
		w.over = !w.mem.put(a, bytesMask(n), need, w.sets) || w.over
	}
}

// bytesMask has a bit for each of n bytes, at most 64.
func bytesMask(n int) uint64 { return 1<<min(n, 64) - 1 }

// putAddress makes live what the addresses of k's operands are made of.
func (w *walker) putAddress(k *instruction, n *node) {
	if !w.thin {
		w.putPieces(k.Bases, n.need[ForAddress])
	}
}

// spied explains what an instruction wrote of which the accesses were watched.
func (w *walker) spied(k *instruction, seen []dataflow.Access) func(*node) {
	f := &k.Flows[0]
	for _, a := range seen {
		if a.Stores {
			w.takeMemory(a.Addr, uint64(a.N))
		}
	}
	w.takePieces(f.Writes)
	return func(n *node) {
		if w.only {
			return
		}
		w.putPieces(f.Reads, n.need[ForValue])
		for _, a := range seen {
			if !a.Stores {
				w.putMemory(a.Addr, a.N, n.need[ForValue])
			}
		}
		w.putAddress(k, n)
	}
}

// takeMemory takes all that is live of n bytes.
func (w *walker) takeMemory(a, n uint64) {
	for n > 0 {
		part := min(n, 64)
		if live := w.mem.window(a, int(part)); live != 0 {
			w.mem.take(a, live, w.onNeed)
		}
		a, n = a+part, n-part
	}
}
