package x86

import (
	"math"
	"math/bits"
)

// IEEE 754 arithmetic of the SSE and AVX instructions, as pure functions of
// the operands' bits and of MXCSR. They return the result and the exception
// flags it raises, in MXCSR's bit positions.
//
// There are two paths. The fast one is the host's own operation, taken when it
// cannot raise anything new: rounding to nearest, precision exception masked
// and already sticky, operands zero or normal, result normal. The slow one
// computes with integers, so that NaNs, denormals, rounding modes and flags are
// the same on every host. Products are converted explicitly, since a Go
// compiler may otherwise fuse them into a following sum.
//
// Sources: SDM vol. 1, 4.8.3 (NaNs), 4.9 (exceptions), 10.2.3 (MXCSR), 11.5
// (SIMD exceptions), appendix E. What these leave open is as measured on an
// AMD family 19h processor, and named where it is used.

// mxcsr is the SSE control and status word.
type mxcsr uint32

// Bits of MXCSR.
const (
	mxIE  mxcsr = 1 << 0  // invalid operation
	mxDE  mxcsr = 1 << 1  // denormal operand
	mxZE  mxcsr = 1 << 2  // division by zero
	mxOE  mxcsr = 1 << 3  // overflow
	mxUE  mxcsr = 1 << 4  // underflow
	mxPE  mxcsr = 1 << 5  // inexact
	mxDAZ mxcsr = 1 << 6  // denormal operands are zeros
	mxOM  mxcsr = 1 << 10 // overflow masked
	mxUM  mxcsr = 1 << 11 // underflow masked
	mxPM  mxcsr = 1 << 12 // inexact masked
	mxRC  mxcsr = 3 << 13 // rounding control
	mxFTZ mxcsr = 1 << 15 // tiny results become zeros
	mxMM  mxcsr = 1 << 17 // AMD: misaligned operands allowed

	mxFlags     = mxIE | mxDE | mxZE | mxOE | mxUE | mxPE
	mxPre       = mxIE | mxDE | mxZE // raised by the operands alone
	mxMaskShift = 7                  // from a flag to its mask bit
	mxRCShift   = 13
)

// The rounding modes of MXCSR.RC and of the immediates.
const (
	rcNearest = 0
	rcDown    = 1
	rcUp      = 2
	rcZero    = 3
)

// rc returns the rounding mode.
func (m mxcsr) rc() uint8 { return uint8(m>>mxRCShift) & 3 }

// fast says that an inexact result rounded to nearest raises nothing new.
func (m mxcsr) fast() bool { return m&(mxRC|mxPM|mxPE) == mxPM|mxPE }

// fpFormat is a binary floating-point format held in the low bits of a uint64.
type fpFormat struct {
	frac uint8 // fraction bits
	bias int16
}

// The formats of the scalar and packed instructions.
var (
	fpSingle = fpFormat{frac: 23, bias: 127}
	fpDouble = fpFormat{frac: 52, bias: 1023}
)

func (f fpFormat) expMask() uint64 { return uint64(f.bias)*2 + 1 }
func (f fpFormat) inf() uint64     { return f.expMask() << f.frac }
func (f fpFormat) quiet() uint64   { return 1 << (f.frac - 1) }
func (f fpFormat) sign(neg bool) uint64 {
	if neg {
		return (f.expMask() + 1) << f.frac
	}
	return 0
}

// indefinite is the NaN that a masked invalid operation gives.
func (f fpFormat) indefinite() uint64 { return f.sign(true) | f.inf() | f.quiet() }

func (f fpFormat) isNaN(x uint64) bool  { return x&^f.sign(true) > f.inf() }
func (f fpFormat) isSNaN(x uint64) bool { return f.isNaN(x) && x&f.quiet() == 0 }

// daz returns x, or the zero of its sign if it is denormal and m says so; de is
// DE if it is a denormal that counts.
func (f fpFormat) daz(x uint64, m mxcsr) (y uint64, de mxcsr) {
	if x&f.inf() != 0 || x&^f.sign(true) == 0 {
		return x, 0
	}
	if m&mxDAZ != 0 {
		return x & f.sign(true), 0
	}
	return x, mxDE
}

// nan2 gives the result of a two-operand operation with a NaN among its
// operands: the first source if it is a NaN, else the second, made quiet.
func (f fpFormat) nan2(a, b uint64) (r uint64, fl mxcsr, is bool) {
	if !f.isNaN(a) && !f.isNaN(b) {
		return 0, 0, false
	}
	if f.isSNaN(a) || f.isSNaN(b) {
		fl = mxIE
	}
	if !f.isNaN(a) {
		a = b
	}
	return a | f.quiet(), fl, true
}

