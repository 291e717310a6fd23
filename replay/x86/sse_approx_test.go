package x86

import "testing"

// TestApproxIntel compares samples with published values of Intel's table:
// upper 15 fraction bits of results, spread over the operands and next to
// every rounding boundary.
func TestApproxIntel(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     approxFunc
		index uint32 // fraction bits that count
		shift uint
		want  uint32
	}{
		{"rcp first", intelRcp, 0, 12, 0x7ff0},
		{"rcp second", intelRcp, 1, 12, 0x7fd0},
		{"rcp boundary", intelRcp, 191, 12, 0x6a20},
		{"rcp boundary below", intelRcp, 243, 12, 0x64c8},
		{"rcp 392", intelRcp, 392, 12, 0x56d0},
		{"rcp 550", intelRcp, 550, 12, 0x49c8},
		{"rcp last", intelRcp, 2047, 12, 0x0008},
		{"rsqrt odd first", intelRsqrtOdd, 0, 13, 0x7ff0},
		{"rsqrt odd 13", intelRsqrtOdd, 13, 13, 0x7e58},
		{"rsqrt odd boundary", intelRsqrtOdd, 561, 13, 0x4db8},
		{"rsqrt odd boundary above", intelRsqrtOdd, 735, 13, 0x4350},
		{"rsqrt odd last", intelRsqrtOdd, 1023, 13, 0x3508},
		{"rsqrt even last", intelRsqrtEven, 1023, 13, 0x0008},
		{"rsqrt even 1022", intelRsqrtEven, 1022, 13, 0x0010},
	} {
		if got := c.f(c.index<<c.shift) << 3; got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
}

// TestApproxError checks the bound of the manual, 1.5 * 2^-12, over all
// operands in one octave (two for the root), for both vendors.
func TestApproxError(t *testing.T) {
	const bound = 1.5 / 4096
	for name, v := range map[string]*approxTables{"amd": &amdApprox, "intel": &intelApprox} {
		for i := uint32(0); i < 1<<13; i++ {
			x := uint32(127<<23) + i<<10
			f, r := single(x), single(v.rcp32(x))
			if e := r*f - 1; e > bound || e < -bound {
				t.Fatalf("%s: rcp(%g) = %g", name, f, r)
			}
			x = 127<<23 + i<<11
			f, r = single(x), single(v.rsqrt32(x))
			if e := r*r*f - 1; e > 2*bound || e < -2*bound {
				t.Fatalf("%s: rsqrt(%g) = %g", name, f, r)
			}
		}
	}
}
