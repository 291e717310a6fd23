package x86

import "math/big"

// The transcendental instructions. Each result is the mathematically exact one
// rounded once, by RC, to 64 bits. A CPU's result may differ from that in the
// last bit, and so then may C1; flags, special cases and ranges are the CPU's.
// Intel's take sine, tangent and arctangent of a small number for the number
// itself and its cosine for 1, inexact but not rounded.

// x87Pi is the pi that CPUs reduce arguments by: 66 bits. SDM vol. 1, 8.3.8,
// has it for Intel's; Zen agrees.
var x87Pi = func() *big.Float {
	p := new(big.Float).SetPrec(bigPrecPi).SetUint64(0xc90fdaa22168c234)
	p.SetMantExp(p, 2)
	p.Add(p, big.NewFloat(3)) // the two bits behind: 11
	return p.SetMantExp(p, -64)
}()

// Below 2 to these powers Intel's CPUs do not compute (family 6 model 207,
// 2026-11-21: all exponents and rounding modes).
const (
	intelTinyAngle = -68 // FSIN, FCOS, FSINCOS, FPTAN
	intelTinyRatio = -40 // FPATAN
)

// isTiny says whether the CPU takes a for its own sine and tangent.
func (c *fctx) isTiny(a F80) bool { return c.intel && int(a.exp()) < f80Bias+intelTinyAngle }

// packTiny rounds v, which CPUs take for the result, as one that is inexact
// even where v needs no rounding: all of AMD's do so for logarithms of powers of two.
func (c *fctx) packTiny(v *big.Float) F80 {
	r := c.packBig(v, false)
	c.ex |= fpuPE
	if r.isDenormal() {
		c.ex |= fpuUE
	}
	return r
}

// f2xm1 returns 2^a - 1; outside -1 to 1 the manuals leave it undefined.
func (c *fctx) f2xm1(a F80) F80 {
	if r, ok := c.special1(a); ok {
		return r
	}
	if c.denormal(a.isDenormal()) || a.isZero() {
		return a
	}
	one := F80{M: f80Int, E: f80Bias}
	switch {
	case a.isInf() && a.sign() != 0:
		return one.negated()
	case a.isInf():
		return a
	case a.exp() >= f80Bias && a.absolute() != one: // undefined: a, on Zen
		c.ex |= fpuPE
		return a
	case a == one: // Zen computes a little less than 1
		return c.packBig(bigNudge(bigInt(1), true), true)
	case a == one.negated():
		c.ex |= fpuPE
		return F80{M: f80Int, E: 0x8000 | f80Bias - 1}
	}
	t := a.big()
	return c.packBig(bigExpm1(t.Mul(t, bigLn2())), true)
}

// fyl2x returns y * log2(x).
func (c *fctx) fyl2x(x, y F80) F80 {
	if r, ok := c.special(x, y); ok {
		return r
	}
	one := F80{M: f80Int, E: f80Bias}
	isOne := compareMag(x, one) == cmpEqual && x.sign() == 0
	switch {
	case x.sign() != 0 && !x.isZero(), x.isZero() && y.isZero(), x.isInf() && y.isZero(), isOne && y.isInf():
		return c.invalid()
	case x.isZero() && !y.isInf():
		c.ex |= fpuZE
		return f80Inf(y.sign() ^ 0x8000)
	}
	if c.denormal(x.isDenormal() || y.isDenormal()) {
		return F80{}
	}
	sign := y.sign()
	if x.isZero() || compareMag(x, one) == cmpLess {
		sign ^= 0x8000
	}
	switch {
	case x.isInf() || y.isInf():
		return f80Inf(sign)
	case isOne || y.isZero():
		return f80Zero(sign)
	}
	if e, m := x.norm(); m == f80Int {
		l := bigInt(int64(e - f80Bias))
		if c.intel {
			l = intelPowerLog2(e - f80Bias)
		}
		return c.packTiny(l.Mul(l, y.big()))
	}
	v := x.big()
	l := bigLog2(v, newBig().Sub(v, bigInt(1)))
	return c.packBig(l.Mul(l, y.big()), true)
}

