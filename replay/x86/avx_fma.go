package x86

import (
	"math"
	"math/bits"
)

// Fused multiply-add. The opcode's high digit (9, A, B) orders the operands
// (132, 213, 231), the low digit tells the operation.

// fmaSigns says what is negated before adding: the product, the addend.
type fmaSigns struct {
	product, addend bool
}

// fmaKind returns the signs of even and of odd lanes for an opcode.
func fmaKind(opc uint8) (even, odd fmaSigns) {
	switch opc & 15 {
	case 6: // VFMADDSUB: subtract in even lanes
		return fmaSigns{addend: true}, fmaSigns{}
	case 7: // VFMSUBADD
		return fmaSigns{}, fmaSigns{addend: true}
	}
	s := fmaSigns{product: opc&15 >= 0xc, addend: opc>>1&1 != 0}
	return s, s
}

// nan3 gives the result when an operand is a NaN: the first that is one, in
// the order of multiplicand, multiplier, addend.
func (f fpFormat) nan3(a, b, c uint64) (r uint64, fl mxcsr, is bool) {
	if !f.isNaN(a) && !f.isNaN(b) && !f.isNaN(c) {
		return 0, 0, false
	}
	if f.isSNaN(a) || f.isSNaN(b) || f.isSNaN(c) {
		fl = mxIE
	}
	switch {
	case f.isNaN(a):
		r = a
	case f.isNaN(b):
		r = b
	default:
		r = c
	}
	return r | f.quiet(), fl, true
}

// fma returns a*b+c with one rounding, the product and the addend negated as s
// says.
func (f fpFormat) fma(a, b, c uint64, s fmaSigns, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan3(a, b, c); is {
		return r, fl
	}
	a, da := f.daz(a, m)
	b, db := f.daz(b, m)
	c, dc := f.daz(c, m)
	x, y, z, fl := f.unpack(a), f.unpack(b), f.unpack(c), da|db|dc
	neg := x.neg != y.neg != s.product
	z.neg = z.neg != s.addend
	switch {
	case x.inf && y.zero() || y.inf && x.zero():
		return f.indefinite(), mxIE
	case x.inf || y.inf:
		if z.inf && z.neg != neg {
			return f.indefinite(), mxIE
		}
		return f.sign(neg) | f.inf(), fl
	case z.inf:
		return f.sign(z.neg) | f.inf(), fl
	case x.zero() || y.zero():
		if z.zero() {
			return f.sign(neg && z.neg || neg != z.neg && m.rc() == rcDown), fl
		}
		r, fr := f.round(z.neg, z.exp, z.sig, m)
		return r, fl | fr
	}
	p := wideNum{exp: x.exp + y.exp + 1, neg: neg}
	p.hi, p.lo = bits.Mul64(x.sig, y.sig)
	p.normalise()
	if !z.zero() {
		p = addWide(p, wideNum{hi: z.sig, exp: z.exp, neg: z.neg})
	}
	if p.hi == 0 {
		return f.sign(m.rc() == rcDown), fl
	}
	r, fr := f.round(p.neg, p.exp, p.hi|b2u(p.lo != 0), m)
	return r, fl | fr
}

// wideNum is hi:lo * 2^(exp-127), with bit 127 set unless it is zero.
type wideNum struct {
	hi, lo uint64
	exp    int
	neg    bool
}

func (n *wideNum) normalise() {
	if n.hi == 0 {
		n.hi, n.lo, n.exp = n.lo, 0, n.exp-64
	}
	if n.hi == 0 {
		return
	}
	k := bits.LeadingZeros64(n.hi)
	n.hi, n.lo, n.exp = n.hi<<k|n.lo>>(64-k), n.lo<<k, n.exp-k
}

