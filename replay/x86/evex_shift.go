package x86

import "math/bits"

// EVEX shifts and rotates.

// evShift shifts all elements of the first source by one count.
//
//go:noinline
func evShift(f func(a, n uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		for i := range o.quads {
			o.r[i] = f(o.a[i], o.b[0])
		}
		return c.close(in, &o)
	}
}

// evShiftImm shifts by the immediate; the destination is the register in vvvv.
//
//go:noinline
func evShiftImm(f func(a, n uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		for i := range o.quads {
			o.r[i] = f(o.b[i], in.Imm&0xff)
		}
		c.put(in, in.VVVV, &o.r, o.n, o.form.elem, o.mask)
		return ExitNone
	}
}

// evShiftBytes shifts 128-bit lanes by bytes.
//
//go:noinline
func evShiftBytes(f func(lo, hi, n uint64) (uint64, uint64)) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		for i := 0; i < o.quads; i += 2 {
			o.r[i], o.r[i+1] = f(o.b[i], o.b[i+1], min(in.Imm&0xff, 16)*8)
		}
		c.put(in, in.VVVV, &o.r, o.n, 0, 0)
		return ExitNone
	}
}

func laneSarQ(a, n uint64) uint64 { return uint64(int64(a) >> min(n, 63)) }

func laneRolD(a, n uint64) uint64 {
	return dwords(uint64(bits.RotateLeft32(uint32(a), int(n&31))), uint64(bits.RotateLeft32(uint32(a>>32), int(n&31))))
}

func laneRorD(a, n uint64) uint64 { return laneRolD(a, -n) }
func laneRolQ(a, n uint64) uint64 { return bits.RotateLeft64(a, int(n&63)) }
func laneRorQ(a, n uint64) uint64 { return bits.RotateLeft64(a, -int(n&63)) }

// Shifts and rotates by a count for each element.
var (
	laneShlVW = each(16, func(a, n uint64) uint64 { return a << n })
	laneShrVW = each(16, func(a, n uint64) uint64 { return a >> n })
	laneSarVW = each(16, func(a, n uint64) uint64 { return uint64(int64(int16(a)) >> n) })
	laneShlVD = each(32, func(a, n uint64) uint64 { return a << n })
	laneShrVD = each(32, func(a, n uint64) uint64 { return a >> n })
	laneSarVD = each(32, func(a, n uint64) uint64 { return uint64(int64(int32(a)) >> n) })
	laneRolVD = each(32, func(a, n uint64) uint64 { return uint64(bits.RotateLeft32(uint32(a), int(n&31))) })
	laneRorVD = each(32, func(a, n uint64) uint64 { return uint64(bits.RotateLeft32(uint32(a), -int(n&31))) })
)

// doubleShl and doubleShr shift the double element a:b, with a the one that is kept, for elements
// of width bits.
//
//go:noinline
func doubleShl(width uint64) func(a, b, n uint64) uint64 {
	return func(a, b, n uint64) uint64 {
		n &= width - 1
		return a<<n | b>>(width-n)
	}
}

//go:noinline
func doubleShr(width uint64) func(a, b, n uint64) uint64 {
	return func(a, b, n uint64) uint64 {
		n &= width - 1
		return a>>n | b<<(width-n)
	}
}

// evDouble shifts a:b by the immediate, evDoubleV the destination and a by b.
//
//go:noinline
func evDouble(width uint, f func(a, b, n uint64) uint64) Handler {
	return evThreeImm(func(_, a, b, imm uint64) uint64 {
		if width == 64 {
			return f(a, b, imm)
		}
		return each(width, func(a, b uint64) uint64 { return f(a, b, imm) })(a, b)
	})
}

//go:noinline
func evDoubleV(width uint, f func(a, b, n uint64) uint64) Handler {
	if width == 64 {
		return evThree(f)
	}
	return evThree(eachThree(width, f))
}