// isPower reports whether v, which is positive, is a power of two.
func isPower(v *big.Float) bool { return v.MinPrec() == 1 }

// intelPowerLog2 is the logarithm that Intel's FYL2X multiplies by for 2^k, k
// not 0: k, but where that is negative with the last of 67 bits too small (the
// ones' complement, it seems). Family 6 model 207, 2026-11-21.
func intelPowerLog2(k int32) *big.Float {
	l := bigInt(int64(k))
	if k < 0 {
		l.Add(l, newBig().SetMantExp(bigInt(1), l.MantExp(nil)-67))
	}
	return l
}

// fyl2xp1 returns y * log2(x+1).
func (c *fctx) fyl2xp1(x, y F80) F80 {
	if r, ok := c.special(x, y); ok {
		return r
	}
	minusOne := F80{M: f80Int, E: 0x8000 | f80Bias}
	switch {
	case x.isInf() && (x.sign() != 0 || y.isZero()), x.isZero() && y.isInf():
		return c.invalid()
	}
	if c.denormal(x.isDenormal() || y.isDenormal()) {
		return F80{}
	}
	sign := x.sign() ^ y.sign()
	switch {
	case x.isInf() || y.isInf():
		return f80Inf(sign)
	case x.isZero() || y.isZero():
		return f80Zero(sign)
	case x.sign() != 0 && compareMag(x, minusOne) != cmpLess:
		c.ex |= fpuPE
		return x
	}
	d := x.big()
	sum := newBig().Add(d, bigInt(1))
	if !c.intel && isPower(sum) {
		l := bigInt(int64(sum.MantExp(nil) - 1))
		return c.packTiny(l.Mul(l, y.big()))
	}
	l := bigLog2(sum, d)
	return c.packBig(l.Mul(l, y.big()), true)
}

// fpatan returns the angle of the point (x, y).
func (c *fctx) fpatan(x, y F80) F80 {
	if r, ok := c.special(x, y); ok {
		return r
	}
	if c.denormal(x.isDenormal() || y.isDenormal()) {
		return F80{}
	}
	// eighths of pi/4 where the angle is one of the axes or diagonals
	eighths := int64(-1)
	switch {
	case x.isInf() && y.isInf():
		eighths = 1
		if x.sign() != 0 {
			eighths = 3
		}
	case y.isZero() || x.isInf():
		eighths = 0
		if x.sign() != 0 {
			eighths = 4
		}
	case x.isZero() || y.isInf():
		eighths = 2
	}
	var r *big.Float
	switch {
	case eighths == 0:
		return f80Zero(y.sign())
	case eighths > 0:
		r = newBig().Mul(bigPi(), bigInt(eighths))
		r.SetMantExp(r, -2)
	default:
		q := newBig().Quo(y.absolute().big(), x.absolute().big())
		if c.intel && x.sign() == 0 && q.MantExp(nil) <= intelTinyRatio {
			if y.sign() != 0 {
				q.Neg(q)
			}
			return c.packTiny(q)
		}
		r = bigAtan(q)
		if x.sign() != 0 {
			r.Sub(bigPi(), r)
		}
	}
	if y.sign() != 0 {
		r.Neg(r)
	}
	return c.packBig(r, true)
}

// sincos returns sine and cosine; a is finite, not zero, and below 2^63.
func sincos(a F80) (sin, cos *big.Float) {
	r, quadrant := bigReduce(a.big(), x87Pi)
	s, k := bigSinCos(r)
	switch quadrant {
	case 1:
		s, k = k, s.Neg(s)
	case 2:
		s, k = s.Neg(s), k.Neg(k)
	case 3:
		s, k = k.Neg(k), s
	}
	return s, k
}

