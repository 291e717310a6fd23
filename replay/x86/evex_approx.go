package x86

// VRCP14 and VRSQRT14, whose error is bounded by 2^-14. Their bits are the same on AMD (family 25 model 17) and Intel (family 6 model 85);
// evex_approx_tables.go has them. No flag is raised; denormals are numbers unless DAZ
// says otherwise, and results unless FTZ does. Powers of two (of four for the root) are exact.

// approx14 is one of the two functions.
type approx14 func(f fpFormat, x uint64, m mxcsr) uint64

// evApprox14 computes the elements of a vector.
//
//go:noinline
func evApprox14(f fpFormat, op approx14) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return op(f, b, m), 0 })
}

// evScalarApprox14 computes the lowest element.
//
//go:noinline
func evScalarApprox14(f fpFormat, op approx14) Handler {
	return evScalar(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return op(f, b, m), 0 })
}

// lineAt returns the fraction, of 16 bits, for the fraction x of 16 bits, from as many lines as there are, where skip lower bits of x do not count.
func lineAt(lines []fallingLine, x uint64, skip uint) uint64 {
	x >>= skip
	width := uint64(1<<16>>skip) / uint64(len(lines))
	l := lines[x/width]
	return uint64(l.base-l.slope*uint32(x%width)) >> 9
}

// normal returns the exponent, with its bias, and the fraction of a finite number other than zero; a denormal has an exponent below 1.
func (f fpFormat) normal(x uint64) (exp int, frac uint64) {
	one := uint64(1) << f.frac
	exp, frac = int(x>>f.frac&f.expMask()), x&(one-1)
	if exp > 0 {
		return exp, frac
	}
	for exp = 1; frac < one; exp-- {
		frac <<= 1
	}
	return exp, frac - one
}

// rcp14 approximates 1/x.
func rcp14(f fpFormat, x uint64, m mxcsr) uint64 {
	if f.isNaN(x) {
		return x | f.quiet()
	}
	sign := x & f.sign(true)
	switch x, _ = f.daz(x, m); x &^ sign {
	case 0:
		return sign | f.inf()
	case f.inf():
		return sign
	}
	exp, frac := f.normal(x)
	to := 2*int(f.bias) - exp
	if frac != 0 {
		to, frac = to-1, lineAt(rcp14Lines[:], frac>>(f.frac-16), 0)<<(f.frac-16)
	}
	switch {
	case to >= int(f.expMask()):
		return sign | f.inf()
	case to > 0:
		return sign | uint64(to)<<f.frac | frac
	case m&mxFTZ != 0:
		return sign
	}
	return sign | (1<<f.frac|frac)>>(1-to) // no bit is lost: at most two of those that are zero
}

// rsqrt14 approximates 1/sqrt(x).
func rsqrt14(f fpFormat, x uint64, m mxcsr) uint64 {
	if f.isNaN(x) {
		return x | f.quiet()
	}
	sign := x & f.sign(true)
	x, _ = f.daz(x, m)
	switch {
	case x == sign:
		return sign | f.inf()
	case sign != 0:
		return f.indefinite()
	case x == f.inf():
		return 0
	}
	exp, frac := f.normal(x)
	exp -= int(f.bias)
	to, isOdd := int(f.bias)-exp>>1, exp&1 != 0
	lines := rsqrt14Even[:]
	switch {
	case isOdd:
		lines = rsqrt14Odd[:]
	case frac == 0:
		return uint64(to) << f.frac
	}
	return uint64(to-1)<<f.frac | lineAt(lines, frac>>(f.frac-16), 1)<<(f.frac-16)
}
