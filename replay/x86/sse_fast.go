package x86

import "math"

// Fast paths of packed arithmetic: all lanes of two registers at once, under
// the conditions of the fast paths in sse_fp.go. When one lane does not meet
// them the whole operation is left to the exact path. Sums of zero and normal
// numbers are never tiny and inexact; a product or quotient is zero without
// underflow when an operand is.

// fpKind is an operation that has such a path.
type fpKind uint8

// The operations.
const (
	kindAdd fpKind = iota
	kindSub
	kindMul
	kindDiv
)

// lanes64 computes n quadwords; it reports false, with r unfinished, when the
// exact path is needed. The caller has checked mxcsr.fast.
func lanes64(k fpKind, r, a, b *Vec, n int) bool {
	for i := range n {
		p, q := a[i&3], b[i&3]
		if !plain64(p) || !plain64(q) {
			return false
		}
		x, y := math.Float64frombits(p), math.Float64frombits(q)
		switch k {
		case kindAdd:
			x += y
		case kindSub:
			x -= y
		case kindMul:
			x = float64(x * y)
		default:
			x /= y
		}
		s := math.Float64bits(x)
		if !safe64(s) && (k > kindSub || !plain64(s)) && (s<<1 != 0 || p<<1 != 0 && q<<1 != 0) {
			return false
		}
		r[i&3] = s
	}
	return true
}

// lanes32 does so for the singles of n quadwords.
func lanes32(k fpKind, r, a, b *Vec, n int) bool {
	for i := range n {
		lo, ok0 := lane32(k, uint32(a[i&3]), uint32(b[i&3]))
		hi, ok1 := lane32(k, uint32(a[i&3]>>32), uint32(b[i&3]>>32))
		if !ok0 || !ok1 {
			return false
		}
		r[i&3] = uint64(lo) | uint64(hi)<<32
	}
	return true
}

func lane32(k fpKind, p, q uint32) (uint32, bool) {
	if !plain32(p) || !plain32(q) {
		return 0, false
	}
	x, y := math.Float32frombits(p), math.Float32frombits(q)
	switch k {
	case kindAdd:
		x += y
	case kindSub:
		x -= y
	case kindMul:
		x = float32(x * y)
	default:
		x /= y
	}
	s := math.Float32bits(x)
	return s, safe32(s) || k <= kindSub && plain32(s) || s<<1 == 0 && (p<<1 == 0 || q<<1 == 0)
}

// fast64 and fast32 are packed64 and packed32 with a fast path.
func (c *CPU) fast64(in *Inst, k fpKind, f fpOp64) Exit {
	if !mxcsr(c.MXCSR).fast() {
		return c.packed64(in, f)
	}
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, r := &c.V[in.Reg&15], Vec{}
	if !lanes64(k, &r, v, &Vec{lo, hi}, 2) {
		return c.packed64(in, f)
	}
	v[0], v[1] = r[0], r[1]
	return ExitNone
}

func (c *CPU) fast32(in *Inst, k fpKind, f fpOp32) Exit {
	if !mxcsr(c.MXCSR).fast() {
		return c.packed32(in, f)
	}
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, r := &c.V[in.Reg&15], Vec{}
	if !lanes32(k, &r, v, &Vec{lo, hi}, 2) {
		return c.packed32(in, f)
	}
	v[0], v[1] = r[0], r[1]
	return ExitNone
}

// vexFast64 and vexFast32 are vexPacked64 and vexPacked32 with a fast path.
func (c *CPU) vexFast64(in *Inst, k fpKind, f fpOp64) Exit {
	if !mxcsr(c.MXCSR).fast() {
		return c.vexPacked64(in, f)
	}
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	var r Vec
	if !lanes64(k, &r, &c.V[in.VVVV&15], &b, vexQuads(in)) {
		return c.vexPacked64(in, f)
	}
	c.V[in.Reg&15] = r // the upper half of a 128-bit form is zero
	return ExitNone
}

func (c *CPU) vexFast32(in *Inst, k fpKind, f fpOp32) Exit {
	if !mxcsr(c.MXCSR).fast() {
		return c.vexPacked32(in, f)
	}
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	var r Vec
	if !lanes32(k, &r, &c.V[in.VVVV&15], &b, vexQuads(in)) {
		return c.vexPacked32(in, f)
	}
	c.V[in.Reg&15] = r
	return ExitNone
}
