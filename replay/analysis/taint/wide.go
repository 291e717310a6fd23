package taint

import (
	"strings"

	"vplay/replay/x86"
)

// Instructions of AVX-512: those with an EVEX prefix, and those of mask registers. What is different
// from other vector instructions is the same for all of them, and stands here: 32 registers of 64 bytes, masks
// that say which elements are written, and one element of memory for all. A rule (widerules.go)
// computes the marks as if there were no mask.

// wide is what is known of an instruction of AVX-512.
type wide struct {
	x86.VectorShape
	args  []wideArgument
	mask  uint8 // the register of the mask that says what is written, 0: all is
	width int   // bits of a mask that an instruction of mask registers works on
	rule  wideRule
	isOwn bool // elements that the mask leaves out do not stay as they were, nor become zero
	// control is the argument that says what comes where, -1: there is none.
	control int
}

// wideRule returns what the instruction makes of marks, and false where it does not know.
type wideRule func(s *step, w *wide) bool

// wideArgument is an explicit operand.
type wideArgument struct {
	kind  wideKind
	reg   uint8
	reads bool // whatever the mask is
}

type wideKind uint8

const (
	wideImmediate wideKind = iota
	wideMemory
	wideGeneral
	wideVector
	wideMask
)

// wideOf returns what is known of an instruction of AVX-512, nil where there is no rule.
func wideOf(k *instruction, row *x86.Row) *wide {
	w := &wide{rule: wideRuleOf(k.mnemonic)}
	if w.rule == nil {
		return nil
	}
	in := &k.Inst
	if row.File == "opmask" {
		w.width = 8 * laneSize(k.mnemonic)
		w.Memory = w.width / 8
	} else {
		w.VectorShape, w.mask = in.VectorShape(), in.EVEX.Mask()
	}
	for i, o := range in.Operands()[:len(row.Operands)] {
		a := wideArgument{reads: row.Dirs[i]&x86.DirRead != 0}
		switch {
		case o.Uses.Parts&x86.PartMemory != 0:
			a.kind = wideMemory
		case o.Uses.R != 0:
			a.kind, a.reg = wideGeneral, lowestBit(uint32(o.Uses.R))
		case o.Uses.V != 0:
			a.kind, a.reg = wideVector, lowestBit(o.Uses.V)
		case o.Uses.K != 0:
			a.kind, a.reg = wideMask, lowestBit(uint32(o.Uses.K))
		}
		w.args = append(w.args, a)
	}
	w.isOwn, w.control = ownMask(k.mnemonic), w.controlOf(k.mnemonic)
	isPacking := strings.HasPrefix(k.mnemonic, "PCOMPRESS") || strings.HasPrefix(k.mnemonic, "PEXPAND")
	if isPacking && in.Flags&x86.InstMem != 0 {
		return nil // how much memory it is depends on the mask
	}
	return w
}

// ownMask reports whether an element that the mask leaves out does not stay what it was: of a
// scalar the others come from elsewhere, and some pack elements or choose between sources.
func ownMask(mnemonic string) bool {
	switch mnemonic {
	case "MOVSS", "MOVSD":
		return true
	}
	for _, p := range [...]string{"PCOMPRESS", "PEXPAND", "PBLENDM", "BLENDM"} {
		if strings.HasPrefix(mnemonic, p) {
			return true
		}
	}
	return false
}

func lowestBit(v uint32) (n uint8) {
	for ; v&1 == 0; v >>= 1 {
		n++
	}
	return n
}

// useWide is the rule of all instructions of AVX-512.
func useWide(s *step) bool {
	w := s.k.wide
	s.tag = 0
	for _, reads := range [...]bool{true, false} { // what it computes from, then what it keeps
		for i := range w.args {
			if marks, tag := s.wideMarks(i); w.args[i].reads == reads && s.tag == 0 && !marks.isZero() {
				s.tag = tag
			}
		}
		if m := s.t.cur.k[w.mask]; w.mask != 0 && m != 0 && s.tag == 0 {
			s.tag = s.t.cur.miscTag
		}
	}
	return w.rule(s, w)
}

// isUnmarked reports whether nothing that the instruction computes from is marked.
func (s *step) isUnmarked(w *wide) bool {
	for i := range w.args {
		if m, _ := s.wideMarks(i); w.args[i].reads && !m.isZero() {
			return false
		}
	}
	return true
}

// wideMarks returns the marks of argument i. Of memory they are as the instruction sees it.
func (s *step) wideMarks(i int) (marks vector, tag Tag) {
	w, g := s.k.wide, &s.t.cur.regs
	switch a := &w.args[i]; a.kind {
	case wideMemory:
		var b [64]byte
		tag = s.t.Mem.Load(s.at[0], b[:w.Memory])
		marks = vectorOf(b[:w.Memory])
		return w.spread(marks), tag
	case wideGeneral:
		return vector{g.r[a.reg]}, g.rTag[a.reg]
	case wideVector:
		return g.v[a.reg], g.vTag[a.reg]
	case wideMask:
		return vector{g.k[a.reg]}, g.miscTag
	default:
		return marks, 0
	}
}

// wideValue returns the value of argument i.
func (s *step) wideValue(i int) (value vector) {
	w := s.k.wide
	switch a := &w.args[i]; a.kind {
	case wideMemory:
		var b [64]byte
		at := s.c.Address(s.in)
		if f := s.c.Bus.Read(at, b[:w.Memory]); f.Kind != x86.FaultNone {
			n := max(w.Memory/max(w.Elements, 1), 1)
			for off := 0; off+n <= w.Memory; off += n { // what the mask leaves out need not be there
				s.c.Bus.Read(at+uint64(off), b[off:off+n])
			}
		}
		return w.spread(vectorOf(b[:w.Memory]))
	case wideGeneral:
		return vector{s.c.R[a.reg]}
	case wideVector:
		return s.c.ZMM(a.reg)
	case wideMask:
		return vector{s.c.Wide.K[a.reg]}
	default:
		return vector{s.in.Imm}
	}
}

