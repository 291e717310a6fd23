package x86

import (
	"math"
	"testing"
)

// TestApprox14 compares samples with what CPUs give (AMD family 19h model 11h, Intel family 6 model 55h): the first fractions,
// powers of two, the ends of the range, denormals, and what is no number.
func TestApprox14(t *testing.T) {
	for _, k := range []struct {
		name  string
		op    approx14
		x     uint64
		mxcsr mxcsr
		want  uint64
	}{
		{"1/1", rcp14, 0x3f800000, 0, 0x3f800000},
		{"1/next", rcp14, 0x3f800001, 0, 0x3f7ffe00},
		{"1/0x100", rcp14, 0x3f800100, 0, 0x3f7ffc00},
		{"1/0x900", rcp14, 0x3f800900, 0, 0x3f7fec80},
		{"root 1", rsqrt14, 0x3f800000, 0, 0x3f800000},
		{"root next", rsqrt14, 0x3f800001, 0, 0x3f7ffd00},
		{"root 4", rsqrt14, 0x40800000, 0, 0x3f000000},
		{"1/0", rcp14, 0x80000000, 0, 0xff800000},
		{"1/inf", rcp14, 0xff800000, 0, 0x80000000},
		{"1/2^127", rcp14, 0x7f000000, 0, 0x00400000},
		{"1/2^127 to zero", rcp14, 0xff000000, mxFTZ, 0x80000000},
		{"1/2^-149", rcp14, 1, 0, 0x7f800000},
		{"1/2^-127", rcp14, 0x00400000, 0, 0x7f000000},
		{"1/2^-127 as zero", rcp14, 0x00400000, mxDAZ, 0x7f800000},
		{"NaN", rcp14, 0x7f800001, 0, 0x7fc00001},
		{"root -1", rsqrt14, 0xbf800000, 0, 0xffc00000},
		{"root -0", rsqrt14, 0x80000000, 0, 0xff800000},
		{"root inf", rsqrt14, 0x7f800000, 0, 0},
	} {
		if got := k.op(fpSingle, k.x, k.mxcsr); got != k.want {
			t.Errorf("%s: %#x, want %#x", k.name, got, k.want)
		}
	}
}

// TestApprox14Error checks the bound of the manual, 2^-14, over an octave, two for the root.
func TestApprox14Error(t *testing.T) {
	for x := 1.0; x < 4; x += 1.0 / (1 << 17) {
		at := func(op approx14) float64 { return math.Float64frombits(op(fpDouble, math.Float64bits(x), 0)) }
		if e := math.Abs(at(rcp14)*x - 1); e >= 1.0/(1<<14) {
			t.Fatalf("1/%v: error %v", x, e)
		}
		if e := math.Abs(at(rsqrt14)*math.Sqrt(x) - 1); e >= 1.0/(1<<14) {
			t.Fatalf("1/sqrt(%v): error %v", x, e)
		}
	}
}
