package x86

import (
	"math"
	"math/rand/v2"
	"testing"
)

func single(x uint32) float64 { return float64(math.Float32frombits(x)) }

// edges64 are doubles near which implementations go wrong.
var edges64 = []uint64{
	0, 1, 0xfffffffffffff, 0x10000000000000, 0x10000000000001, 0x3ff0000000000000, 0x3ff0000000000001,
	0x3fefffffffffffff, 0x4340000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000001,
	0x7ff0000000000001, 0x1ff0000000000000, 0x5fe0000000000000, 0x3ca0000000000000, 0x43e0000000000000,
}

func randomDouble(r *rand.Rand) uint64 {
	s := r.Uint64N(2) << 63
	switch r.IntN(4) {
	case 0:
		return edges64[r.IntN(len(edges64))] | s
	case 1:
		return 0x3ff0000000000000 + r.Uint64N(1<<56) - 1<<55 | s
	}
	return r.Uint64()
}

func sameDouble(got uint64, want float64) bool {
	return got == math.Float64bits(want) || math.IsNaN(want) && fpDouble.isNaN(got)
}

// TestSlowPathAgainstHost compares the integer arithmetic, rounding to nearest
// with everything masked, with the host's; NaNs only for being NaNs.
func TestSlowPathAgainstHost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const m = mxcsr(0x1f80)
	for range 300000 {
		a, b := randomDouble(r), randomDouble(r)
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		sum, _ := fpDouble.add(a, b, false, m)
		dif, _ := fpDouble.add(a, b, true, m)
		mul, _ := fpDouble.mul(a, b, m)
		div, _ := fpDouble.div(a, b, m)
		root, _ := fpDouble.sqrt(a, m)
		for _, c := range []struct {
			op   string
			got  uint64
			want float64
		}{{"+", sum, x + y}, {"-", dif, x - y}, {"*", mul, x * y}, {"/", div, x / y}, {"sqrt", root, math.Sqrt(x)}} {
			if !sameDouble(c.got, c.want) {
				t.Fatalf("%x %s %x: got %x, want %x", a, c.op, b, c.got, math.Float64bits(c.want))
			}
		}
		f, _ := fpDouble.convert(a, fpSingle, m)
		if w := float32(x); !math.IsNaN(x) && uint32(f) != math.Float32bits(w) {
			t.Fatalf("single(%x): got %x, want %x", a, f, math.Float32bits(w))
		}
	}
}

// TestFastPath checks that the fast path gives what the slow one does: the same
// bits, and no flag but PE, which is sticky when it is taken.
func TestFastPath(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const m = mxcsr(0x1fa0)
	for range 300000 {
		a, b := randomDouble(r), randomDouble(r)
		for _, c := range []struct {
			op         string
			fast, slow func() (uint64, mxcsr)
		}{
			{"+", func() (uint64, mxcsr) { return add64(a, b, m) }, func() (uint64, mxcsr) { return fpDouble.add(a, b, false, m) }},
			{"-", func() (uint64, mxcsr) { return sub64(a, b, m) }, func() (uint64, mxcsr) { return fpDouble.add(a, b, true, m) }},
			{"*", func() (uint64, mxcsr) { return mul64(a, b, m) }, func() (uint64, mxcsr) { return fpDouble.mul(a, b, m) }},
			{"/", func() (uint64, mxcsr) { return div64(a, b, m) }, func() (uint64, mxcsr) { return fpDouble.div(a, b, m) }},
			{"sqrt", func() (uint64, mxcsr) { return sqrt64(a, m) }, func() (uint64, mxcsr) { return fpDouble.sqrt(a, m) }},
		} {
			rf, ff := c.fast()
			rs, fs := c.slow()
			if rf != rs || ff|mxPE != fs|mxPE {
				t.Fatalf("%x %s %x: fast %x flags %x, slow %x flags %x", a, c.op, b, rf, ff, rs, fs)
			}
		}
		x, y := uint32(a>>29), uint32(b>>31)
		for _, c := range []struct {
			op         string
			fast, slow func() (uint32, mxcsr)
		}{
			{"+", func() (uint32, mxcsr) { return add32(x, y, m) }, func() (uint32, mxcsr) { return narrow(fpSingle.add(uint64(x), uint64(y), false, m)) }},
			{"-", func() (uint32, mxcsr) { return sub32(x, y, m) }, func() (uint32, mxcsr) { return narrow(fpSingle.add(uint64(x), uint64(y), true, m)) }},
			{"*", func() (uint32, mxcsr) { return mul32(x, y, m) }, func() (uint32, mxcsr) { return narrow(fpSingle.mul(uint64(x), uint64(y), m)) }},
			{"/", func() (uint32, mxcsr) { return div32(x, y, m) }, func() (uint32, mxcsr) { return narrow(fpSingle.div(uint64(x), uint64(y), m)) }},
		} {
			rf, ff := c.fast()
			rs, fs := c.slow()
			if rf != rs || ff|mxPE != fs|mxPE {
				t.Fatalf("single %x %s %x: fast %x flags %x, slow %x flags %x", x, c.op, y, rf, ff, rs, fs)
			}
		}
	}
}

