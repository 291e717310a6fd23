//go:build linux && amd64

package jit

import "vplay/replay/x86"

// One check for several accesses. Those that a unit makes from one base register, which keeps its value or is the stack pointer that
// moves by known distances, are a reach: a range of bytes, checked as one at the first access. It leaves the host's address of
// its beginning in a word, the anchor, and the others use that: they cannot leave, and the flags stay. A range that is
// not on one page of the translation cache goes on in a unit that checks each access (Engine.single).
//
// Handlers may change what the cache has, so behind one Go looks again (Engine.anchored).

const (
	maxReach   = 512 // bytes; the longer, the more often it crosses the end of a page
	maxAnchors = 8   // in a unit
	maxDisp    = 1 << 20
)

// reach is such a range.
type reach struct {
	base   uint8 // guest register
	store  bool
	lo, hi int32 // from base, or for the stack pointer from what it was when the unit was entered
	n      int   // accesses
	last   int   // the last instruction of them
	slot   int   // of the anchor
	isLive bool  // the anchor has been set
}

// member says which reach the access of an instruction belongs to.
type member struct {
	reach int // its number and 1; 0: none
	at    int32
	size  uint8
	store bool
}

// anchor is an anchor that is in use behind a site.
type anchor struct {
	slot, base uint8
	store      bool
	at, size   int32 // from base
}

// noAnchor says that address is no anchor.
const noAnchor = -1

// findReaches sorts the accesses of the unit into reaches.
func (t *translator) findReaches() {
	t.reaches, t.holds = t.reaches[:0], noAnchor
	clear(t.members[:])
	if t.isSingle || t.e.log != nil {
		return
	}
	var open [16][2]int // by base and store: the reach that goes on, and 1
	sp := int32(0)
	for i := range t.u.insts {
		t.i, t.in = i, &t.u.insts[i]
		t.f = &t.rows[t.in.Row]
		if t.sp[i] = sp; !t.emitted(t.in) {
			open = [16][2]int{}
			continue
		}
		if base, m, ok := t.accessed(); ok && !t.isDirect() {
			if base == x86.RSP {
				m.at += sp
			}
			o := &open[base][0]
			if m.store {
				o = &open[base][1]
			}
			if *o == 0 {
				t.reaches = append(t.reaches, reach{base: base, store: m.store, lo: m.at, hi: m.at + int32(m.size)})
				*o = len(t.reaches)
			}
			r := &t.reaches[*o-1]
			if lo, hi := min(r.lo, m.at), max(r.hi, m.at+int32(m.size)); hi-lo <= maxReach {
				m.reach = *o
				r.lo, r.hi, r.last, r.n, t.members[i] = lo, hi, i, r.n+1, m
			}
		}
		w := t.f.written(t.in)
		if d, ok := stackMove(t.in, t.f); ok {
			sp += d
			w &^= 1 << x86.RSP
		}
		for r := range open {
			if w>>r&1 != 0 {
				open[r] = [2]int{}
			}
		}
	}
	slots := 0
	for i := range t.reaches {
		if r := &t.reaches[i]; r.n < 2 || slots == maxAnchors {
			r.n = 0
		} else {
			r.slot = slots
			slots++
		}
	}
}

// accessed returns the base register of the access of the instruction, and what it accesses from there.
func (t *translator) accessed() (base uint8, m member, ok bool) {
	in, f := t.in, t.f
	switch {
	case f.stack != 0 && in.Size != 8:
		return 0, m, false
	case f.stack == pushes:
		return x86.RSP, member{at: -8, size: 8, store: true}, true
	case f.stack == pops:
		return x86.RSP, member{size: 8}, true
	case f.stack == leaves:
		return x86.RBP, member{size: 8}, true
	case in.Flags&x86.InstMem == 0, f.address, f.rm.dir == 0, f.rm.dir&x86.DirAddress != 0, in.Base > x86.R15, in.Index != x86.NoReg,
		in.Seg == x86.FS, in.Seg == x86.GS, int64(in.Disp) < -maxDisp, int64(in.Disp) > maxDisp:
		return 0, m, false
	}
	m = member{at: int32(in.Disp), size: t.memorySize(), store: f.rm.dir&x86.DirWrite != 0}
	if f.isVectors {
		m.size = t.vectorSize()
	}
	return in.Base, m, true
}

