package x86

import (
	"math"
	"math/bits"
)

// The four operations and the square root. See x87_f80.go for the rules.

// add returns a+b.
func (c *fctx) add(a, b F80) F80 {
	if r, ok := c.special(a, b); ok {
		return r
	}
	if a.isInf() && b.isInf() && a.sign() != b.sign() {
		return c.invalid()
	}
	if c.denormal(a.isDenormal() || b.isDenormal()) {
		return F80{}
	}
	switch {
	case a.isInf():
		return a
	case b.isInf():
		return b
	case a.isZero() && b.isZero():
		if a.sign() == b.sign() {
			return a
		}
		return c.exactZero()
	case a.isZero():
		e, m := b.norm()
		return c.pack(b.sign(), e, m, 0)
	case b.isZero():
		e, m := a.norm()
		return c.pack(a.sign(), e, m, 0)
	}
	ea, ma := a.norm()
	eb, mb := b.norm()
	if a.sign() == b.sign() {
		return c.addMag(a.sign(), ea, ma, eb, mb)
	}
	return c.subMag(a.sign(), ea, ma, eb, mb)
}

// sub returns a-b. A NaN operand keeps its sign.
func (c *fctx) sub(a, b F80) F80 {
	if b.isNaN() || b.isUnsupported() {
		return c.add(a, b)
	}
	return c.add(a, b.negated())
}

// exactZero is the zero of x-x.
func (c *fctx) exactZero() F80 {
	if c.rc() == x87Down {
		return f80Zero(0x8000)
	}
	return f80Zero(0)
}

func (c *fctx) addMag(sign uint16, ea int32, ma uint64, eb int32, mb uint64) F80 {
	if ea < eb {
		ea, ma, eb, mb = eb, mb, ea, ma
	}
	bh, bl := shiftRightJam(mb, 0, ea-eb)
	hi, carry := bits.Add64(ma, bh, 0)
	if carry != 0 {
		hi, bl = shiftRightJam(hi, bl, 1)
		hi |= f80Int
		ea++
	}
	return c.pack(sign, ea, hi, bl)
}

// subMag computes the difference of magnitudes; sign is that of ma.
func (c *fctx) subMag(sign uint16, ea int32, ma uint64, eb int32, mb uint64) F80 {
	if ea < eb || ea == eb && ma < mb {
		ea, ma, eb, mb = eb, mb, ea, ma
		sign ^= 0x8000
	}
	bh, bl := shiftRightJam(mb, 0, ea-eb)
	lo, borrow := bits.Sub64(0, bl, 0)
	hi, _ := bits.Sub64(ma, bh, borrow)
	if hi|lo == 0 {
		return c.exactZero()
	}
	if hi == 0 {
		hi, lo, ea = lo, 0, ea-64
	}
	n := bits.LeadingZeros64(hi)
	if n > 0 {
		hi = hi<<n | lo>>(64-n)
		lo <<= n
	}
	return c.pack(sign, ea-int32(n), hi, lo)
}

// mul returns a*b.
func (c *fctx) mul(a, b F80) F80 {
	if r, ok := c.special(a, b); ok {
		return r
	}
	if a.isInf() && b.isZero() || a.isZero() && b.isInf() {
		return c.invalid()
	}
	if c.denormal(a.isDenormal() || b.isDenormal()) {
		return F80{}
	}
	sign := a.sign() ^ b.sign()
	switch {
	case a.isInf() || b.isInf():
		return f80Inf(sign)
	case a.isZero() || b.isZero():
		return f80Zero(sign)
	}
	ea, ma := a.norm()
	eb, mb := b.norm()
	e := ea + eb - f80Bias + 1
	hi, lo := bits.Mul64(ma, mb)
	if hi>>63 == 0 {
		hi = hi<<1 | lo>>63
		lo <<= 1
		e--
	}
	return c.pack(sign, e, hi, lo)
}

// div returns a/b.
func (c *fctx) div(a, b F80) F80 {
	if r, ok := c.special(a, b); ok {
		return r
	}
	if a.isInf() && b.isInf() || a.isZero() && b.isZero() {
		return c.invalid()
	}
	sign := a.sign() ^ b.sign()
	if b.isZero() && !a.isInf() {
		c.ex |= fpuZE // and no DE where a is a denormal
		return f80Inf(sign)
	}
	if c.denormal(a.isDenormal() || b.isDenormal()) {
		return F80{}
	}
	switch {
	case a.isInf():
		return f80Inf(sign)
	case a.isZero() || b.isInf():
		return f80Zero(sign)
	}
	ea, ma := a.norm()
	eb, mb := b.norm()
	e := ea - eb + f80Bias
	var hi, rem uint64
	if ma >= mb {
		hi, rem = bits.Div64(ma>>1, ma<<63, mb)
	} else {
		hi, rem = bits.Div64(ma, 0, mb)
		e--
	}
	lo, rem := bits.Div64(rem, 0, mb)
	return c.pack(sign, e, hi, lo|nonZero(rem))
}

// sqrt returns the square root of a.
func (c *fctx) sqrt(a F80) F80 {
	if r, ok := c.special1(a); ok {
		return r
	}
	if a.isZero() {
		return a
	}
	if a.sign() != 0 {
		return c.invalid()
	}
	if c.denormal(a.isDenormal()) || a.isInf() {
		return a
	}
	e, m := a.norm()
	e -= f80Bias
	hi, lo := m, uint64(0)
	if e&1 == 0 {
		hi, lo = m>>1, m<<63
	}
	s, frac := sqrt128(hi, lo)
	return c.pack(0, e>>1+f80Bias, s, frac)
}

// sqrt128 returns the integer square root of hi:lo, hi >= 1<<62, and a
// fraction that is 0, below or above one half (1<<63) as the true root is.
func sqrt128(hi, lo uint64) (s, frac uint64) {
	// The estimate is good to 50 bits; one Newton step makes it good to the
	// last bit or so, and the loop below finishes.
	s = ^uint64(0)
	if f := math.Sqrt(float64(hi)) * (1 << 32); f < (1<<64)-8192 {
		s = max(uint64(f), f80Int)
	}
	if hi < s {
		q, _ := bits.Div64(hi, lo, s)
		sum, carry := bits.Add64(s, q, 0)
		s = sum>>1 | carry<<63
	}
	for {
		ph, pl := bits.Mul64(s, s)
		rl, borrow := bits.Sub64(lo, pl, 0)
		rh, borrow := bits.Sub64(hi, ph, borrow)
		switch { // the remainder rh:rl must be within 0 and 2*s, and s has 64 bits
		case borrow != 0:
			s--
		case rh > 1 || rh == 1 && rl > s<<1:
			s++
		case rh|rl == 0:
			return s, 0
		case rh == 0 && rl <= s:
			return s, 1
		default:
			return s, f80Int | 1
		}
	}
}
