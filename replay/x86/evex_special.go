package x86

import "math/bits"

// Floating-point operations that only EVEX forms have (SDM vol. 2C).

// fpCase makes an element function of one for each format.
type fpCase = func(f fpFormat, a, b, imm uint64, m mxcsr) (uint64, mxcsr)

//go:noinline
func evPackedOf(f fpFormat, op fpCase) Handler {
	return evPacked(func(a, b, imm uint64, m mxcsr) (uint64, mxcsr) { return op(f, a, b, imm, m) })
}

//go:noinline
func evScalarOf(f fpFormat, op fpCase) Handler {
	return evScalar(func(a, b, imm uint64, m mxcsr) (uint64, mxcsr) { return op(f, a, b, imm, m) })
}

// getExponent is VGETEXP: the exponent as a number.
func getExponent(f fpFormat, _, b, _ uint64, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(b, b); is {
		return r, fl
	}
	b, fl := f.daz(b, m)
	n := f.unpack(b)
	switch {
	case n.inf:
		return f.inf(), 0
	case n.zero():
		return f.sign(true) | f.inf(), fl
	}
	r, _ := f.fromInt(int64(n.exp), m)
	return r, fl
}

// getMantissa is VGETMANT: the significand in an interval that imm[1:0] chooses, with the
// sign that imm[3:2] does.
func getMantissa(f fpFormat, _, b, imm uint64, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(b, b); is {
		return r, fl
	}
	isNegative := b&f.sign(true) != 0
	sign := f.sign(isNegative && imm&4 == 0)
	one := uint64(f.bias) << f.frac
	b, fl := f.daz(b, m)
	n := f.unpack(b)
	switch {
	case n.zero():
		return sign | one, fl
	case isNegative && imm&8 != 0:
		return f.indefinite(), mxIE
	case n.inf:
		return sign | one, 0
	}
	frac := n.sig << 1 >> (64 - f.frac)
	e := uint64(f.bias)
	switch imm & 3 {
	case 1: // [1/2, 2)
		e -= uint64(n.exp & 1)
	case 2: // [1/2, 1)
		e--
	case 3: // [3/4, 3/2)
		e -= frac >> (f.frac - 1) & 1
	}
	return sign | e<<f.frac | frac, fl
}

// scale is VSCALEF: a times two to the power of b rounded down.
func scale(f fpFormat, a, b, _ uint64, m mxcsr) (uint64, mxcsr) {
	var fl mxcsr
	if f.isSNaN(a) || f.isSNaN(b) {
		fl = mxIE
	}
	isInf := func(x uint64) bool { return x&^f.sign(true) == f.inf() }
	negative := func(x uint64) bool { return x&f.sign(true) != 0 }
	switch {
	case f.isNaN(a) && isInf(b) && fl == 0:
		if negative(b) {
			return 0, 0
		}
		return f.inf(), 0
	case f.isNaN(a):
		return a | f.quiet(), fl
	case f.isNaN(b):
		return b | f.quiet(), fl
	}
	a, da := f.daz(a, m)
	b, _ = f.daz(b, m)
	x := f.unpack(a)
	switch fl = da; {
	case isInf(b) && negative(b):
		if x.inf {
			return f.indefinite(), mxIE
		}
		return a & f.sign(true), fl
	case isInf(b):
		if x.zero() {
			return f.indefinite(), mxIE
		}
		return a&f.sign(true) | f.inf(), fl
	case x.inf || x.zero():
		return a, fl
	}
	by := 0
	if y := f.unpack(b); !y.zero() {
		v, _ := fpNum{sig: y.sig, exp: min(y.exp, 20), neg: y.neg}.integer(rcDown)
		if by = int(v); y.neg {
			by = -by
		}
	}
	r, fr := f.round(x.neg, x.exp+by, x.sig, m)
	return r, fl | fr
}

// roundScale is VRNDSCALE: b rounded to imm[7:4] bits of fraction, as imm[3:0] says.
func roundScale(f fpFormat, _, b, imm uint64, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(b, b); is {
		return r, fl
	}
	rc, quiet := roundControl(imm, m)
	b, _ = f.daz(b, m)
	n := f.unpack(b)
	by := int(imm >> 4 & 15)
	if n.inf || n.zero() || n.exp+by >= int(f.frac) {
		return b, 0
	}
	n.exp += by
	v, inexact := n.integer(rc)
	var fl mxcsr
	if inexact {
		fl = mxPE &^ quiet
	}
	if v == 0 {
		return f.sign(n.neg), fl
	}
	s := bits.LeadingZeros64(v)
	r, _ := f.round(n.neg, 63-s-by, v<<s, m|mxFlags<<mxMaskShift)
	return r, fl
}

