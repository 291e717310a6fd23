package x86

import "math"

// Conversions between the floating-point formats and integers, and rounding to
// integral values. Forms with MMX registers are in mmx_convert.go.

// toInt32 and the like are the lanes of the conversions to integers.
func single32(x uint32, rc uint8, m mxcsr) (uint32, mxcsr) {
	return narrow(fpSingle.toInt(uint64(x), 32, rc, m))
}

func double32(x uint64, rc uint8, m mxcsr) (uint32, mxcsr) {
	return narrow(fpDouble.toInt(x, 32, rc, m))
}

// int32Single and int32Double convert from integers; the latter is exact.
func int32Single(v uint32, m mxcsr) (uint32, mxcsr) {
	return narrow(fpSingle.fromInt(int64(int32(v)), m))
}

func int32Double(v uint32) uint64 { return math.Float64bits(float64(int32(v))) }

// toDouble and toSingle change the format.
func toDouble(x uint32, m mxcsr) (uint64, mxcsr) {
	if plain32(x) {
		return math.Float64bits(float64(math.Float32frombits(x))), 0
	}
	return fpSingle.convert(uint64(x), fpDouble, m)
}

func toSingle(x uint64, m mxcsr) (uint32, mxcsr) {
	if m.fast() && plain64(x) {
		if r := math.Float32bits(float32(math.Float64frombits(x))); safe32(r) {
			return r, 0
		}
	}
	return narrow(fpDouble.convert(x, fpSingle, m))
}

func cvtps2pd(c *CPU, in *Inst) Exit {
	q, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	r0, f0 := toDouble(uint32(q), m)
	r1, f1 := toDouble(uint32(q>>32), m)
	return c.commit(in, [2]uint64{r0, r1}, f0|f1)
}

func cvtpd2ps(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	r0, f0 := toSingle(lo, m)
	r1, f1 := toSingle(hi, m)
	return c.commit(in, [2]uint64{uint64(r0) | uint64(r1)<<32, 0}, f0|f1)
}

func cvtss2sd(c *CPU, in *Inst) Exit {
	x, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	r, fl := toDouble(x, mxcsr(c.MXCSR))
	return c.commit(in, [2]uint64{r, c.V[in.Reg&15][1]}, fl)
}

func cvtsd2ss(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	r, fl := toSingle(x, mxcsr(c.MXCSR))
	if e := c.raise(fl); e != ExitNone {
		return e
	}
	setLow32(&c.V[in.Reg&15], r)
	return ExitNone
}

func cvtdq2ps(c *CPU, in *Inst) Exit {
	return c.packed32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return int32Single(b, m) })
}

func cvtdq2pd(c *CPU, in *Inst) Exit {
	q, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = int32Double(uint32(q)), int32Double(uint32(q>>32))
	return ExitNone
}

func cvtps2dq(c *CPU, in *Inst) Exit {
	return c.packed32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return single32(b, m.rc(), m) })
}

func cvttps2dq(c *CPU, in *Inst) Exit {
	return c.packed32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return single32(b, rcZero, m) })
}

// doublesToInts converts both doubles of the source to doublewords.
func (c *CPU) doublesToInts(in *Inst, rc uint8) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	r0, f0 := double32(lo, rc, m)
	r1, f1 := double32(hi, rc, m)
	return c.commit(in, [2]uint64{uint64(r0) | uint64(r1)<<32, 0}, f0|f1)
}

func cvtpd2dq(c *CPU, in *Inst) Exit  { return c.doublesToInts(in, mxcsr(c.MXCSR).rc()) }
func cvttpd2dq(c *CPU, in *Inst) Exit { return c.doublesToInts(in, rcZero) }

func cvtsi2sd(c *CPU, in *Inst) Exit {
	x, e := c.gpSrcW(in)
	if e != ExitNone {
		return e
	}
	if y := float64(x); x > -1<<53 && x < 1<<53 { // exact
		c.V[in.Reg&15][0] = math.Float64bits(y)
		return ExitNone
	}
	r, fl := fpDouble.fromInt(x, mxcsr(c.MXCSR))
	return c.commit(in, [2]uint64{r, c.V[in.Reg&15][1]}, fl)
}

func cvtsi2ss(c *CPU, in *Inst) Exit {
	x, e := c.gpSrcW(in)
	if e != ExitNone {
		return e
	}
	r, fl := fpSingle.fromInt(x, mxcsr(c.MXCSR))
	if e := c.raise(fl); e != ExitNone {
		return e
	}
	setLow32(&c.V[in.Reg&15], uint32(r))
	return ExitNone
}

// scalarToInt converts a scalar to the general register in ModRM.reg.
func (c *CPU) scalarToInt(in *Inst, f fpFormat, x uint64, rc uint8) Exit {
	width := uint8(32)
	if in.Flags&InstW != 0 {
		width = 64
	}
	r, fl := f.toInt(x, width, rc, mxcsr(c.MXCSR))
	if e := c.raise(fl); e != ExitNone {
		return e
	}
	c.R[in.Reg&15] = r
	return ExitNone
}

func (c *CPU) singleToInt(in *Inst, rc uint8) Exit {
	x, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	return c.scalarToInt(in, fpSingle, uint64(x), rc)
}

func (c *CPU) doubleToInt(in *Inst, rc uint8) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	if rc == rcZero && plain64(x) {
		if f := math.Float64frombits(x); f > -1<<31 && f < 1<<31 {
			v := int64(f)
			if float64(v) == f || c.MXCSR&uint32(mxPM|mxPE) == uint32(mxPM|mxPE) {
				if in.Flags&InstW == 0 {
					v &= 0xffffffff
				}
				c.R[in.Reg&15] = uint64(v)
				return ExitNone
			}
		}
	}
	return c.scalarToInt(in, fpDouble, x, rc)
}

func cvtss2si(c *CPU, in *Inst) Exit  { return c.singleToInt(in, mxcsr(c.MXCSR).rc()) }
func cvttss2si(c *CPU, in *Inst) Exit { return c.singleToInt(in, rcZero) }
func cvtsd2si(c *CPU, in *Inst) Exit  { return c.doubleToInt(in, mxcsr(c.MXCSR).rc()) }
func cvttsd2si(c *CPU, in *Inst) Exit { return c.doubleToInt(in, rcZero) }

// roundControl decodes the immediate of the ROUND instructions: the mode, and
// the flags that it suppresses.
func roundControl(imm uint64, m mxcsr) (rc uint8, quiet mxcsr) {
	rc = uint8(imm & 3)
	if imm&4 != 0 {
		rc = m.rc()
	}
	if imm&8 != 0 {
		quiet = mxPE
	}
	return rc, quiet
}

func round64(x, imm uint64, m mxcsr) (uint64, mxcsr) {
	rc, quiet := roundControl(imm, m)
	r, fl := fpDouble.roundInt(x, rc, m)
	return r, fl &^ quiet
}

func round32(x uint32, imm uint64, m mxcsr) (uint32, mxcsr) {
	rc, quiet := roundControl(imm, m)
	r, fl := fpSingle.roundInt(uint64(x), rc, m)
	return uint32(r), fl &^ quiet
}

func roundpd(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.packed64(in, func(_, b uint64, m mxcsr) (uint64, mxcsr) { return round64(b, imm, m) })
}

func roundps(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.packed32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return round32(b, imm, m) })
}

func roundsd(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.scalar64(in, func(_, b uint64, m mxcsr) (uint64, mxcsr) { return round64(b, imm, m) })
}

func roundss(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.scalar32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return round32(b, imm, m) })
}
