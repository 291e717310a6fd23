package slice

import (
	"errors"

	"vplay/checkpoint"
)

// The walk: back through the trace of a stretch, with the set of live locations. An
// instruction that wrote a live location is in the slice: what it wrote is explained, and
// what it read becomes live in its place (Korel and Laski 1988; the trace is not kept).

// ErrTooMany says that more memory is needed for what the value depends on, or for the
// program's instructions, than a slice may take.
var ErrTooMany = errors.New("slice: the value depends on too much")

// walker goes back through stretches.
type walker struct {
	p       *program
	mem     *liveMemory
	regs    map[checkpoint.TID]*liveRegs
	cur     *liveRegs // of the thread that runs
	sets    *needSets
	graph   *graph
	thin    bool // addresses are not followed
	only    bool // only copies are followed
	visit   func(Instance)
	control *control // nil: control dependences are not followed

	s     *stretch
	list  []*instruction
	need  uint32 // of what the present instruction or event wrote
	isHit bool
	over  bool // too much is live
}

func newWalker(p *program) *walker {
	sets := newNeedSets()
	return &walker{p: p, mem: newLiveMemory(), regs: map[checkpoint.TID]*liveRegs{}, sets: sets, graph: newGraph(sets)}
}

// of returns what is live of a thread.
func (w *walker) of(tid checkpoint.TID) *liveRegs {
	r := w.regs[tid]
	if r == nil {
		r = &liveRegs{}
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
			if k.class != isPlain {
				at.index, at.retired = i, retired
				w.flowOfControl(k, words, at)
			}
			w.cur.next = k.pc
		}
		if k.touch&w.cur.sum == 0 && !k.stores {
			continue
		}
		at.index, at.retired = i, retired
		w.instruction(k, words, at)
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

// instruction explains what k wrote, if it was needed. words is where its words begin.
func (w *walker) instruction(k *instruction, words int, at *moment) {
	w.isHit = false
	var ws [4]uint64
	copy(ws[:], w.s.words[words:words+int(k.words)])
	var after func(need uint32)
	switch {
	case k.spied:
		after = w.spied(k, w.s.spied[ws[0]])
	case k.repeats:
		after = w.repeated(k, ws)
	default:
		w.plain(k, &ws, at)
		return
	}
	if w.isHit {
		after(w.hit(k, at))
	}
}

// hit adds the present instruction to the slice and returns the need of it alone.
func (w *walker) hit(k *instruction, at *moment) uint32 {
	need := w.graph.hit(k.vertex, w.need, at)
	if w.control != nil {
		w.wait(k.pc, need)
	}
	if w.visit != nil {
		w.visit(Instance{Interval: w.s.from.Interval, Instr: at.retired, Retires: k.retires, in: k})
	}
	return need
}

// plain explains what an ordinary instruction wrote.
func (w *walker) plain(k *instruction, ws *[4]uint64, at *moment) {
	var masks [2]uint64
	var hits [2]bool
	for i := range k.flows {
		masks[i], hits[i] = w.takeFlow(k, &k.flows[i], ws)
	}
	if !w.isHit {
		return
	}
	need := w.hit(k, at)
	for i := range k.flows {
		f := &k.flows[i]
		switch {
		case !hits[i]:
		case f.copies:
			w.putPlace(f.from, ws, masks[i], need)
		case !w.only:
			w.putRegs(f.src, need)
			for _, l := range f.loads {
				w.putMemory(ws[l], int(k.ops[l].size), need)
			}
		}
	}
	w.putAddress(k, need)
}

// takeFlow takes what f wrote. Of a copy it returns the bytes that are wanted of what was
// copied.
func (w *walker) takeFlow(k *instruction, f *flow, ws *[4]uint64) (mask uint64, hit bool) {
	was := w.isHit
	w.isHit = false
	before := w.need
	if f.store >= 0 {
		if live := w.mem.window(ws[f.store], int(k.ops[f.store].size)); live != 0 {
			w.mem.take(ws[f.store], live, w.needed)
			mask = live
		}
	}
	live := f.dst.and(w.cur.set)
	if !live.isEmpty() {
		if f.copies {
			mask |= copied(f, &live)
		}
		w.cur.take(live, w.needed)
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

// copied returns which of the bytes that f copied to a register are live.
func copied(f *flow, live *regSet) (mask uint64) {
	switch f.to.kind {
	case inGeneral:
		at := int(f.to.reg)*8 + int(f.to.off)
		all := live[at/64] >> (at % 64)
		if mask = all & (1<<f.n - 1); f.extends && all&0xff&^(1<<f.n-1) != 0 {
			mask |= 1 << (f.n - 1)
		}
	case inVector:
		at := int(f.to.reg) * 8
		lanes := live[vecWord+at/64] >> (at % 64) & 0xff
		for i := range 8 {
			if lanes>>i&1 != 0 {
				mask |= 0xff << (8 * i)
			}
		}
		mask &= 1<<f.n - 1
	}
	return mask
}

// putPlace makes the bytes of mask at p live.
func (w *walker) putPlace(p place, ws *[4]uint64, mask uint64, need uint32) {
	var s regSet
	switch p.kind {
	case inMemory:
		w.over = !w.mem.put(ws[p.reg], mask, need, w.sets) || w.over
		return
	case inGeneral:
		at := int(p.reg)*8 + int(p.off)
		s[at/64] = mask << (at % 64)
	case inVector:
		for i := range 8 {
			if mask>>(8*i)&0xff != 0 {
				s.add(lanesOf(p.reg, i, i+1))
			}
		}
	}
	w.putRegs(s, need)
}

// putRegs makes parts of registers live.
func (w *walker) putRegs(s regSet, need uint32) {
	s.remove(ignored)
	if !s.isEmpty() {
		w.cur.put(s, need, w.sets)
	}
}

// putMemory makes n bytes live.
func (w *walker) putMemory(a uint64, n int, need uint32) {
	for ; n > 0; n, a = n-64, a+64 {
		w.over = !w.mem.put(a, 1<<min(n, 64)-1, need, w.sets) || w.over
	}
}

// putAddress makes live what the addresses of k's operands are made of.
func (w *walker) putAddress(k *instruction, need uint32) {
	if !w.thin && !k.address.isEmpty() {
		w.cur.put(k.address, need, w.sets)
	}
}

// spied explains what an instruction wrote of which the accesses were watched.
func (w *walker) spied(k *instruction, seen []access) func(need uint32) {
	f := &k.flows[0]
	for _, a := range seen {
		if a.stores {
			w.takeMemory(a.addr, uint64(a.n))
		}
	}
	if live := f.dst.and(w.cur.set); !live.isEmpty() {
		w.cur.take(live, w.needed)
	}
	return func(need uint32) {
		if w.only {
			return
		}
		w.putRegs(f.src, need)
		for _, a := range seen {
			if !a.stores {
				w.putMemory(a.addr, a.n, need)
			}
		}
		w.putAddress(k, need)
	}
}

// takeMemory takes all that is live of n bytes.
func (w *walker) takeMemory(a, n uint64) {
	for n > 0 {
		part := min(n, 64)
		if live := w.mem.window(a, int(part)); live != 0 {
			w.mem.take(a, live, w.needed)
		}
		a, n = a+part, n-part
	}
}