// TestRounding spells out the cases of each rounding mode, tininess after
// rounding, flush to zero and overflow.
func TestRounding(t *testing.T) {
	const one, ulp = 0x3ff0000000000000, 0x3ca0000000000000 // 1, 2^-53
	rc := func(mode uint8) mxcsr { return 0x1f80 | mxcsr(mode)<<mxRCShift }
	for _, c := range []struct {
		name  string
		got   func() (uint64, mxcsr)
		want  uint64
		flags mxcsr
	}{
		{"tie to even", func() (uint64, mxcsr) { return add64(one, ulp, rc(rcNearest)) }, one, mxPE},
		{"up", func() (uint64, mxcsr) { return add64(one, ulp, rc(rcUp)) }, one + 1, mxPE},
		{"down", func() (uint64, mxcsr) { return add64(one, ulp, rc(rcDown)) }, one, mxPE},
		{"toward zero", func() (uint64, mxcsr) { return sub64(one, ulp, rc(rcZero)) }, one - 1, 0},
		{"cancel", func() (uint64, mxcsr) { return sub64(one, one, rc(rcNearest)) }, 0, 0},
		{"cancel down", func() (uint64, mxcsr) { return sub64(one, one, rc(rcDown)) }, 1 << 63, 0},
		{"overflow", func() (uint64, mxcsr) { return mul64(0x7fe0000000000000, 0x4000000000000000, rc(rcNearest)) }, 0x7ff0000000000000, mxOE | mxPE},
		{"overflow down", func() (uint64, mxcsr) { return mul64(0x7fe0000000000000, 0x4000000000000000, rc(rcDown)) }, 0x7fefffffffffffff, mxOE | mxPE},
		{"tiny exact", func() (uint64, mxcsr) { return mul64(0x0010000000000000, 0x3fe0000000000000, rc(rcNearest)) }, 0x0008000000000000, 0},
		{"tiny exact, FTZ", func() (uint64, mxcsr) { return mul64(0x0010000000000000, 0x3fe0000000000000, rc(rcNearest)|mxFTZ) }, 0, mxUE | mxPE},
		{"not tiny after rounding", func() (uint64, mxcsr) { return mul64(0x000fffffffffffff, 0x3ff0000000000001, rc(rcUp)) }, 0x0010000000000000, mxDE | mxPE},
		{"zero by zero", func() (uint64, mxcsr) { return div64(0, 0, rc(rcNearest)) }, 0xfff8000000000000, mxIE},
		{"denormal by zero", func() (uint64, mxcsr) { return div64(1, 0, rc(rcNearest)) }, 0x7ff0000000000000, mxZE},
		{"first NaN wins", func() (uint64, mxcsr) { return add64(0x7ff8000000000001, 0x7ff8000000000002, rc(rcNearest)) }, 0x7ff8000000000001, 0},
		{"signalling NaN", func() (uint64, mxcsr) { return add64(one, 0x7ff0000000000002, rc(rcNearest)) }, 0x7ff8000000000002, mxIE},
	} {
		if r, fl := c.got(); r != c.want || fl != c.flags {
			t.Errorf("%s: got %x flags %x, want %x flags %x", c.name, r, fl, c.want, c.flags)
		}
	}
}
