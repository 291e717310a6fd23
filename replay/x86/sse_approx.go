package x86

import "math"

// RCPPS and RSQRTPS. The architecture only bounds their error, so the exact
// bits belong to the vendor: AMD's are those of sse_approx_amd.go, Intel's those
// of the midpoint formulas here (see RATIONALE.md for where they come from).
// They raise no flags and ignore MXCSR: denormals count as zeros, and results
// that would be denormal are zeros.

// approxFunc gives the upper 12 fraction bits of a result in [0.5, 1) for the
// 23 fraction bits of the operand.
type approxFunc func(fraction uint32) uint32

// approxTables are a vendor's: the reciprocal, and the reciprocal square root
// for numbers of odd and even biased exponent.
type approxTables struct {
	rcp, rsqrtOdd, rsqrtEven approxFunc
}

var (
	amdApprox   = approxTables{amdRcp.at, amdRsqrtOdd.at, amdRsqrtEven.at}
	intelApprox = approxTables{intelRcp, intelRsqrtOdd, intelRsqrtEven}
)

func (c *CPU) approx() *approxTables {
	if c.amd() {
		return &amdApprox
	}
	return &intelApprox
}

// bipartite is a function of 12 bits as the difference of two look-ups.
type bipartite struct {
	base [256]uint16
	less [256]uint8
}

func (t *bipartite) at(fraction uint32) uint32 {
	i := fraction >> 11 & 0xfff
	return uint32(t.base[i>>4]) - uint32(t.less[i>>4&0xf0|i&15])
}

// intelRcp is the reciprocal of the middle of the operand's interval, of which
// there are 2048, rounded to nearest.
func intelRcp(fraction uint32) uint32 {
	d := 4097 + 2*(fraction>>12&0x7ff)
	return (1<<26/d+1)>>1 - 4096
}

// intelRsqrt has 1024 intervals in each octave; scale is 2^26 over the width of
// half an interval.
func intelRsqrt(fraction uint32, scale float64) uint32 {
	d := float64(2049 + 2*(fraction>>13&0x3ff))
	return uint32(math.Sqrt(scale/d)+0.5) - 4096
}

func intelRsqrtOdd(fraction uint32) uint32  { return intelRsqrt(fraction, 1<<37) }
func intelRsqrtEven(fraction uint32) uint32 { return intelRsqrt(fraction, 1<<36) }

// approxSpecial handles what both functions treat alike: NaNs and zeros.
func approxSpecial(x uint32) (r uint32, is bool) {
	switch e := x >> 23 & 0xff; {
	case e == 0:
		return x&(1<<31) | 0x7f800000, true
	case e == 0xff && x<<9 != 0:
		return x | 1<<22, true
	}
	return 0, false
}

// rcp32 approximates 1/x.
func (t *approxTables) rcp32(x uint32) uint32 {
	if r, is := approxSpecial(x); is {
		return r
	}
	sign, e := x&(1<<31), x>>23&0xff
	if e >= 253 { // the result is denormal or zero
		return sign
	}
	return sign | (253-e)<<23 | t.rcp(x)<<11
}

// rsqrt32 approximates 1/sqrt(x).
func (t *approxTables) rsqrt32(x uint32) uint32 {
	if r, is := approxSpecial(x); is {
		return r
	}
	e := x >> 23
	switch {
	case e > 0xff:
		return uint32(fpSingle.indefinite())
	case e == 0xff:
		return 0
	case e&1 != 0:
		return (380-e)>>1<<23 | t.rsqrtOdd(x)<<11
	}
	return (380-e)>>1<<23 | t.rsqrtEven(x)<<11
}

// approxLane makes a lane operation of f.
func approxLane(f func(uint32) uint32) fpOp32 {
	return func(_, b uint32, _ mxcsr) (uint32, mxcsr) { return f(b), 0 }
}

func rcpps(c *CPU, in *Inst) Exit   { return c.packed32(in, approxLane(c.approx().rcp32)) }
func rcpss(c *CPU, in *Inst) Exit   { return c.scalar32(in, approxLane(c.approx().rcp32)) }
func rsqrtps(c *CPU, in *Inst) Exit { return c.packed32(in, approxLane(c.approx().rsqrt32)) }
func rsqrtss(c *CPU, in *Inst) Exit { return c.scalar32(in, approxLane(c.approx().rsqrt32)) }