// spread repeats an element that stands in memory for all.
func (w *wide) spread(m vector) vector {
	if w.Broadcasts {
		for i := w.Memory; i < w.Length; i += w.Memory {
			m.setLane(i/w.Memory, w.Memory, m.lane(0, w.Memory))
		}
	}
	return m
}

// writeMask returns which elements are written, and of which of them that depends on marks.
func (s *step) writeMask(w *wide) (set, open uint64) {
	all := ^uint64(0) >> (64 - min(max(w.Elements, 1), 64))
	if w.mask == 0 {
		return all, 0
	}
	return s.c.Wide.K[w.mask] & all, s.t.cur.k[w.mask] & all
}

// wideResult marks argument 0, a vector register or memory, with what a rule has made as if there
// were no mask.
func (s *step) wideResult(w *wide, m vector) bool {
	set, open := s.writeMask(w)
	if w.isOwn && open != 0 {
		return false
	}
	a := &w.args[0]
	old, _ := s.wideMarks(0)
	for i := 0; w.mask != 0 && !w.isOwn && i < w.Elements; i++ {
		switch all := ^uint64(0) >> (64 - 8*w.Element); {
		case open>>i&1 != 0:
			m.setLane(i, w.Element, all)
		case set>>i&1 != 0:
		case w.Zeroes:
			m.setLane(i, w.Element, 0)
		default:
			m.setLane(i, w.Element, old.lane(i, w.Element))
		}
	}
	if a.kind == wideMemory {
		x := storeWrite{a: s.at[0], n: w.Memory}
		copy(x.marks[:], m.bytes())
		s.t.todo.stores = append(s.t.todo.stores, x)
		return true
	}
	s.t.todo.vectors = append(s.t.todo.vectors, vectorWrite{a.reg, *laneMask(0xff), m.low(w.Length)})
	return true
}

// maskResult marks the mask register that is argument 0. Elements that the instruction's own
// mask leaves out become zero.
func (s *step) maskResult(w *wide, m uint64) bool {
	if w.mask != 0 {
		set, open := s.writeMask(w)
		m = m&set | open
	}
	s.t.todo.masks = append(s.t.todo.masks, maskWrite{w.args[0].reg, m})
	return true
}

// wideMoveRule is that of instructions whose results are bits of their operands: they are executed with the marks
// in the place of data, and with the mask as it is.
func wideMoveRule(s *step, w *wide) bool {
	if s.isUnmarked(w) && w.args[0].kind == wideVector && !w.isOwn {
		return s.wideResult(w, vector{})
	}
	v := s.mover()
	c := v.cpu
	c.RIP, c.RepIter = s.c.RIP, 0
	c.FSBase, c.GSBase = s.c.FSBase, s.c.GSBase
	for _, r := range [...]uint8{s.in.Base, s.in.Index} {
		if s.in.Flags&x86.InstMem != 0 && r < x86.NoReg {
			c.R[r] = s.c.R[r]
		}
	}
	if w.mask != 0 {
		c.Wide.K[w.mask] = s.c.Wide.K[w.mask]
	}
	given := uint32(0) // vector registers
	for i := range w.args {
		a := &w.args[i]
		marks, _ := s.wideMarks(i)
		if i == w.control {
			if !marks.isZero() {
				return false
			}
			marks = s.wideValue(i)
		}
		switch a.kind {
		case wideImmediate:
		case wideMemory:
			b := marks.bytes()
			copy(v.loads[:], b)
			copy(v.stored[:], b)
		case wideGeneral:
			c.R[a.reg] = marks[0]
		case wideMask:
			c.Wide.K[a.reg] = marks[0]
		case wideVector:
			if w.control >= 0 && given>>a.reg&1 != 0 {
				return false // one register would have to hold marks and a value
			}
			given |= 1 << a.reg
			c.SetZMM(a.reg, marks)
		}
	}
	v.base, v.isSet = c.Address(s.in), true
	if c.Step() != x86.ExitNone {
		return false
	}
	return s.wideTaken(w, c)
}

// wideTaken takes the result of a move.
func (s *step) wideTaken(w *wide, c *x86.CPU) bool {
	switch a := &w.args[0]; a.kind {
	case wideMask:
		return s.maskResult(w, c.Wide.K[a.reg])
	case wideGeneral:
		s.t.todo.general = append(s.t.todo.general, generalWrite{a.reg, ^uint64(0), c.R[a.reg]})
		return true
	case wideMemory:
		return s.wideResult(w, vectorOf(s.t.moves.stored[:w.Memory]))
	default:
		return s.wideResult(w, c.ZMM(a.reg))
	}
}

// controlOf finds the argument that says what comes where.
func (w *wide) controlOf(mnemonic string) int {
	isTwo := len(w.args) == 3 && w.args[2].kind != wideImmediate
	switch {
	case controlled[mnemonic]:
		return 2
	case strings.HasPrefix(mnemonic, "PERMI2"):
		return 0
	case strings.HasPrefix(mnemonic, "PERMT2"):
		return 1
	case strings.HasPrefix(mnemonic, "PERMIL") && isTwo:
		return 2
	case strings.HasPrefix(mnemonic, "PERM") && isTwo:
		return 1
	}
	return -1
}