// stackMove returns the distance by which in moves the stack pointer, where it is known.
func stackMove(in *x86.Inst, f *fact) (int32, bool) {
	isMem := in.Flags&x86.InstMem != 0
	switch d := int64(in.Imm); {
	case in.Size != 8:
	case f.stack == pushes && f.moves:
		return -8, true
	case f.stack == pops && f.moves && in.Reg != x86.RSP:
		return 8, true
	case f.address && in.Reg == x86.RSP && in.Base == x86.RSP && in.Index == x86.NoReg && in.Disp >= -maxDisp && in.Disp <= maxDisp:
		return int32(in.Disp), true
	case isMem || in.RM != x86.RSP || f.reg.dir != 0 || d < -maxDisp || d > maxDisp:
	case f.recipe == sum:
		return int32(d), true
	case f.recipe == difference:
		return int32(-d), true
	}
	return 0, false
}

// anchored makes place the access of the instruction, of size bytes, if that belongs to a reach. Flags stay, but where the
// reach is checked.
func (t *translator) anchored(size uint8, store bool) bool {
	m := t.members[t.i]
	t.members[t.i] = member{} // an instruction may make another access
	if m.reach == 0 || m.size != size || m.store != store {
		return false
	}
	r := &t.reaches[m.reach-1]
	switch {
	case r.n == 0:
		return false
	case !r.isLive:
		t.checkReach(r)
	case t.holds != r.slot:
		t.overwrites(address)
		t.mem(opMov, address, t.word(wordAnchor+r.slot))
	}
	t.holds, t.place = r.slot, at(address, m.at-r.lo)
	return true
}

// now returns how far r begins from what its base register is before instruction i.
func (t *translator) now(r *reach, i int) int32 {
	if r.base == x86.RSP {
		return r.lo - t.sp[i]
	}
	return r.lo
}

// checkReach checks r, and sets its anchor.
func (t *translator) checkReach(r *reach) {
	t.save()
	t.mem(opLea, address, at(t.operand(r.base, address), t.now(r, t.i)))
	t.observe()
	id := t.newEdge(t.u.pc + uint64(t.at[t.i]))
	x := t.e.edges.at(id)
	x.single, x.index, x.entry = true, t.i, t.flags.entry
	t.singles = append(t.singles, coldEdge{id, t.checkRange(uint32(r.hi-r.lo), r.store), t.i, t.flags})
	t.mem(opMovTo, address, t.word(wordAnchor+r.slot))
	t.lost()
	r.isLive = true
}

// singleEdge emits the way out of a reach that was not found on one page.
func (t *translator) singleEdge(w *coldEdge) {
	t.patch(w.jump, t.n)
	t.leaveFlags(w.flags)
	t.charge(w.n) // what is left of the unit fits, as all of it did
	x := t.e.edges.at(w.id)
	x.jump = t.jmp()
	x.cold = t.n
	t.patch(x.jump, t.n)
	t.exit(exitEdge, w.id)
}

// anchors returns those in use behind the instruction.
func (t *translator) anchors() (l []anchor) {
	for i := range t.reaches {
		if r := &t.reaches[i]; r.isLive && r.last > t.i {
			l = append(l, anchor{uint8(r.slot), r.base, r.store, t.now(r, t.i+1), r.hi - r.lo})
		}
	}
	return l
}

// anchored has c's words of the anchors l hold again behind a handler, and reports whether they do.
func anchored(c *x86.CPU, l []anchor) bool {
	for _, a := range l {
		at := c.Direct(c.R[a.base]+uint64(int64(a.at)), uint64(a.size), a.store)
		if at == 0 {
			return false
		}
		c.Host[wordAnchor+a.slot] = uint64(at)
	}
	return true
}

// singleKey is what units that check each access are kept by, from their address: that of no code.
const singleKey = 1 << 62

// singleAfter is how often a check of a reach fails before there is a unit for that: most fail once, for
// the translation cache did not have the page yet.
const singleAfter = 8

// single returns the unit in which edge id goes on, or nil.
func (e *Engine) single(c *x86.CPU, id uint32) *unit {
	x := e.edges.at(id)
	unit, entry, key := x.unit, x.entry, x.target^singleKey
	u := e.entries.unit(key)
	if x.failed++; u == nil && (x.failed >= singleAfter || e.All) && !unit.dead && !e.entries.at(key).refused {
		u = e.make(c, key, unit.end)
	}
	if u != nil && entry && u.needs && !unit.needs { // it would read flags that were left to nobody
		return nil
	}
	return u
}