// x87Trig does FSIN, FCOS, FSINCOS and FPTAN: compute replaces st(0), and
// where pushes is set second is pushed. Arguments from 2^63 on set C2 and
// change nothing else.
func (c *CPU) x87Trig(in *Inst, pushes bool, compute func(x *fctx, a F80) (first, second F80)) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	f.SW &^= fpuC2
	if !f.full(0) || pushes && f.full(7) {
		if c.x87StackFault(in, f.full(0)) {
			f.set(0, f80Indefinite)
			if pushes {
				f.push(f80Indefinite)
			}
		}
		return ExitNone
	}
	x := c.x87Ctx()
	a := f.st(0)
	first, ok := x.special1(a)
	second := first
	switch {
	case ok:
	case a.isInf():
		first = x.invalid()
		second = first
	case a.exp() >= f80Bias+63:
		f.SW = f.SW&^fpuC1 | fpuC2
		return ExitNone
	default:
		if !x.denormal(a.isDenormal()) {
			first, second = compute(&x, a)
		}
	}
	if c.x87Raise(in, &x) {
		f.set(0, first)
		if pushes {
			f.push(second)
		}
	}
	return ExitNone
}

// x87Ctx starts an operation that depends on the CPU's maker.
func (c *CPU) x87Ctx() fctx {
	x := c.FPU.ctx()
	x.intel = c.ID.Vendor == VendorIntel
	return x
}

func x87Fsin(c *CPU, in *Inst) Exit {
	return c.x87Trig(in, false, func(x *fctx, a F80) (F80, F80) {
		switch {
		case a.isZero():
			return a, a
		case x.isTiny(a):
			return x.packTiny(a.big()), a
		}
		s, _ := sincos(a)
		return x.packBig(s, true), F80{}
	})
}

func x87Fcos(c *CPU, in *Inst) Exit {
	return c.x87Trig(in, false, func(x *fctx, a F80) (F80, F80) {
		one := F80{M: f80Int, E: f80Bias}
		switch {
		case a.isZero():
			return one, a
		case x.isTiny(a):
			x.ex |= fpuPE
			return one, a
		}
		_, k := sincos(a)
		return x.packBig(k, true), F80{}
	})
}

func x87Fsincos(c *CPU, in *Inst) Exit {
	return c.x87Trig(in, true, func(x *fctx, a F80) (F80, F80) {
		one := F80{M: f80Int, E: f80Bias}
		switch {
		case a.isZero():
			return a, one
		case x.isTiny(a):
			return x.packTiny(a.big()), one
		}
		s, k := sincos(a)
		second := x.packBig(k, true)
		if !x.intel {
			x.ex &^= fpuC1 // it is about the sine
			return x.packBig(s, true), second
		}
		c1 := x.ex & fpuC1 // about the cosine
		first := x.packBig(s, true)
		x.ex = x.ex&^fpuC1 | c1
		return first, second
	})
}

func x87Fptan(c *CPU, in *Inst) Exit {
	return c.x87Trig(in, true, func(x *fctx, a F80) (F80, F80) {
		one := F80{M: f80Int, E: f80Bias}
		switch {
		case a.isZero():
			return a, one
		case x.isTiny(a):
			return x.packTiny(a.big()), one
		}
		if a.exp() < f80Bias-90 { // the tangent is a little more than a
			return x.packBig(bigNudge(a.big(), false), true), one
		}
		s, k := sincos(a)
		return x.packBig(s.Quo(s, k), true), one
	})
}

// x87TwoPop does an operation of st(0) and st(1) that pops: the result
// replaces st(1).
func (c *CPU) x87TwoPop(in *Inst, op func(x *fctx, st0, st1 F80) F80) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	r := f80Indefinite
	var ok bool
	if f.full(0) && f.full(1) {
		x := c.x87Ctx()
		r = op(&x, f.st(0), f.st(1))
		ok = c.x87Raise(in, &x)
	} else {
		ok = c.x87StackFault(in, false)
	}
	if ok {
		f.set(1, r)
		f.pop()
	}
	return ExitNone
}

func x87Fyl2x(c *CPU, in *Inst) Exit   { return c.x87TwoPop(in, (*fctx).fyl2x) }
func x87Fyl2xp1(c *CPU, in *Inst) Exit { return c.x87TwoPop(in, (*fctx).fyl2xp1) }
func x87Fpatan(c *CPU, in *Inst) Exit  { return c.x87TwoPop(in, (*fctx).fpatan) }
