package taint

import (
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Instructions that move bits: a shuffle moves marks as it moves data. So it is executed once
// more, by a processor of our own that has the marks in the place of the data.

// mover executes single instructions. It is the memory of its processor.
type mover struct {
	cpu    *x86.CPU
	code   []byte
	loads  [64]byte
	stored [64]byte
	base   uint64 // the first address that is accessed
	isSet  bool   // base
}

// part returns what b at an address is of all.
func (v *mover) part(all *[64]byte, a uint64, n int) []byte {
	if !v.isSet {
		v.base, v.isSet = a, true
	}
	off := min(a-v.base, 64)
	return all[off:min(off+uint64(n), 64)]
}

// Translate, Read, Write, Probe, Fetch and CodeID implement x86.Bus: whatever address is
// accessed, it is the one memory operand.
func (v *mover) Translate(uint64, x86.Access) (*[4096]byte, bool) { return nil, false }

func (v *mover) Read(a uint64, b []byte) x86.Fault {
	copy(b, v.part(&v.loads, a, len(b)))
	return x86.Fault{}
}

func (v *mover) Write(a uint64, b []byte) x86.Fault {
	copy(v.part(&v.stored, a, len(b)), b)
	return x86.Fault{}
}

func (v *mover) Probe(uint64, int, x86.Access) x86.Fault   { return x86.Fault{} }
func (v *mover) Fetch(_ uint64, b []byte) (int, x86.Fault) { return copy(b, v.code), x86.Fault{} }
func (v *mover) CodeID(uint64) uint64                      { return 0 }

// moverCode is where it executes.
const moverCode = 0x10_0000

// moveRule is the rule of instructions whose results are bits of their operands.
func moveRule(s *step) bool {
	v := s.mover()
	c := v.cpu
	c.RIP, c.RepIter, v.isSet = moverCode, 0, false
	for _, r := range []uint8{s.in.Base, s.in.Index} {
		if s.in.Flags&x86.InstMem != 0 && r < x86.NoReg {
			c.R[r] = 0
		}
	}
	if !s.give(c) || c.Step() != x86.ExitNone {
		return false
	}
	s.taken(c)
	return true
}

// mover returns the mover, with the instruction as its code.
func (s *step) mover() *mover {
	t := s.t
	if t.moves == nil {
		t.moves = &mover{}
		t.moves.cpu = x86.New(t.moves, s.c.ID)
	}
	v := t.moves
	v.code = v.code[:cap(v.code)]
	if len(v.code) < 15 {
		v.code = make([]byte, 15)
	}
	n, _ := s.c.Bus.Fetch(s.c.RIP, v.code[:s.in.Len])
	v.code = v.code[:n]
	return v
}

// give puts the marks in the place of data. It is false where what controls the move is marked.
func (s *step) give(c *x86.CPU) bool {
	v := s.t.moves
	for i, a := range s.k.args {
		if a.IsImmediate || a.IsOther {
			continue
		}
		marks, value := s.operand(i)
		if controlled[s.k.mnemonic] && i == len(s.k.args)-1 || controlledFirst[s.k.mnemonic] && i == 1 {
			if !marks.isZero() {
				return false
			}
			marks = value
		}
		switch a.Kind {
		case dataflow.InGeneral:
			if s.in.Flags&x86.InstMem != 0 && (a.Reg == s.in.Base || a.Reg == s.in.Index) && a.Reads {
				return false // it is the address as well
			}
			c.R[a.Reg] = marks[0] << (8 * a.Off)
		case dataflow.InVector:
			whole := s.t.cur.v[a.Reg]
			if marks != whole.low(int(a.Size)) {
				whole = marks
			}
			copy(c.V[a.Reg&15][:], whole[:4])
		default:
			copy(v.loads[:], marks.bytes())
			copy(v.stored[:], marks.bytes())
		}
	}
	return true
}

// taken takes the result.
func (s *step) taken(c *x86.CPU) {
	a := &s.k.args[0]
	switch a.Kind {
	case dataflow.InGeneral:
		mask := ^uint64(0)
		if a.Size < 4 {
			mask = (1<<(8*a.Size) - 1) << (8 * a.Off)
		}
		s.t.todo.general = append(s.t.todo.general, generalWrite{a.Reg, mask, c.R[a.Reg] & mask})
	case dataflow.InVector:
		var m vector
		copy(m[:], c.V[a.Reg&15][:])
		mask := *laneMask(0xf)
		if s.k.isVEX {
			mask = *laneMask(0xff)
		}
		s.t.todo.vectors = append(s.t.todo.vectors, vectorWrite{a.Reg, mask, m})
	default:
		m := vectorOf(s.t.moves.stored[:])
		s.store(0, &m)
	}
}