// evReduce executes h, or amd on AMD's CPUs, whose FTZ does nothing there where underflows are not masked (family 25 model 17;
// family 6 model 85).
func evReduce(h, amd Handler) Handler {
	return func(c *CPU, in *Inst) Exit {
		if c.amd() {
			return amd(c, in)
		}
		return h(c, in)
	}
}

// reduceAMD is reduce on AMD.
func reduceAMD(f fpFormat, a, b, imm uint64, m mxcsr) (uint64, mxcsr) {
	if m&mxUM == 0 {
		m &^= mxFTZ
	}
	return reduce(f, a, b, imm, m)
}

// reduce is VREDUCE: what VRNDSCALE takes away.
func reduce(f fpFormat, _, b, imm uint64, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(b, b); is {
		return r, fl
	}
	rc, quiet := roundControl(imm, m)
	if b&^f.sign(true) == f.inf() {
		return 0, 0
	}
	r, _ := roundScale(f, 0, b, imm|8, m)
	d, _ := f.daz(b, m)
	x, fl := f.add(d, r, true, m&^mxRC|mxcsr(rc)<<mxRCShift|mxFlags<<mxMaskShift)
	return x, fl & (mxIE | mxPE) &^ quiet
}

// rangeOf is VRANGE: the lesser or greater, or that of the magnitudes, with a sign that
// imm[3:2] chooses.
func rangeOf(f fpFormat, a, b, imm uint64, m mxcsr) (uint64, mxcsr) {
	var fl mxcsr
	if f.isSNaN(a) || f.isSNaN(b) {
		fl = mxIE
	}
	switch {
	case f.isSNaN(a):
		return a | f.quiet(), fl
	case f.isSNaN(b):
		return b | f.quiet(), fl
	}
	x, y := a, b
	switch {
	case f.isNaN(a) && f.isNaN(b):
	case f.isNaN(a):
		x = b
		y = b
	case f.isNaN(b):
		y = a
	}
	x, dx := f.daz(x, m)
	y, dy := f.daz(y, m)
	r := x
	if !f.isNaN(a) && !f.isNaN(b) {
		fl |= dx | dy
		r = f.choose(x, y, imm)
	}
	switch imm >> 2 & 3 {
	case 0:
		r = r&^f.sign(true) | a&f.sign(true)
	case 2:
		r &^= f.sign(true)
	case 3:
		r |= f.sign(true)
	}
	return r, fl
}

// choose returns the lesser or greater of two numbers, by value or by magnitude.
func (f fpFormat) choose(x, y, imm uint64) uint64 {
	mx, my := x&^f.sign(true), y&^f.sign(true)
	ox, oy := f.ordered(x), f.ordered(y)
	if imm&2 != 0 && mx != my {
		ox, oy = int64(mx), int64(my)
	}
	if ox == oy && x != y { // zeros: the negative one is less
		ox, oy = -int64(x&f.sign(true)>>(f.frac)), -int64(y&f.sign(true)>>(f.frac))
	}
	if (imm&1 != 0) == (ox > oy) || ox == oy {
		return x
	}
	return y
}

// The classes of VFIXUPIMM, in the order of its table.
const (
	fixQNaN = iota
	fixSNaN
	fixZero
	fixOne
	fixNegInf
	fixInf
	fixNegative
	fixPositive
)

// fixClass returns the class of b.
func (f fpFormat) fixClass(b uint64) int {
	isNegative := b&f.sign(true) != 0
	switch {
	case f.isSNaN(b):
		return fixSNaN
	case f.isNaN(b):
		return fixQNaN
	case b&^f.sign(true) == 0:
		return fixZero
	case b == uint64(f.bias)<<f.frac:
		return fixOne
	case b&^f.sign(true) == f.inf() && isNegative:
		return fixNegInf
	case b&^f.sign(true) == f.inf():
		return fixInf
	case isNegative:
		return fixNegative
	}
	return fixPositive
}

