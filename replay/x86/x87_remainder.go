package x86

import "math/bits"

// Comparison, partial remainder, scaling and extraction.

// Results of compare, as the bits C3, C2 and C0 of the status word.
const (
	cmpGreater   = 0
	cmpLess      = fpuC0
	cmpEqual     = fpuC3
	cmpUnordered = fpuC3 | fpuC2 | fpuC0
)

// compare compares a with b. quiet (FUCOM): a quiet NaN is unordered without IE.
func (c *fctx) compare(a, b F80, quiet bool) uint16 {
	switch {
	case a.isUnsupported() || b.isUnsupported() || a.isSNaN() || b.isSNaN():
		c.ex |= fpuIE
		return cmpUnordered
	case a.isNaN() || b.isNaN():
		if !quiet {
			c.ex |= fpuIE
		}
		return cmpUnordered
	}
	c.denormal(a.isDenormal() || b.isDenormal())
	if a.isZero() && b.isZero() {
		return cmpEqual
	}
	if a.sign() != b.sign() {
		if a.sign() != 0 {
			return cmpLess
		}
		return cmpGreater
	}
	r := compareMag(a, b)
	if a.sign() != 0 && r != cmpEqual {
		r ^= cmpLess ^ cmpGreater
	}
	return r
}

// compareMag compares the magnitudes of numbers that are not NaNs.
func compareMag(a, b F80) uint16 {
	ea, eb := max(a.exp(), 1), max(b.exp(), 1) // a pseudo-denormal equals its normal twin
	switch {
	case ea < eb || ea == eb && a.M < b.M:
		return cmpLess
	case ea > eb || a.M > b.M:
		return cmpGreater
	}
	return cmpEqual
}

// remainder does FPREM (nearest false: the quotient is chopped) and FPREM1
// (nearest true). cc holds C0, C3 and C1 for the low bits of the quotient, or
// C2 when the reduction is not complete; isNumber is false for a NaN or an
// unmasked exception.
func (c *fctx) remainder(a, b F80, nearest bool) (r F80, cc uint16, isNumber bool) {
	if r, ok := c.special(a, b); ok {
		return r, 0, false
	}
	if a.isInf() || b.isZero() {
		return c.invalid(), 0, false
	}
	if c.denormal(a.isDenormal() || b.isDenormal()) {
		return F80{}, 0, false
	}
	switch {
	case b.isInf() && c.keeps(a):
		return a, 0, true
	case a.isZero() || b.isInf():
		return c.exact(a), 0, true
	}
	ea, ma := a.norm()
	eb, mb := b.norm()
	switch d := ea - eb; {
	case d < -1 || d < 0 && !nearest:
		return c.exact(a), 0, true
	case d >= 64:
		n := d&31 | 32 // how far one step reduces: between 32 and 63 places
		_, m := divSteps(ma, mb, n)
		return c.packExact(a.sign(), ea-n, m), fpuC2, true
	}
	r, cc = c.remainderLast(a.sign(), ea, ma, eb, mb, nearest)
	return r, cc, true
}

// remainderLast finishes a reduction: ea-eb is between -1 and 63.
func (c *fctx) remainderLast(sign uint16, ea int32, ma uint64, eb int32, mb uint64, nearest bool) (F80, uint16) {
	if ea < eb { // a is below b; b is 2*mb in units of a's last place
		if ma <= mb {
			return c.packExact(sign, ea, ma), 0
		}
		return c.packExact(sign^0x8000, ea, mb<<1-ma), quotientBits(1)
	}
	q, rem := divSteps(ma, mb, ea-eb)
	if nearest { // round the quotient to nearest even: compare 2*rem with b
		twice, over := bits.Add64(rem, rem, 0)
		if over != 0 || twice > mb || twice == mb && q&1 != 0 {
			q++
			rem = mb - rem
			sign ^= 0x8000
		}
	}
	return c.packExact(sign, eb, rem), quotientBits(q)
}

// divSteps divides ma*2^n by mb, n between 0 and 63, both with the top bit
// set; the quotient modulo 2^64 and the remainder.
func divSteps(ma, mb uint64, n int32) (q, rem uint64) {
	if ma >= mb {
		q, ma = 1<<n, ma-mb
	}
	if n == 0 {
		return q, ma
	}
	lo, rem := bits.Div64(ma>>(64-n), ma<<n, mb)
	return q + lo, rem
}

func quotientBits(q uint64) uint16 {
	return uint16(q>>2&1)*fpuC0 | uint16(q>>1&1)*fpuC3 | uint16(q&1)*fpuC1
}

// keeps says whether a is a denormal that Intel's FSCALE by 0 and FPREM by infinity
// return without #U, although it is tiny. A pseudo-denormal becomes normal.
func (c *fctx) keeps(a F80) bool { return c.intel && a.isDenormal() && a.M>>63 == 0 }

// exact is a as a result: a pseudo-denormal becomes normal, and a denormal
// raises UE where that is unmasked.
func (c *fctx) exact(a F80) F80 {
	if a.isZero() || a.isInf() {
		return a
	}
	e, m := a.norm()
	return c.packExact(a.sign(), e, m)
}

// packExact is pack at full precision for results that are exact: m need not
// be normalised.
func (c *fctx) packExact(sign uint16, e int32, m uint64) F80 {
	if m == 0 {
		return f80Zero(sign)
	}
	n := bits.LeadingZeros64(m)
	return c.packTo(sign, e-int32(n), m<<n, 0, 64)
}

// scale returns a * 2^trunc(b) (FSCALE).
func (c *fctx) scale(a, b F80) F80 {
	if r, ok := c.special(a, b); ok {
		return r
	}
	if b.isInf() {
		if b.sign() == 0 && a.isZero() || b.sign() != 0 && a.isInf() {
			return c.invalid()
		}
		if c.denormal(a.isDenormal()) {
			return F80{}
		}
		if b.sign() == 0 {
			return f80Inf(a.sign())
		}
		return f80Zero(a.sign())
	}
	if c.denormal(a.isDenormal() || b.isDenormal()) || a.isInf() || a.isZero() {
		return a
	}
	if b.isZero() && c.keeps(a) {
		return a
	}
	e, m := a.norm()
	n, _, _, ok := roundMag(b, x87Chop)
	if !ok || n > 0x10000 {
		n = 0x10000
	}
	if b.sign() != 0 {
		return c.packTo(a.sign(), e-int32(n), m, 0, 64)
	}
	return c.packTo(a.sign(), e+int32(n), m, 0, 64)
}

// extract splits a into exponent and significand (FXTRACT).
func (c *fctx) extract(a F80) (exponent, significand F80) {
	if r, ok := c.special1(a); ok {
		return r, r
	}
	switch {
	case a.isInf():
		return f80Inf(0), a
	case a.isZero():
		c.ex |= fpuZE
		return f80Inf(0x8000), a
	}
	if c.denormal(a.isDenormal()) {
		return
	}
	e, m := a.norm()
	return fromInt(int64(e - f80Bias)), F80{M: m, E: a.sign() | f80Bias}
}
