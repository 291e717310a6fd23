package taint

import (
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// One instruction that marks may go through: its operands, what it reads, and what it will
// write.

// step is the instruction that is about to be executed.
type step struct {
	t   *Engine
	c   *x86.CPU
	in  *x86.Inst
	k   *instruction
	at  [4]uint64 // addresses of k.Ops
	tag Tag       // of what it makes

	pc, retired uint64 // before it
}

// wrote tells that it makes something marked.
func (s *step) wrote(tag Tag) {
	if f := s.t.o.Wrote; f != nil {
		f(s.pc, s.retired, &s.k.Inst, tag)
	}
}

// pending is what the instruction changes when it retires.
type pending struct {
	general []generalWrite
	vectors []vectorWrite
	masks   []maskWrite
	x87     *x87Marks
	flags   [2]uint64 // which, and which of them are marked
	misc    [2]uint64
	stores  []storeWrite
	tag     Tag
	saved   *[32]vector
	savedAt uint64
	restore *[32]vector
}

type generalWrite struct {
	r           uint8
	mask, marks uint64
}

type vectorWrite struct {
	v           uint8
	mask, marks vector
}

type maskWrite struct {
	r     uint8
	marks uint64
}

type storeWrite struct {
	a     uint64
	n     int
	marks [64]byte
}

func (p *pending) reset() {
	p.general, p.vectors, p.masks, p.stores = p.general[:0], p.vectors[:0], p.masks[:0], p.stores[:0]
	p.flags, p.misc, p.tag, p.x87, p.saved, p.restore = [2]uint64{}, [2]uint64{}, 0, nil, nil, nil
}

// commit makes it so.
func (p *pending) commit(t *Engine) {
	g := &t.cur.regs
	for i := range p.general {
		w := &p.general[i]
		g.setGeneral(w.r, w.mask, w.marks, p.tag)
	}
	for i := range p.vectors {
		w := &p.vectors[i]
		g.setVector(w.v, &w.mask, &w.marks, p.tag)
	}
	for i := range p.masks {
		g.setMask(p.masks[i].r, p.masks[i].marks, p.tag)
	}
	if p.x87 != nil {
		g.setX87(p.x87)
	}
	if p.flags[0] != 0 {
		g.setFlags(p.flags[0], p.flags[1], p.tag)
	}
	if p.misc[0] != 0 {
		g.setMisc(p.misc[0], p.misc[1], p.tag)
	}
	for i := range p.stores {
		w := &p.stores[i]
		t.Mem.Store(w.a, w.marks[:w.n], p.tag)
	}
	if p.saved != nil {
		t.save(p.savedAt, p.saved)
	}
	if p.restore != nil {
		for i := range p.restore {
			g.setVector(uint8(i), laneMask(0xff), &p.restore[i], p.tag)
		}
	}
	p.reset()
}

// isMarked reports whether something of what the instruction makes is marked.
func (p *pending) isMarked() bool {
	if p.flags[1]|p.misc[1] != 0 {
		return true
	}
	if p.x87 != nil {
		if _, has := p.x87.any(); has {
			return true
		}
	}
	for i := range p.general {
		if p.general[i].marks != 0 {
			return true
		}
	}
	for i := range p.vectors {
		if p.vectors[i].marks != (vector{}) {
			return true
		}
	}
	for i := range p.masks {
		if p.masks[i].marks != 0 {
			return true
		}
	}
	for i := range p.stores {
		if anyOf(p.stores[i].marks[:p.stores[i].n]) {
			return true
		}
	}
	return false
}

// slow is Before for an instruction that something marked may have to do with.
func (t *Engine) slow(c *x86.CPU, in *x86.Inst, k *instruction) {
	s := &t.step
	s.t, s.c, s.in, s.k, s.tag, s.pc, s.retired = t, c, in, k, 0, c.RIP, c.Retired
	t.todo.reset()
	t.iter = c.RepIter
	tag, isAddress := t.check(c, in, k)
	if k.Repeats {
		t.rcx, t.from = c.R[x86.RCX], [2]uint64{c.R[x86.RSI], c.R[x86.RDI]}
		s.tag = tag
		t.Pending = true
		return
	}
	if k.saves || k.restores {
		t.state(c, in, k)
		t.Pending = true
		return
	}
	if k.Spied && k.rule != nil && !(isAddress && t.o.Addresses) {
		s.at[0] = t.key(c.Address(in))
		if k.rule(s) {
			s.finish()
			return
		}
		t.todo.reset()
	}
	if k.Spied {
		t.spy.Begin(c)
		s.tag = tag
		t.Pending = true
		return
	}
	if isAddress && t.o.Addresses {
		s.tag = tag
		s.all()
	} else if from, has := s.sources(); !has {
		s.none()
	} else {
		s.tag = from
		if k.rule == nil || !k.rule(s) {
			t.todo.reset()
			s.generic()
		}
	}
	s.finish()
}

// finish has what was found out take effect behind the instruction.
func (s *step) finish() {
	t := s.t
	t.todo.tag = s.tag
	t.Pending = true
	if t.o.Wrote != nil && t.todo.isMarked() {
		s.wrote(s.tag)
	}
}

// sources reports whether something that the instruction reads is marked.
func (s *step) sources() (tag Tag, has bool) {
	for i := range s.k.Flows {
		if tag, has = s.flowIn(&s.k.Flows[i]); has {
			return tag, has
		}
	}
	return 0, false
}

// flowIn reports whether something that f reads is marked.
func (s *step) flowIn(f *dataflow.Flow) (tag Tag, has bool) {
	for _, l := range f.Loads {
		n := int(s.k.Ops[l].Size)
		if s.t.Mem.Any(s.at[l], n) {
			var b [64]byte
			return s.t.Mem.Load(s.at[l], b[:n]), true
		}
	}
	if f.Copies {
		switch f.From.Kind {
		case dataflow.InGeneral:
			from := dataflow.BytesOf(f.From.Reg, int(f.From.Off), min(int(f.N), 8-int(f.From.Off)))
			return s.t.cur.any(&from)
		case dataflow.InVector:
			from := dataflow.LanesOf(f.From.Reg, 0, (int(f.N)+7)/8)
			return s.t.cur.any(&from)
		}
		return 0, false
	}
	return s.t.cur.any(&f.Src)
}

// none has all that is written lose its marks.
func (s *step) none() {
	for i := range s.k.Flows {
		s.write(&s.k.Flows[i], false)
	}
}

// all has all that is written become marked.
func (s *step) all() {
	for i := range s.k.Flows {
		s.write(&s.k.Flows[i], true)
	}
}

// generic makes of marked flows what is known of them from the table alone.
func (s *step) generic() {
	for i := range s.k.Flows {
		f := &s.k.Flows[i]
		tag, has := s.flowIn(f)
		switch {
		case !has:
			s.write(f, false)
		case f.Copies:
			s.tag = tag
			s.copies(f)
		default:
			s.tag = tag
			s.write(f, true)
		}
	}
}

// width is how many bits of a general register a result has that clears the rest.
func (s *step) width() uint64 {
	if !s.k.keeps && s.in.Size <= 4 && s.in.Flags&x86.InstW == 0 {
		return 0xffffffff
	}
	return ^uint64(0)
}

// write marks all that f writes, or none of it.
func (s *step) write(f *dataflow.Flow, marked bool) {
	p := &s.t.todo
	for r := range 16 {
		if mask := generalOf(&f.Dst, r); mask != 0 {
			w := generalWrite{r: uint8(r), mask: mask}
			if marked {
				w.marks = mask & s.width()
			}
			p.general = append(p.general, w)
		}
	}
	if f.Dst[2]|f.Dst[3]|f.Dst[4]|f.Dst[5] != 0 {
		for v := range 32 {
			if lanes := lanesOf(&f.Dst, v); lanes != 0 {
				w := vectorWrite{v: uint8(v), mask: *laneMask(lanes)}
				if marked {
					w.marks = *laneMask(lanes & s.lanes())
				}
				p.vectors = append(p.vectors, w)
			}
		}
	}
	s.setFlags(flagsOf(&f.Dst), marked)
	if m := miscOf(&f.Dst); m != 0 {
		p.misc[0] |= m
		if marked {
			p.misc[1] |= m
		}
	}
	if f.Store >= 0 {
		w := storeWrite{a: s.at[f.Store], n: int(s.k.Ops[f.Store].Size)}
		for i := range w.n {
			if marked {
				w.marks[i] = 0xff
			}
		}
		p.stores = append(p.stores, w)
	}
}

// setFlags marks flags, or not.
func (s *step) setFlags(f uint64, marked bool) {
	p := &s.t.todo
	p.flags[0] |= f
	if p.flags[1] &^= f; marked {
		p.flags[1] |= f
	}
}

// lanes are the lanes of a vector register that a result of the instruction has: the others
// become zero.
func (s *step) lanes() uint64 {
	n := uint64(1)
	for _, a := range s.k.args {
		if a.Kind == dataflow.InVector && !a.IsOther {
			n = max(n, (uint64(a.Size)+7)/8)
		}
	}
	if s.in.Flags&x86.InstEVEX != 0 {
		n = 8
	}
	return 1<<n - 1
}

// copies does a copy.
func (s *step) copies(f *dataflow.Flow) {
	var m vector
	switch f.From.Kind {
	case dataflow.InMemory:
		var b [64]byte
		s.t.Mem.Load(s.at[f.From.Reg], b[:f.N])
		m = vectorOf(b[:f.N])
	case dataflow.InGeneral:
		m[0] = s.t.cur.r[f.From.Reg] >> (8 * f.From.Off)
	case dataflow.InVector:
		m = s.t.cur.v[f.From.Reg]
	}
	m = m.low(int(f.N))
	if f.Extends && m[0]>>(8*f.N-1)&1 != 0 {
		m[0] |= ^uint64(0) << (8*f.N - 1)
	}
	p := &s.t.todo
	switch f.To.Kind {
	case dataflow.InMemory:
		s.store(int(f.To.Reg), &m)
	case dataflow.InGeneral:
		mask := generalOf(&f.Dst, int(f.To.Reg))
		marks := m[0] << (8 * f.To.Off) & mask
		if f.Extends {
			marks &= s.width() | mask&0xffff
		}
		p.general = append(p.general, generalWrite{f.To.Reg, mask, marks})
	case dataflow.InVector:
		p.vectors = append(p.vectors, vectorWrite{f.To.Reg, *laneMask(lanesOf(&f.Dst, int(f.To.Reg))), m})
	}
}

// store stores marks to memory operand i.
func (s *step) store(i int, m *vector) {
	w := storeWrite{a: s.at[i], n: int(s.k.Ops[i].Size)}
	copy(w.marks[:], m.bytes())
	s.t.todo.stores = append(s.t.todo.stores, w)
}