// fix is VFIXUPIMM: a constant, a or d for each class of a; the table is b.
func (f fpFormat) fix(d, a, b, imm uint64, m mxcsr) (uint64, mxcsr) {
	a, _ = f.daz(a, m)
	class := f.fixClass(a)
	negative := a&f.sign(true) != 0
	var fl mxcsr
	for _, s := range []struct {
		class  int
		ze, ie uint
	}{{fixZero, 0, 1}, {fixOne, 2, 3}, {fixSNaN, 8, 4}, {fixNegInf, 8, 5}, {fixNegative, 8, 6}, {fixInf, 8, 7}} {
		if s.class == class {
			fl |= mxZE*mxcsr(imm&0xff>>s.ze&1) | mxIE*mxcsr(imm>>s.ie&1)
		}
	}
	one, half := uint64(f.bias)<<f.frac, uint64(f.bias-1)<<f.frac
	quietNaN := a
	if f.isNaN(a) {
		quietNaN |= f.quiet()
	} else {
		quietNaN = f.inf() | f.quiet() | a
	}
	values := [16]uint64{
		d, a, quietNaN, f.indefinite(), f.sign(true) | f.inf(), f.inf(), f.sign(negative) | f.inf(), f.sign(true),
		0, f.sign(true) | one, one, half, f.ninety(), f.halfPi(), f.inf() - 1, f.sign(true) | (f.inf() - 1),
	}
	return values[b>>(4*class)&15], fl
}

// ninety and halfPi are constants of VFIXUPIMM.
func (f fpFormat) ninety() uint64 {
	if f.frac == 23 {
		return 0x42b40000
	}
	return 0x4056800000000000
}

func (f fpFormat) halfPi() uint64 {
	if f.frac == 23 {
		return 0x3fc90fdb
	}
	return 0x3ff921fb54442d18
}

// evFix is VFIXUPIMM of packed elements, evFixScalar of the lowest.
//
//go:noinline
func evFix(f fpFormat) Handler {
	return func(c *CPU, in *Inst) Exit {
		return c.packed(in, func(d, a, b uint64, _ int, m mxcsr) (uint64, mxcsr) { return f.fix(d, a, b, in.Imm, m) })
	}
}

//go:noinline
func evFixScalar(f fpFormat) Handler {
	return func(c *CPU, in *Inst) Exit {
		d := c.ZMM(in.Reg)
		return evScalar(func(a, b, imm uint64, m mxcsr) (uint64, mxcsr) {
			return f.fix(element(&d, uint(f.frac&0x20+0x20), 0), a, b, imm, m)
		})(c, in)
	}
}

// classOfFloat is VFPCLASS: whether b is in one of the classes of imm.
func (f fpFormat) isOfClass(b, imm uint64, m mxcsr) bool {
	b, de := f.daz(b, m)
	isNegative := b&f.sign(true) != 0
	magnitude := b &^ f.sign(true)
	isNaN := f.isNaN(b)
	for i, is := range [8]bool{
		isNaN && !f.isSNaN(b), b == 0, b == f.sign(true), b == f.inf(), b == f.sign(true)|f.inf(),
		de != 0, isNegative && magnitude != 0 && magnitude < f.inf(), f.isSNaN(b),
	} {
		if is && imm>>i&1 != 0 {
			return true
		}
	}
	return false
}

// evClass is VFPCLASS of packed elements, or of the lowest.
//
//go:noinline
func evClass(f fpFormat, scalar bool) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		o.form = &tablesVar.rows[in.Row].evex
		if scalar {
			var e Exit
			o.n, o.mask = 1, c.maskOf(in, 1)
			if o.b, e = c.evexSource(in, o.form, 1, o.mask); e != ExitNone {
				return e
			}
		} else if e := c.open(in, &o); e != ExitNone {
			return e
		}
		var r uint64
		for i := range o.n {
			r |= b2u(f.isOfClass(element(&o.b, uint(o.form.elem)*8, i), in.Imm, mxcsr(c.MXCSR))) << i
		}
		return c.putMask(in, r, o.mask)
	}
}

// evDotBfloat is VDPBF16PS: products of two pairs of bfloat16, added one after the other.
func evDotBfloat(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	d := c.ZMM(in.Reg)
	for i := range o.n {
		a, b := element(&o.a, 32, i), element(&o.b, 32, i)
		t, _ := fma32(uint32(a&0xffff0000), uint32(b&0xffff0000), uint32(element(&d, 32, i)), fmaSigns{}, bfloatControl)
		t, _ = fma32(uint32(a<<16), uint32(b<<16), t, fmaSigns{}, bfloatControl)
		setElement(&o.r, 32, i, uint64(t))
	}
	return c.close(in, &o)
}
