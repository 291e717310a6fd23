package x86

import "math/bits"

// Conversions between the 80-bit format and the others: single and double
// precision, integers, packed decimal.

// floatFormat is an IEEE 754 interchange format: bits of exponent and of the
// significand with its hidden bit.
type floatFormat struct{ exp, prec uint }

var (
	float32Format = floatFormat{8, 24}
	float64Format = floatFormat{11, 53}
)

// bias is what the exponent field has for 1.
func (f floatFormat) bias() int32 { return 1<<(f.exp-1) - 1 }

// fromFloat converts the bits of a single or a double, always exactly. It
// raises nothing: a denormal is reported, a signalling NaN left to the
// operation.
func fromFloat(v uint64, f floatFormat) (a F80, denormal bool) {
	sign := uint16(v>>(f.exp+f.prec-1)) & 1 << 15
	e := int32(v>>(f.prec-1)) & (1<<f.exp - 1)
	frac := v & (1<<(f.prec-1) - 1)
	switch {
	case e == 1<<f.exp-1:
		return F80{M: frac<<(64-f.prec) | f80Int, E: sign | f80MaxExp}, false
	case e != 0:
		return F80{M: (frac | 1<<(f.prec-1)) << (64 - f.prec), E: sign | uint16(e-f.bias()+f80Bias)}, false
	case frac == 0:
		return f80Zero(sign), false
	}
	n := bits.LeadingZeros64(frac)
	e = 1 - f.bias() + f80Bias + int32(63-n) - int32(f.prec-1)
	return F80{M: frac << n, E: sign | uint16(e)}, true
}

// toFloat converts to the bits of a single or a double (FST m32, m64). Where
// IE, OE or UE is raised unmasked nothing may be stored: stored tells.
func (c *fctx) toFloat(a F80, f floatFormat) (v uint64, stored bool) {
	sign := uint64(a.sign()>>15) << (f.exp + f.prec - 1)
	infinity := uint64(1<<f.exp-1) << (f.prec - 1)
	if r, ok := c.special1(a); ok {
		s := uint64(r.sign()>>15) << (f.exp + f.prec - 1)
		return s | infinity | r.M<<1>>1>>(64-f.prec), !c.stopped()
	}
	switch {
	case a.isInf():
		return sign | infinity, true
	case a.isZero():
		return sign, true
	}
	e, m := a.norm()
	e += f.bias() - f80Bias
	r, carry, inexact, up := roundBits(m, 0, f.prec, sign != 0, c.rc())
	er := e
	if carry {
		er++
	}
	switch {
	case er >= 1<<f.exp-1:
		c.ex |= fpuOE
		if c.cw&fpuOE == 0 {
			return 0, false
		}
		toInf := overflowsToInf(c.rc(), a.sign())
		c.inexact(true, toInf)
		if toInf {
			return sign | infinity, true
		}
		return sign | infinity - 1, true
	case er <= 0:
		if c.cw&fpuUE == 0 {
			c.ex |= fpuUE
			return 0, false
		}
		hi, lo := shiftRightJam(m, 0, 1-e)
		r, _, inexact, up = roundBits(hi, lo, f.prec, sign != 0, c.rc())
		if inexact {
			c.ex |= fpuUE
		}
		er = int32(r >> 63)
	}
	c.inexact(inexact, up)
	return sign | uint64(er)<<(f.prec-1) | r<<1>>1>>(64-f.prec), true
}

// fromInt converts a signed integer: always exact.
func fromInt(v int64) F80 {
	if v == 0 {
		return F80{}
	}
	var sign uint16
	m := uint64(v)
	if v < 0 {
		sign, m = 0x8000, -m
	}
	n := bits.LeadingZeros64(m)
	return F80{M: m << n, E: sign | uint16(f80Bias+63-n)}
}

// roundMag rounds the magnitude of the finite number a to an integer below
// 2^64; ok is false when it is larger.
func roundMag(a F80, rc uint16) (m uint64, inexact, up, ok bool) {
	if a.isZero() {
		return 0, false, false, true
	}
	e, m := a.norm()
	shift := f80Bias + 63 - e
	if shift < 0 {
		return 0, false, false, false
	}
	hi, lo := shiftRightJam(m, 0, shift)
	r, carry, inexact, up := roundBits(hi, lo, 64, a.sign() != 0, rc)
	return r, inexact, up, !carry
}

// toInt converts to a signed integer of n bits (FIST, FISTP; FISTTP by rc =
// x87Chop). What does not fit raises IE and gives the integer indefinite.
func (c *fctx) toInt(a F80, n uint, rc uint16) uint64 {
	indefinite := uint64(1) << (n - 1)
	if a.isNaN() || a.isInf() || a.isUnsupported() {
		c.ex |= fpuIE
		return indefinite
	}
	m, inexact, up, ok := roundMag(a, rc)
	limit := indefinite - 1
	if a.sign() != 0 {
		limit++
	}
	if !ok || m > limit {
		c.ex |= fpuIE
		return indefinite
	}
	c.inexact(inexact, up)
	if a.sign() != 0 {
		m = -m
	}
	return m
}

// round rounds to an integer in the 80-bit format (FRNDINT).
func (c *fctx) round(a F80) F80 {
	if r, ok := c.special1(a); ok {
		return r
	}
	if c.denormal(a.isDenormal()) || a.isInf() || a.isZero() {
		return a
	}
	if e, m := a.norm(); e >= f80Bias+63 {
		return F80{M: m, E: a.sign() | uint16(e)}
	}
	m, inexact, up, _ := roundMag(a, c.rc()) // below 2^63, so it always fits
	c.inexact(inexact, up)
	r := fromInt(0)
	if m != 0 {
		n := bits.LeadingZeros64(m)
		r = F80{M: m << n, E: uint16(f80Bias + 63 - n)}
	}
	r.E |= a.sign()
	return r
}

// maxBCD is the largest magnitude of a packed decimal, 18 digits.
const maxBCD = 999_999_999_999_999_999

// fromBCD converts a packed decimal of 10 bytes (FBLD). Digits above 9 are
// undefined by the manuals; they count with their value here, as on the CPUs
// compared.
func fromBCD(b *[10]byte) F80 {
	var m uint64
	for i := 8; i >= 0; i-- {
		m = m*100 + uint64(b[i]>>4)*10 + uint64(b[i]&15)
	}
	r := fromInt(int64(m))
	r.E |= uint16(b[9]&0x80) << 8
	return r
}

// indefiniteBCD is the packed decimal indefinite.
var indefiniteBCD = [10]byte{7: 0xc0, 8: 0xff, 9: 0xff}

// toBCD converts to a packed decimal (FBSTP). What does not fit raises IE and
// gives the packed decimal indefinite.
func (c *fctx) toBCD(a F80) (b [10]byte) {
	bad := a.isNaN() || a.isInf() || a.isUnsupported()
	var m uint64
	var inexact, up, ok bool
	if !bad {
		m, inexact, up, ok = roundMag(a, c.rc())
	}
	if bad || !ok || m > maxBCD {
		c.ex |= fpuIE
		return indefiniteBCD
	}
	c.inexact(inexact, up)
	for i := 0; i < 9; i++ {
		d := m % 100
		b[i] = byte(d/10<<4 | d%10)
		m /= 100
	}
	b[9] = byte(a.sign() >> 8)
	return b
}
