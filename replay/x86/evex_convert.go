package x86

import "math/bits"

// EVEX conversions. One element function for each pair of formats; the sizes are the
// row's.

// toUint converts to an unsigned integer of the given width with rounding rc. What does not
// fit gives all ones and IE.
func (f fpFormat) toUint(x uint64, width, rc uint8, m mxcsr) (uint64, mxcsr) {
	most := ^uint64(0) >> (64 - width)
	v, neg, fl := f.whole(x, rc, m)
	if fl == mxIE || v > most || neg && v != 0 {
		return most, mxIE
	}
	return v, fl
}

// fromUint converts an unsigned integer.
func (f fpFormat) fromUint(v uint64, m mxcsr) (uint64, mxcsr) {
	if v == 0 {
		return 0, 0
	}
	n := bits.LeadingZeros64(v)
	return f.round(false, 63-n, v<<n, m)
}

// evToInt and evToUint convert to integers with MXCSR's rounding, evTruncInt and evTruncUint
// by truncation.
//
//go:noinline
func evToInt(f fpFormat, width uint8) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return f.toInt(b, width, m.rc(), m) })
}

//go:noinline
func evToUint(f fpFormat, width uint8) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return f.toUint(b, width, m.rc(), m) })
}

//go:noinline
func evTruncInt(f fpFormat, width uint8) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return f.toInt(b, width, rcZero, m) })
}

//go:noinline
func evTruncUint(f fpFormat, width uint8) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return f.toUint(b, width, rcZero, m) })
}

// evFromInt and evFromUint convert from integers of width bits.
//
//go:noinline
func evFromInt(f fpFormat, width uint8) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) {
		return f.fromInt(int64(b<<(64-width))>>(64-width), m)
	})
}

//go:noinline
func evFromUint(f fpFormat) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return f.fromUint(b, m) })
}

// evFormat changes the format, evFormatScalar that of the lowest element.
//
//go:noinline
func evFormat(from, to fpFormat) Handler {
	return evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return from.convert(b, to, m) })
}

//go:noinline
func evFormatScalar(from, to fpFormat) Handler {
	return evScalar(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) { return from.convert(b, to, m) })
}

// evFromHalf widens halves; denormal halves are numbers whatever DAZ says.
var evFromHalf = evPacked(func(_, b, _ uint64, m mxcsr) (uint64, mxcsr) {
	r, fl := fpHalf.convert(b, fpSingle, m&^mxDAZ)
	return r, fl &^ mxDE
})

// evToHalf narrows to halves in ModRM.rm, with the rounding of imm[1:0], or MXCSR's if imm[2].
func evToHalf(c *CPU, in *Inst) Exit {
	f := &tablesVar.rows[in.Row].evex
	n := 2 * in.vectorLength()
	mask, z := c.maskOf(in, n), c.ZMM(in.Reg)
	m, quiet := c.control(in, f)
	if m &^= mxFTZ; in.Imm&4 == 0 {
		m = m&^mxRC | mxcsr(in.Imm&3)<<mxRCShift
	}
	var r zmm
	var fl mxcsr
	for i := range n {
		if mask>>i&1 != 0 {
			x, fx := fpSingle.convert(element(&z, 32, i), fpHalf, m)
			if fx&(mxDE|mxUE) == mxDE|mxUE && !c.amd() {
				fx |= mxPE // Intel: a denormal is inexact, also where UE is unmasked
			}
			setElement(&r, 16, i, x)
			fl |= fx
		}
	}
	if isMem(in) && c.amd() { // Intel sets the flags before it looks at the memory
		if e := c.probeMasked(in, 2*n, 2, mask); e != ExitNone {
			return e
		}
	}
	if e := c.settle(fl, quiet); e != ExitNone {
		return e
	}
	return c.keep(in, &r, n, 2, mask)
}

// scalarFrom converts a general register, unsigned, to the lowest element of the destination.
//
//go:noinline
func evFromGeneral(f fpFormat) Handler {
	return func(c *CPU, in *Inst) Exit {
		x, e := c.gpSrcW(in)
		if e != ExitNone {
			return e
		}
		v := uint64(x)
		if in.Flags&InstW == 0 {
			v &= 0xffffffff
		}
		m, quiet := c.control(in, &tablesVar.rows[in.Row].evex)
		r, fl := f.fromUint(v, m)
		if e := c.settle(fl, quiet); e != ExitNone {
			return e
		}
		z := c.ZMM(in.VVVV)
		clear(z[2:])
		setElement(&z, uint(f.frac&0x20+0x20), 0, r)
		c.setZMM(in.Reg, &z)
		return ExitNone
	}
}

// evToGeneral converts the lowest element to an unsigned integer in a general register, with
// MXCSR's rounding or by truncation.
//
//go:noinline
func evToGeneral(f fpFormat, truncates bool) Handler {
	return func(c *CPU, in *Inst) Exit {
		form := &tablesVar.rows[in.Row].evex
		z, e := c.evexSource(in, form, 1, 1)
		if e != ExitNone {
			return e
		}
		m, quiet := c.control(in, form)
		rc, width := m.rc(), uint8(32)
		if truncates {
			rc = rcZero
		}
		if in.Flags&InstW != 0 {
			width = 64
		}
		r, fl := f.toUint(element(&z, uint(f.frac&0x20+0x20), 0), width, rc, m)
		if e := c.settle(fl, quiet); e != ExitNone {
			return e
		}
		c.R[in.Reg&15] = r
		return ExitNone
	}
}

// bfloat16 are the upper halves of singles. These instructions round to nearest, take
// denormals for zeros, and raise nothing, whatever MXCSR says.
const bfloatControl = mxFlags<<mxMaskShift | mxDAZ | mxFTZ

// toBfloat rounds a single to its upper half.
func toBfloat(x uint64) uint64 {
	x, _ = fpSingle.daz(x, bfloatControl)
	if fpSingle.isNaN(x) {
		return x>>16 | 0x40
	}
	return (x + 0x7fff + x>>16&1) >> 16
}

// evToBfloat is VCVTNEPS2BF16.
var evToBfloat = evPacked(func(_, b, _ uint64, _ mxcsr) (uint64, mxcsr) { return toBfloat(b), 0 })

// evTwoToBfloat is VCVTNE2PS2BF16: the second source in the lower half.
func evTwoToBfloat(c *CPU, in *Inst) Exit {
	var o evexOp
	o.form, o.quads = &tablesVar.rows[in.Row].evex, in.vectorLength()
	o.n = 4 * o.quads
	o.mask = c.maskOf(in, o.n)
	var e Exit
	if o.b, e = c.evexSource(in, o.form, 2*o.quads, allOf(2*o.quads)); e != ExitNone {
		return e
	}
	o.a = c.ZMM(in.VVVV)
	for i := range 2 * o.quads {
		setElement(&o.r, 16, i, toBfloat(element(&o.b, 32, i)))
		setElement(&o.r, 16, i+2*o.quads, toBfloat(element(&o.a, 32, i)))
	}
	return c.close(in, &o)
}
