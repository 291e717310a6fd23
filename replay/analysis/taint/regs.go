package taint

import (
	"math/bits"

	"vplay/replay/analysis/dataflow"
)

// Tag says what marked a value: whoever marks memory chooses it. 0 is none. Where values with
// different tags are joined one of them stays.
type Tag uint32

// vector is the bits, or the value, of an operand of up to 64 bytes.
type vector [8]uint64

// regs is the shadow of a thread's registers.
type regs struct {
	r    [16]uint64
	v    [32]vector
	flag uint64    // bits of RFLAGS
	misc uint64    // bits of dataflow.MiscWord from PartMask on: a part is marked or not
	k    [8]uint64 // mask registers; misc says which have a mark
	x87  x87Marks  // misc says whether anything there has a mark
	sum  uint64    // as dataflow.RegSet.Summary: which registers have a mark

	rTag    [16]Tag
	vTag    [32]Tag
	flagTag Tag
	miscTag Tag
}

// Bits of a summary.
const (
	sumVector = 16
	sumFlags  = 1 << 48
	sumMisc   = 49 // seven: one for each further byte of dataflow.MiscWord
)

// spread makes eight bits for each bit of the lowest byte of b.
func spread(b uint64) (mask uint64) {
	for b &= 0xff; b != 0; b &= b - 1 {
		mask |= 0xff << (8 * bits.TrailingZeros64(b))
	}
	return mask
}

// generalOf returns which bits of a general register are in s.
func generalOf(s *dataflow.RegSet, r int) uint64 { return spread(s[r/8] >> (r % 8 * 8)) }

// lanesOf returns which lanes of a vector register are in s, a bit each.
func lanesOf(s *dataflow.RegSet, v int) uint64 {
	return s[dataflow.VecWord+v/8] >> (v % 8 * 8) & 0xff
}

// flagsOf returns the bits of RFLAGS in s. Those without a part of their own are not marked.
func flagsOf(s *dataflow.RegSet) (f uint64) {
	for i, b := range dataflow.FlagPlaces {
		if s[dataflow.MiscWord]>>(dataflow.PartFlags+i)&1 != 0 {
			f |= b
		}
	}
	return f
}

// miscOf returns the other parts in s.
func miscOf(s *dataflow.RegSet) uint64 { return s[dataflow.MiscWord] &^ 0xff }

// any reports whether something in s has a mark, and by what.
func (g *regs) any(s *dataflow.RegSet) (tag Tag, has bool) {
	sum := s.Summary() & g.sum
	if sum == 0 {
		return 0, false
	}
	for ; sum != 0; sum &= sum - 1 {
		switch n := bits.TrailingZeros64(sum); {
		case n < sumVector:
			if g.r[n]&generalOf(s, n) != 0 {
				return g.rTag[n], true
			}
		case n < 48:
			lanes := lanesOf(s, n-sumVector)
			for i, w := range g.v[n-sumVector] {
				if w != 0 && lanes>>i&1 != 0 {
					return g.vTag[n-sumVector], true
				}
			}
		case n == 48:
			if g.flag&flagsOf(s) != 0 {
				return g.flagTag, true
			}
		default:
			if g.misc&miscOf(s) != 0 {
				return g.miscTag, true
			}
		}
	}
	return 0, false
}

func (g *regs) setGeneral(r uint8, mask, marks uint64, tag Tag) {
	g.r[r] = g.r[r]&^mask | marks&mask
	if marks != 0 {
		g.rTag[r] = tag
	}
	g.note(1<<r, g.r[r] != 0)
}

func (g *regs) setVector(v uint8, mask, marks *vector, tag Tag) {
	any := uint64(0)
	for i := range mask {
		g.v[v][i] = g.v[v][i]&^mask[i] | marks[i]&mask[i]
		any |= g.v[v][i]
		if marks[i] != 0 {
			g.vTag[v] = tag
		}
	}
	g.note(1<<(sumVector+v), any != 0)
}

func (g *regs) setFlags(mask, marks uint64, tag Tag) {
	g.flag = g.flag&^mask | marks&mask
	if marks != 0 {
		g.flagTag = tag
	}
	g.note(sumFlags, g.flag != 0)
}

// setMisc marks whole parts of dataflow.MiscWord, or takes their marks away.
func (g *regs) setMisc(mask, marks uint64, tag Tag) {
	for i := range g.k {
		if bit := uint64(1) << (dataflow.PartMask + i); mask&bit != 0 {
			g.k[i] = -(marks & bit >> (dataflow.PartMask + i))
		}
	}
	if mask&(1<<dataflow.PartX87) != 0 {
		g.x87 = x87Marks{}
		if marks&(1<<dataflow.PartX87) != 0 {
			g.x87.all(tag)
		}
	}
	g.noteMisc(mask, marks, tag)
}

// noteMisc notes which parts have a mark.
func (g *regs) noteMisc(mask, marks uint64, tag Tag) {
	g.misc = g.misc&^mask | marks&mask
	if marks != 0 {
		g.miscTag = tag
	}
	for at := sumMisc; at < 56; at++ {
		g.note(1<<at, g.misc>>(8*(at-48))&0xff != 0)
	}
}

// setMask marks bits of a mask register.
func (g *regs) setMask(r uint8, marks uint64, tag Tag) {
	g.k[r] = marks
	bit := uint64(1) << (dataflow.PartMask + r)
	if marks != 0 {
		g.noteMisc(bit, bit, tag)
	} else {
		g.noteMisc(bit, 0, tag)
	}
}

// setX87 sets the marks of the x87 unit.
func (g *regs) setX87(x *x87Marks) {
	g.x87 = *x
	const bit = 1 << dataflow.PartX87
	if tag, has := x.any(); has {
		g.noteMisc(bit, bit, tag)
	} else {
		g.noteMisc(bit, 0, 0)
	}
}

func (g *regs) note(bit uint64, has bool) {
	if has {
		g.sum |= bit
	} else {
		g.sum &^= bit
	}
}

// clearSet takes the marks of all registers in s away.
func (g *regs) clearSet(s *dataflow.RegSet) {
	for sum := s.Summary() & g.sum; sum != 0; sum &= sum - 1 {
		switch n := bits.TrailingZeros64(sum); {
		case n < sumVector:
			g.setGeneral(uint8(n), generalOf(s, n), 0, 0)
		case n < 48:
			g.setVector(uint8(n-sumVector), laneMask(lanesOf(s, n-sumVector)), &vector{}, 0)
		case n == 48:
			g.setFlags(flagsOf(s), 0, 0)
		default:
			g.setMisc(miscOf(s), 0, 0)
		}
	}
}

// laneMask has all bits of the lanes of eight bytes that are given as bits.
func laneMask(lanes uint64) *vector {
	var m vector
	for i := range m {
		if lanes>>i&1 != 0 {
			m[i] = ^uint64(0)
		}
	}
	return &m
}
