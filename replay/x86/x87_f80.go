package x86

import "math/bits"

// Soft float in the 80-bit format, in integer arithmetic alone: the results
// do not depend on the host. Each operation takes the control word in an
// [fctx] and leaves there the exceptions that it raised; nothing here touches
// the register stack.
//
// The result is what the CPU stores with the masks of that control word, with
// one rule for the callers: where an unmasked invalid operation, denormal
// operand or zero divide was raised ([fctx.stopped]) nothing may be stored.
//
// Sources: SDM vol. 1, ch. 4.8 (formats), 8.4 and 8.5 (exceptions and their
// masked and unmasked responses); the order of the checks is 4.9.2.

// fctx is the environment of one operation: the control word in; the
// exceptions out, with C1 where the significand was rounded up.
type fctx struct {
	cw uint16
	ex uint16
	// memDenormal: an operand converted from memory was a denormal, which
	// counts where the operation gets to it.
	memDenormal bool
	// intel: FSCALE, FPREM and the transcendental instructions differ where arguments are small.
	intel bool
}

// Rounding modes, the RC field of the control word.
const (
	x87Nearest = 0
	x87Down    = 1
	x87Up      = 2
	x87Chop    = 3
)

const (
	f80Bias   = 16383
	f80MaxExp = 0x7fff
	f80Int    = 1 << 63 // the explicit integer bit
	f80Quiet  = 1 << 62 // set in a quiet NaN
	// f80Wrap is the exponent adjustment of unmasked overflow and underflow
	// (SDM vol. 1, 8.5.4).
	f80Wrap = 24576
)

// f80Indefinite is the real indefinite, the masked answer to an invalid operation.
var f80Indefinite = F80{M: f80Int | f80Quiet, E: 0xffff}

func f80Inf(sign uint16) F80  { return F80{M: f80Int, E: sign | f80MaxExp} }
func f80Zero(sign uint16) F80 { return F80{E: sign} }

func (c *fctx) rc() uint16 { return c.cw >> 10 & 3 }

// stopped says that an unmasked exception of the kind found before the
// computation was raised: the instruction stores nothing.
func (c *fctx) stopped() bool { return c.ex&^c.cw&(fpuIE|fpuDE|fpuZE) != 0 }

// precision returns the bits of the significand by the PC field. The reserved
// value 1 behaves as 64 bits.
func (c *fctx) precision() uint {
	switch c.cw >> 8 & 3 {
	case 0:
		return 24
	case 2:
		return 53
	}
	return 64
}

func (a F80) sign() uint16  { return a.E & 0x8000 }
func (a F80) exp() int32    { return int32(a.E & 0x7fff) }
func (a F80) isZero() bool  { return a.M == 0 && a.E&0x7fff == 0 }
func (a F80) isInf() bool   { return a.M == f80Int && a.E&0x7fff == f80MaxExp }
func (a F80) isNaN() bool   { return a.E&0x7fff == f80MaxExp && a.M > f80Int }
func (a F80) isSNaN() bool  { return a.isNaN() && a.M&f80Quiet == 0 }
func (a F80) quieted() F80  { return F80{M: a.M | f80Quiet, E: a.E} }
func (a F80) negated() F80  { return F80{M: a.M, E: a.E ^ 0x8000} }
func (a F80) absolute() F80 { return F80{M: a.M, E: a.E & 0x7fff} }

// isUnsupported: an unnormal, a pseudo-infinity or a pseudo-NaN.
func (a F80) isUnsupported() bool { return a.E&0x7fff != 0 && a.M>>63 == 0 }

// isDenormal: a denormal or a pseudo-denormal.
func (a F80) isDenormal() bool { return a.E&0x7fff == 0 && a.M != 0 }

// norm returns exponent and significand of a finite number that is not zero,
// the significand with its top bit set; the exponent can be below 1.
func (a F80) norm() (e int32, m uint64) {
	e, m = a.exp(), a.M
	if e == 0 {
		n := bits.LeadingZeros64(m)
		return 1 - int32(n), m << n
	}
	return e, m
}

// invalid raises IE and returns the indefinite.
func (c *fctx) invalid() F80 {
	c.ex |= fpuIE
	return f80Indefinite
}

// denormal raises DE where an operand asks for it; true means stop.
func (c *fctx) denormal(operand bool) bool {
	if operand || c.memDenormal {
		c.ex |= fpuDE
	}
	return c.stopped()
}

// special deals with unsupported operands and NaNs; ok is false when there is
// none and the operation has to be computed.
func (c *fctx) special(a, b F80) (r F80, ok bool) {
	if a.isUnsupported() || b.isUnsupported() {
		return c.invalid(), true
	}
	an, bn := a.isNaN(), b.isNaN()
	if !an && !bn {
		return F80{}, false
	}
	if a.isSNaN() || b.isSNaN() {
		c.ex |= fpuIE
	}
	return pickNaN(a, b, an, bn), true
}

// special1 is special for operations with one operand.
func (c *fctx) special1(a F80) (r F80, ok bool) {
	switch {
	case a.isUnsupported():
		return c.invalid(), true
	case a.isSNaN():
		c.ex |= fpuIE
		return a.quieted(), true
	case a.isNaN():
		return a, true
	}
	return F80{}, false
}