// addWide adds two numbers that are not zero. Their significands have at least
// 22 zeros below, so that a sticky bit there never meets a significant one.
func addWide(x, y wideNum) wideNum {
	if x.exp < y.exp || x.exp == y.exp && (x.hi < y.hi || x.hi == y.hi && x.lo < y.lo) {
		x, y = y, x
	}
	x.lo, x.hi = x.lo>>1|x.hi<<63, x.hi>>1
	x.exp++
	d := x.exp - y.exp
	var lost bool
	if d >= 128 {
		y.hi, y.lo, lost = 0, 0, true
	} else {
		if d >= 64 {
			lost, y.lo, y.hi, d = y.lo != 0, y.hi, 0, d-64
		}
		lost = lost || y.lo<<(64-d) != 0 && d > 0
		y.lo, y.hi = y.lo>>d|y.hi<<(64-d), y.hi>>d
	}
	y.lo |= b2u(lost)
	var c uint64
	if x.neg == y.neg {
		x.lo, c = bits.Add64(x.lo, y.lo, 0)
		x.hi, _ = bits.Add64(x.hi, y.hi, c)
	} else {
		x.lo, c = bits.Sub64(x.lo, y.lo, 0)
		x.hi, _ = bits.Sub64(x.hi, y.hi, c)
	}
	x.normalise()
	return x
}

func fma64(a, b, c uint64, s fmaSigns, m mxcsr) (uint64, mxcsr) {
	if m.fast() && plain64(a) && plain64(b) && plain64(c) {
		x, z := math.Float64frombits(a), math.Float64frombits(c)
		if s.product {
			x = -x
		}
		if s.addend {
			z = -z
		}
		if r := math.Float64bits(math.FMA(x, math.Float64frombits(b), z)); safe64(r) {
			return r, 0
		}
	}
	return fpDouble.fma(a, b, c, s, m)
}

func fma32(a, b, c uint32, s fmaSigns, m mxcsr) (uint32, mxcsr) {
	return narrow(fpSingle.fma(uint64(a), uint64(b), uint64(c), s, m))
}

// fmaOrder puts the operands (1 is the destination, 2 VEX.vvvv, 3 the r/m) in
// the order multiplicand, multiplier, addend.
func fmaOrder[T uint32 | uint64](opc uint8, v1, v2, v3 T) (a, b, c T) {
	switch opc >> 4 {
	case 0x9:
		return v1, v3, v2
	case 0xa:
		return v2, v1, v3
	}
	return v2, v3, v1
}

func vfmaScalar64(c *CPU, in *Inst) Exit {
	z, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	d := &c.V[in.Reg&15]
	s, _ := fmaKind(in.Opc)
	x, y, w := fmaOrder(in.Opc, d[0], c.V[in.VVVV&15][0], z)
	r, fl := fma64(x, y, w, s, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{r, d[1]}, fl)
}

func vfmaScalar32(c *CPU, in *Inst) Exit {
	z, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	d := &c.V[in.Reg&15]
	s, _ := fmaKind(in.Opc)
	x, y, w := fmaOrder(in.Opc, uint32(d[0]), uint32(c.V[in.VVVV&15][0]), z)
	r, fl := fma32(x, y, w, s, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{d[0]&^0xffffffff | uint64(r), d[1]}, fl)
}

func vfmaPacked64(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	d, v, m := &c.V[in.Reg&15], &c.V[in.VVVV&15], mxcsr(c.MXCSR)
	even, odd := fmaKind(in.Opc)
	var r Vec
	var fl mxcsr
	for i := range vexQuads(in) {
		s := even
		if i&1 != 0 {
			s = odd
		}
		x, y, w := fmaOrder(in.Opc, d[i], v[i], b[i])
		q, f := fma64(x, y, w, s, m)
		r[i], fl = q, fl|f
	}
	return c.vexCommit(in, r, fl)
}

func vfmaPacked32(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	d, v, m := &c.V[in.Reg&15], &c.V[in.VVVV&15], mxcsr(c.MXCSR)
	even, odd := fmaKind(in.Opc)
	var r Vec
	var fl mxcsr
	for i := range vexQuads(in) {
		x, y, w := fmaOrder(in.Opc, uint32(d[i]), uint32(v[i]), uint32(b[i]))
		q0, f0 := fma32(x, y, w, even, m)
		x, y, w = fmaOrder(in.Opc, uint32(d[i]>>32), uint32(v[i]>>32), uint32(b[i]>>32))
		q1, f1 := fma32(x, y, w, odd, m)
		r[i], fl = uint64(q0)|uint64(q1)<<32, fl|f0|f1
	}
	return c.vexCommit(in, r, fl)
}
