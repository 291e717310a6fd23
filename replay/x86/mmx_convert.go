package x86

// Conversions between MMX and XMM registers. They put the x87 unit into MMX
// state, even when they raise #XM, but for CVTPI2PS and CVTPI2PD from memory
// (measured on AMD and Intel; SDM vol. 2A, CVTPI2PS, says otherwise).

// pi2Src returns the operand of CVTPI2PS and CVTPI2PD; from memory, the x87
// unit is neither looked at nor changed.
func (c *CPU) pi2Src(in *Inst) (uint64, Exit) {
	if isMem(in) {
		return c.load64(c.ea(in))
	}
	b, e := c.mmxSrc(in)
	if e == ExitNone {
		c.FPU.EnterMMX()
	}
	return b, e
}

func cvtpi2ps(c *CPU, in *Inst) Exit {
	b, e := c.pi2Src(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	r0, f0 := int32Single(uint32(b), m)
	r1, f1 := int32Single(uint32(b>>32), m)
	if e := c.raise(f0 | f1); e != ExitNone {
		return e
	}
	c.V[in.Reg&15][0] = uint64(r0) | uint64(r1)<<32
	return ExitNone
}

func cvtpi2pd(c *CPU, in *Inst) Exit {
	b, e := c.pi2Src(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = int32Double(uint32(b)), int32Double(uint32(b>>32))
	return ExitNone
}

// setConverted writes an MMX register from two lanes and their flags.
func (c *CPU) setConverted(in *Inst, r0, r1 uint32, fl mxcsr) Exit {
	c.FPU.EnterMMX()
	if e := c.raise(fl); e != ExitNone {
		return e
	}
	c.FPU.SetMMX(in.Reg, uint64(r0)|uint64(r1)<<32)
	return ExitNone
}

func (c *CPU) singlesToMMX(in *Inst, rc uint8) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	q, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	r0, f0 := single32(uint32(q), rc, m)
	r1, f1 := single32(uint32(q>>32), rc, m)
	return c.setConverted(in, r0, r1, f0|f1)
}

func (c *CPU) doublesToMMX(in *Inst, rc uint8) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	r0, f0 := double32(lo, rc, m)
	r1, f1 := double32(hi, rc, m)
	return c.setConverted(in, r0, r1, f0|f1)
}

func cvtps2pi(c *CPU, in *Inst) Exit  { return c.singlesToMMX(in, mxcsr(c.MXCSR).rc()) }
func cvttps2pi(c *CPU, in *Inst) Exit { return c.singlesToMMX(in, rcZero) }
func cvtpd2pi(c *CPU, in *Inst) Exit  { return c.doublesToMMX(in, mxcsr(c.MXCSR).rc()) }
func cvttpd2pi(c *CPU, in *Inst) Exit { return c.doublesToMMX(in, rcZero) }