// pickNaN chooses the result among two operands of which at least one is a NaN
// (SDM vol. 1, table 4-7): a quiet one before a signalling one, then the
// larger significand, then the positive one.
func pickNaN(a, b F80, an, bn bool) F80 {
	switch {
	case !bn:
		return a.quieted()
	case !an:
		return b.quieted()
	case a.isSNaN() != b.isSNaN():
		if a.isSNaN() {
			return b
		}
		return a
	case a.M > b.M:
		return a.quieted()
	case a.M < b.M:
		return b.quieted()
	case a.E < b.E:
		return a.quieted()
	}
	return b.quieted()
}

// roundBits rounds hi:lo, top bit of hi set or not, to the upper p bits of hi
// by mode rc. carry: it rounded up to 2^64, m is then 1<<63.
func roundBits(hi, lo uint64, p uint, neg bool, rc uint16) (m uint64, carry, inexact, up bool) {
	drop := 64 - p
	var half, sticky, odd bool
	if drop == 0 {
		half, sticky, odd = lo>>63 != 0, lo<<1 != 0, hi&1 != 0
	} else {
		unit := uint64(1) << drop
		half = hi&(unit>>1) != 0
		sticky = hi&(unit>>1-1)|lo != 0
		odd = hi&unit != 0
		hi &^= unit - 1
	}
	inexact = half || sticky
	switch rc {
	case x87Nearest:
		up = half && (sticky || odd)
	case x87Down:
		up = inexact && neg
	case x87Up:
		up = inexact && !neg
	}
	if up {
		hi += 1 << drop
		if hi == 0 {
			return f80Int, true, inexact, up
		}
	}
	return hi, false, inexact, up
}

// shiftRightJam shifts hi:lo right by n >= 0, or-ing what falls out into the lowest bit.
func shiftRightJam(hi, lo uint64, n int32) (uint64, uint64) {
	switch {
	case n == 0:
		return hi, lo
	case n < 64:
		out := lo << (64 - n)
		lo = hi<<(64-n) | lo>>n
		return hi >> n, lo | nonZero(out)
	case n < 128:
		out := lo
		n -= 64
		if n > 0 {
			out |= hi << (64 - n)
		}
		return 0, hi>>n | nonZero(out)
	}
	return 0, nonZero(hi | lo)
}

func nonZero(x uint64) uint64 {
	if x != 0 {
		return 1
	}
	return 0
}

// pack rounds the number with sign, biased exponent e and significand hi:lo
// (top bit of hi set; lo's lowest bit may be sticky) to the precision of the
// control word, with overflow and underflow.
func (c *fctx) pack(sign uint16, e int32, hi, lo uint64) F80 {
	return c.packTo(sign, e, hi, lo, c.precision())
}

func (c *fctx) packTo(sign uint16, e int32, hi, lo uint64, p uint) F80 {
	m, carry, inexact, up := roundBits(hi, lo, p, sign != 0, c.rc())
	er := e
	if carry {
		er++
	}
	switch {
	case er >= f80MaxExp:
		return c.overflow(sign, er, m, p, inexact, up)
	case er <= 0:
		if c.cw&fpuUE == 0 {
			c.ex |= fpuUE
			er += f80Wrap
			if er <= 0 { // FSCALE far below: SDM vol. 2A, FSCALE
				er, m, inexact, up = 0, 0, true, false
			}
			break
		}
		hi, lo = shiftRightJam(hi, lo, 1-e)
		m, _, inexact, up = roundBits(hi, lo, p, sign != 0, c.rc())
		if inexact {
			c.ex |= fpuUE
		}
		er = int32(m >> 63)
	}
	c.inexact(inexact, up)
	return F80{M: m, E: sign | uint16(er)}
}

// inexact raises PE, with C1 for the direction.
func (c *fctx) inexact(inexact, up bool) {
	if inexact {
		c.ex |= fpuPE
	}
	if up {
		c.ex |= fpuC1
	}
}

// overflow answers a result whose rounded exponent e is too large.
func (c *fctx) overflow(sign uint16, e int32, m uint64, p uint, inexact, up bool) F80 {
	c.ex |= fpuOE
	if c.cw&fpuOE == 0 {
		if e -= f80Wrap; e < f80MaxExp {
			c.inexact(inexact, up)
			return F80{M: m, E: sign | uint16(e)}
		}
		c.inexact(true, true) // FSCALE far above
		return f80Inf(sign)
	}
	toInf := overflowsToInf(c.rc(), sign)
	c.inexact(true, toInf)
	if toInf {
		return f80Inf(sign)
	}
	return F80{M: ^uint64(0) << (64 - p), E: sign | (f80MaxExp - 1)}
}

// overflowsToInf: whether mode rc answers overflow by infinity, not by the
// largest finite number.
func overflowsToInf(rc, sign uint16) bool {
	return rc == x87Nearest || rc == x87Down && sign != 0 || rc == x87Up && sign == 0
}
