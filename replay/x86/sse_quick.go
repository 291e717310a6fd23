package x86

import "math"

// Arithmetic on doubles for the run loop: what the host's operation alone
// decides, where MXCSR lets it (mxcsr.fast). Each function says whether it did
// so; when not, it has changed nothing, and the handler does the work. The
// conditions are those of sse_fast.go, put so that the common case is three
// comparisons a lane. Those for several lanes are in sse_quick_gen.go.

const (
	quickNormal = 1<<53 - 1   // of x<<1 - 1: below are the denormals
	quickInf    = 0x7ff << 53 // of x<<1: infinity, and NaNs from there on
	quickSafe   = 2 << 53     // of x<<1: above are results that were not tiny before rounding
	quickMin    = 1 << 53     // of x<<1: the smallest normal number
)

// notDenormal says that x is zero, normal, infinite or a NaN.
func notDenormal(x uint64) bool { return x<<1-1 >= quickNormal }

// A sum that is zero or normal has operands that are finite.
func quickSum(a, b, s uint64) bool {
	return notDenormal(a) && notDenormal(b) && notDenormal(s) && s<<1 < quickInf
}

// A product or quotient that is safe (see safe64) has finite operands, and
// neither is zero; but a divisor may not be infinite then either: the quotient
// would be zero.
func quickProduct(a, b, s uint64) bool {
	return a<<1 >= quickMin && b<<1 >= quickMin && s<<1-quickSafe < quickInf-quickSafe
}

func add64Quick(a, b uint64) (s uint64, ok bool) {
	s = math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
	return s, quickSum(a, b, s)
}

func sub64Quick(a, b uint64) (s uint64, ok bool) {
	s = math.Float64bits(math.Float64frombits(a) - math.Float64frombits(b))
	return s, quickSum(a, b, s)
}

func mul64Quick(a, b uint64) (s uint64, ok bool) {
	s = math.Float64bits(math.Float64frombits(a) * math.Float64frombits(b))
	return s, quickProduct(a, b, s)
}

func div64Quick(a, b uint64) (s uint64, ok bool) {
	s = math.Float64bits(math.Float64frombits(a) / math.Float64frombits(b))
	return s, quickProduct(a, b, s)
}