// fpNum is a finite number: sig * 2^(exp-63), with bit 63 of sig set unless
// the number is zero.
type fpNum struct {
	sig uint64
	exp int
	neg bool
	inf bool
}

// unpack takes a number that is no NaN apart.
func (f fpFormat) unpack(x uint64) fpNum {
	n := fpNum{neg: x&f.sign(true) != 0}
	e := x >> f.frac & f.expMask()
	n.sig = x & (1<<f.frac - 1)
	switch {
	case e == f.expMask():
		n.inf = true
	case e != 0:
		n.sig = n.sig<<(63-f.frac) | 1<<63
		n.exp = int(e) - int(f.bias)
	case n.sig != 0:
		s := bits.LeadingZeros64(n.sig)
		n.sig <<= s
		n.exp = 1 - int(f.bias) + 63 - int(f.frac) - s
	}
	return n
}

func (n fpNum) zero() bool { return n.sig == 0 && !n.inf }

// shiftJam shifts right and keeps whether anything was lost in bit 0.
func shiftJam(v uint64, n int) uint64 {
	if n >= 64 {
		return b2u(v != 0)
	}
	return v>>n | b2u(v<<(64-n) != 0 && n > 0)
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// roundAt rounds sig to a multiple of 1<<shift in units of it.
func roundAt(sig uint64, shift uint8, neg bool, rc uint8) (q uint64, inexact bool) {
	rem := sig & (1<<shift - 1)
	q = sig >> shift
	if rem == 0 {
		return q, false
	}
	switch rc {
	case rcNearest:
		half := uint64(1) << (shift - 1)
		q += b2u(rem > half || rem == half && q&1 != 0)
	case rcDown:
		q += b2u(neg)
	case rcUp:
		q += b2u(!neg)
	}
	return q, true
}

// round makes a number of the format from sig * 2^(exp-63), whose bit 63 is
// set and whose bit 0 stands for all bits below it too. Tininess is detected
// after rounding. An unmasked overflow or underflow gives flags and no result.
func (f fpFormat) round(neg bool, exp int, sig uint64, m mxcsr) (uint64, mxcsr) {
	shift, rc := 63-f.frac, m.rc()
	emin := 1 - int(f.bias)
	q, inexact := roundAt(sig, shift, neg, rc)
	carry := int(q >> (f.frac + 1))
	var fl mxcsr
	if inexact {
		fl = mxPE
	}
	switch {
	case exp+carry > int(f.bias):
		if m&mxOM == 0 {
			return 0, fl | mxOE
		}
		return f.overflow(neg, rc), mxOE | mxPE
	case exp+carry >= emin && exp >= emin:
		return f.sign(neg) | (q + uint64(exp-emin)<<f.frac), fl
	case exp+carry >= emin: // rounded up to the smallest normal number
		return f.sign(neg) | 1<<f.frac, fl
	case m&mxUM == 0:
		return 0, fl | mxUE
	case m&mxFTZ != 0:
		return f.sign(neg), mxUE | mxPE
	}
	q, inexact = roundAt(shiftJam(sig, emin-exp), shift, neg, rc)
	if inexact {
		return f.sign(neg) | q, mxUE | mxPE
	}
	return f.sign(neg) | q, 0
}

// overflow returns infinity or the largest finite number.
func (f fpFormat) overflow(neg bool, rc uint8) uint64 {
	if rc == rcZero || rc == rcDown && !neg || rc == rcUp && neg {
		return f.sign(neg) | (f.inf() - 1)
	}
	return f.sign(neg) | f.inf()
}

// add returns a+b, or a-b if minus.
func (f fpFormat) add(a, b uint64, minus bool, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(a, b); is {
		return r, fl
	}
	a, da := f.daz(a, m)
	b, db := f.daz(b, m)
	x, y, fl := f.unpack(a), f.unpack(b), da|db
	y.neg = y.neg != minus
	switch {
	case x.inf && y.inf && x.neg != y.neg:
		return f.indefinite(), mxIE
	case x.inf:
		return a, fl
	case y.inf:
		return f.sign(y.neg) | f.inf(), fl
	case x.zero() && y.zero():
		return f.sign(x.neg && y.neg || x.neg != y.neg && m.rc() == rcDown), fl
	}
	z, cancelled := addNum(x, y)
	if cancelled {
		return f.sign(m.rc() == rcDown), fl
	}
	r, fr := f.round(z.neg, z.exp, z.sig, m)
	return r, fl | fr
}

// addNum adds two finite numbers, not both zero; zero says that they cancel.
func addNum(x, y fpNum) (z fpNum, zero bool) {
	if x.sig == 0 {
		return y, false
	}
	if y.sig == 0 {
		return x, false
	}
	if x.exp < y.exp || x.exp == y.exp && x.sig < y.sig {
		x, y = y, x
	}
	xs, ys := x.sig>>1, shiftJam(y.sig>>1, x.exp-y.exp)
	s := xs + ys
	if x.neg != y.neg {
		s = xs - ys
	}
	if s == 0 {
		return fpNum{}, true
	}
	n := bits.LeadingZeros64(s)
	return fpNum{sig: s << n, exp: x.exp + 1 - n, neg: x.neg}, false
}

func (f fpFormat) mul(a, b uint64, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(a, b); is {
		return r, fl
	}
	a, da := f.daz(a, m)
	b, db := f.daz(b, m)
	x, y, fl := f.unpack(a), f.unpack(b), da|db
	neg := x.neg != y.neg
	switch {
	case x.inf && y.zero() || y.inf && x.zero():
		return f.indefinite(), mxIE
	case x.inf || y.inf:
		return f.sign(neg) | f.inf(), fl
	case x.zero() || y.zero():
		return f.sign(neg), fl
	}
	hi, lo := bits.Mul64(x.sig, y.sig)
	exp := x.exp + y.exp + 1
	if hi>>63 == 0 {
		hi, lo, exp = hi<<1|lo>>63, lo<<1, exp-1
	}
	r, fr := f.round(neg, exp, hi|b2u(lo != 0), m)
	return r, fl | fr
}

func (f fpFormat) div(a, b uint64, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(a, b); is {
		return r, fl
	}
	a, da := f.daz(a, m)
	b, db := f.daz(b, m)
	x, y, fl := f.unpack(a), f.unpack(b), da|db
	neg := x.neg != y.neg
	switch {
	case x.inf && y.inf || x.zero() && y.zero():
		return f.indefinite(), mxIE
	case x.inf:
		return f.sign(neg) | f.inf(), fl
	case y.inf || x.zero():
		return f.sign(neg), fl
	case y.zero():
		return f.sign(neg) | f.inf(), mxZE
	}
	exp := x.exp - y.exp
	hi, lo := x.sig>>1, x.sig<<63
	if x.sig < y.sig {
		hi, lo, exp = x.sig, 0, exp-1
	}
	q, rem := bits.Div64(hi, lo, y.sig)
	r, fr := f.round(neg, exp, q|b2u(rem != 0), m)
	return r, fl | fr
}

func (f fpFormat) sqrt(a uint64, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(a, a); is {
		return r, fl
	}
	a, fl := f.daz(a, m)
	x := f.unpack(a)
	switch {
	case x.zero():
		return a, fl
	case x.neg:
		return f.indefinite(), mxIE
	case x.inf:
		return a, fl
	}
	r, fr := f.round(false, x.exp>>1, sqrtSig(x.sig, x.exp&1 != 0), m)
	return r, fl | fr
}

// sqrtSig returns the root of sig * 2^-63, twice that if odd, scaled by 2^63,
// exact to 56 bits with bit 0 set if it is not exact.
func sqrtSig(sig uint64, odd bool) uint64 {
	nh, nl := sig>>1, sig<<63
	if odd {
		nh, nl = sig, 0
	}
	var r, ph, pl uint64
	for bit := uint64(1) << 63; bit > 1<<7; bit >>= 1 {
		h, l := bits.Mul64(r|bit, r|bit)
		if h < nh || h == nh && l <= nl {
			r, ph, pl = r|bit, h, l
		}
	}
	return r | b2u(ph != nh || pl != nl)
}

// fpRel is the relation between two numbers.
type fpRel uint8

// The four relations.
const (
	relLess fpRel = iota
	relEqual
	relGreater
	relUnordered
)

// compare relates a to b. Quiet NaNs raise IE only if signal.
func (f fpFormat) compare(a, b uint64, signal bool, m mxcsr) (fpRel, mxcsr) {
	if f.isNaN(a) || f.isNaN(b) {
		if signal || f.isSNaN(a) || f.isSNaN(b) {
			return relUnordered, mxIE
		}
		return relUnordered, 0
	}
	a, da := f.daz(a, m)
	b, db := f.daz(b, m)
	return relate(f.ordered(a), f.ordered(b)), da | db
}

func relate(x, y int64) fpRel {
	switch {
	case x < y:
		return relLess
	case x > y:
		return relGreater
	}
	return relEqual
}

// ordered maps numbers to integers of the same order; both zeros give 0.
func (f fpFormat) ordered(x uint64) int64 {
	v := int64(x &^ f.sign(true))
	if x&f.sign(true) != 0 {
		return -v
	}
	return v
}

// minMax returns the lesser (greater if most) operand, and b if they are equal
// or one is a NaN; b too becomes zero if it is a denormal and DAZ is set.
func (f fpFormat) minMax(a, b uint64, most bool, m mxcsr) (uint64, mxcsr) {
	rel, fl := f.compare(a, b, true, m)
	a, _ = f.daz(a, m)
	b, _ = f.daz(b, m)
	if most && rel == relGreater || !most && rel == relLess {
		return a, fl
	}
	return b, fl
}

// toInt converts to a signed integer of the given width with rounding rc. What
// does not fit gives the most negative integer and IE.
func (f fpFormat) toInt(x uint64, width uint8, rc uint8, m mxcsr) (uint64, mxcsr) {
	indefinite := uint64(1) << (width - 1)
	v, neg, fl := f.whole(x, rc, m)
	if fl == mxIE || v > indefinite || v == indefinite && !neg {
		return indefinite, mxIE
	}
	if neg {
		v = -v
	}
	return v & (indefinite<<1 - 1), fl
}

// whole rounds to an integer of at most 64 bits and a sign. It returns IE for what is none
// or does not fit, else PE where it is not x.
func (f fpFormat) whole(x uint64, rc uint8, m mxcsr) (v uint64, neg bool, fl mxcsr) {
	if f.isNaN(x) {
		return 0, false, mxIE
	}
	x, _ = f.daz(x, m)
	n := f.unpack(x)
	if n.inf || n.exp > 63 {
		return 0, false, mxIE
	}
	if n.zero() {
		return 0, false, 0
	}
	v, inexact := n.integer(rc)
	if inexact {
		fl = mxPE
	}
	return v, n.neg, fl
}

// integer rounds the magnitude to an integer; exp must be at most 63.
func (n fpNum) integer(rc uint8) (v uint64, inexact bool) {
	if n.exp == 63 {
		return n.sig, false
	}
	s := 63 - n.exp // 1 or more
	sig := n.sig
	if s > 62 {
		sig, s = shiftJam(sig, s-62), 62
	}
	return roundAt(sig, uint8(s), n.neg, rc)
}

// fromInt converts a signed integer.
func (f fpFormat) fromInt(v int64, m mxcsr) (uint64, mxcsr) {
	if v == 0 {
		return 0, 0
	}
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	n := bits.LeadingZeros64(u)
	return f.round(v < 0, 63-n, u<<n, m)
}

// roundInt rounds to an integral number of the same format (ROUNDSS and the
// like).
func (f fpFormat) roundInt(x uint64, rc uint8, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(x, x); is {
		return r, fl
	}
	x, _ = f.daz(x, m)
	n := f.unpack(x)
	if n.inf || n.zero() || n.exp >= int(f.frac) {
		return x, 0
	}
	v, inexact := n.integer(rc)
	var fl mxcsr
	if inexact {
		fl = mxPE
	}
	if v == 0 {
		return f.sign(n.neg), fl
	}
	s := bits.LeadingZeros64(v)
	r, _ := f.round(n.neg, 63-s, v<<s, m)
	return r, fl
}

// convert changes the format.
func (f fpFormat) convert(x uint64, to fpFormat, m mxcsr) (uint64, mxcsr) {
	if r, fl, is := f.nan2(x, x); is {
		frac := r & (1<<f.frac - 1) << (63 - f.frac) >> (63 - to.frac)
		return to.sign(r&f.sign(true) != 0) | to.inf() | frac, fl
	}
	x, fl := f.daz(x, m)
	n := f.unpack(x)
	switch {
	case n.inf:
		return to.sign(n.neg) | to.inf(), 0
	case n.zero():
		return to.sign(n.neg), 0
	}
	r, fr := to.round(n.neg, n.exp, n.sig, m)
	return r, fl | fr
}

// plain64 says that x is zero or normal, so that the host may compute with it.
func plain64(x uint64) bool { return x>>52&0x7ff-1 < 0x7fe || x<<1 == 0 }
func plain32(x uint32) bool { return x>>23&0xff-1 < 0xfe || x<<1 == 0 }

// safe64 says that a product or quotient can neither have overflowed nor have
// been tiny before rounding.
func safe64(r uint64) bool { return r>>52&0x7ff-2 < 0x7fd }
func safe32(r uint32) bool { return r>>23&0xff-2 < 0xfd }

func add64(a, b uint64, m mxcsr) (uint64, mxcsr) {
	if m.fast() && plain64(a) && plain64(b) {
		r := math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
		if plain64(r) {
			return r, 0
		}
	}
	return fpDouble.add(a, b, false, m)
}

func sub64(a, b uint64, m mxcsr) (uint64, mxcsr) {
	if m.fast() && plain64(a) && plain64(b) {
		r := math.Float64bits(math.Float64frombits(a) - math.Float64frombits(b))
		if plain64(r) {
			return r, 0
		}
	}
	return fpDouble.add(a, b, true, m)
}

func mul64(a, b uint64, m mxcsr) (uint64, mxcsr) {
	if m.fast() && plain64(a) && plain64(b) {
		r := math.Float64bits(float64(math.Float64frombits(a) * math.Float64frombits(b)))
		if safe64(r) {
			return r, 0
		}
	}
	return fpDouble.mul(a, b, m)
}

func div64(a, b uint64, m mxcsr) (uint64, mxcsr) {
	if m.fast() && plain64(a) && plain64(b) {
		r := math.Float64bits(math.Float64frombits(a) / math.Float64frombits(b))
		if safe64(r) {
			return r, 0
		}
	}
	return fpDouble.div(a, b, m)
}

func sqrt64(a uint64, m mxcsr) (uint64, mxcsr) {
	if m.fast() && a>>52-1 < 0x7fe { // positive and normal
		return math.Float64bits(math.Sqrt(math.Float64frombits(a))), 0
	}
	return fpDouble.sqrt(a, m)
}

func min64(a, b uint64, m mxcsr) (uint64, mxcsr) { return fpDouble.minMax(a, b, false, m) }
func max64(a, b uint64, m mxcsr) (uint64, mxcsr) { return fpDouble.minMax(a, b, true, m) }

// narrow keeps the low 32 bits of a result.
func narrow(r uint64, fl mxcsr) (uint32, mxcsr) { return uint32(r), fl }

func add32(a, b uint32, m mxcsr) (uint32, mxcsr) {
	if m.fast() && plain32(a) && plain32(b) {
		r := math.Float32bits(math.Float32frombits(a) + math.Float32frombits(b))
		if plain32(r) {
			return r, 0
		}
	}
	return narrow(fpSingle.add(uint64(a), uint64(b), false, m))
}

func sub32(a, b uint32, m mxcsr) (uint32, mxcsr) {
	if m.fast() && plain32(a) && plain32(b) {
		r := math.Float32bits(math.Float32frombits(a) - math.Float32frombits(b))
		if plain32(r) {
			return r, 0
		}
	}
	return narrow(fpSingle.add(uint64(a), uint64(b), true, m))
}

func mul32(a, b uint32, m mxcsr) (uint32, mxcsr) {
	if m.fast() && plain32(a) && plain32(b) {
		r := math.Float32bits(float32(math.Float32frombits(a) * math.Float32frombits(b)))
		if safe32(r) {
			return r, 0
		}
	}
	return narrow(fpSingle.mul(uint64(a), uint64(b), m))
}

func div32(a, b uint32, m mxcsr) (uint32, mxcsr) {
	if m.fast() && plain32(a) && plain32(b) {
		r := math.Float32bits(math.Float32frombits(a) / math.Float32frombits(b))
		if safe32(r) {
			return r, 0
		}
	}
	return narrow(fpSingle.div(uint64(a), uint64(b), m))
}

func sqrt32(a uint32, m mxcsr) (uint32, mxcsr) {
	return narrow(fpSingle.sqrt(uint64(a), m))
}

func min32(a, b uint32, m mxcsr) (uint32, mxcsr) {
	return narrow(fpSingle.minMax(uint64(a), uint64(b), false, m))
}

func max32(a, b uint32, m mxcsr) (uint32, mxcsr) {
	return narrow(fpSingle.minMax(uint64(a), uint64(b), true, m))
}
