package x86

// Integer operations on XMM registers that work inside each quadword: the
// arithmetic is that of sse_lane.go. The handful that libc's string functions
// run everywhere are written out; the others share vecOp.

// vecSrc reads the 128-bit second source of a legacy SSE instruction. In memory
// it must be aligned to 16 bytes, unless AMD's MXCSR.MM is set (#GP).
func (c *CPU) vecSrc(in *Inst) (lo, hi uint64, e Exit) {
	return c.vecRM128(in, mxcsr(c.MXCSR)&mxMM == 0)
}

// vecOp applies f to both quadwords of the destination and the source.
func (c *CPU) vecOp(in *Inst, f func(a, b uint64) uint64) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = f(v[0], lo), f(v[1], hi)
	return ExitNone
}

// vecMap sets the destination to f of both quadwords of the source.
func (c *CPU) vecMap(in *Inst, f func(b uint64) uint64) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = f(lo), f(hi)
	return ExitNone
}

func paddb(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = laneAddB(v[0], lo), laneAddB(v[1], hi)
	return ExitNone
}

func paddd(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = laneAddD(v[0], lo), laneAddD(v[1], hi)
	return ExitNone
}

func paddq(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = laneAddQ(v[0], lo), laneAddQ(v[1], hi)
	return ExitNone
}

func psubb(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = laneSubB(v[0], lo), laneSubB(v[1], hi)
	return ExitNone
}

func pcmpeqb(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = laneEqB(v[0], lo), laneEqB(v[1], hi)
	return ExitNone
}

func pcmpeqd(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = laneEqD(v[0], lo), laneEqD(v[1], hi)
	return ExitNone
}

func pminub(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = laneMinUB(v[0], lo), laneMinUB(v[1], hi)
	return ExitNone
}

func pand(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = v[0]&lo, v[1]&hi
	return ExitNone
}

func pandn(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = ^v[0]&lo, ^v[1]&hi
	return ExitNone
}

func por(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = v[0]|lo, v[1]|hi
	return ExitNone
}

func pxor(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = v[0]^lo, v[1]^hi
	return ExitNone
}

func paddw(c *CPU, in *Inst) Exit     { return c.vecOp(in, laneAddW) }
func psubw(c *CPU, in *Inst) Exit     { return c.vecOp(in, laneSubW) }
func psubd(c *CPU, in *Inst) Exit     { return c.vecOp(in, laneSubD) }
func psubq(c *CPU, in *Inst) Exit     { return c.vecOp(in, laneSubQ) }
func paddsb(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneAddSB) }
func paddsw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneAddSW) }
func paddusb(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneAddUSB) }
func paddusw(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneAddUSW) }
func psubsb(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneSubSB) }
func psubsw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneSubSW) }
func psubusb(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneSubUSB) }
func psubusw(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneSubUSW) }
func pcmpeqw(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneEqW) }
func pcmpeqq(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneEqQ) }
func pcmpgtb(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneGtB) }
func pcmpgtw(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneGtW) }
func pcmpgtd(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneGtD) }
func pcmpgtq(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneGtQ) }
func pminuw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMinUW) }
func pminud(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMinUD) }
func pminsb(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMinSB) }
func pminsw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMinSW) }
func pminsd(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMinSD) }
func pmaxub(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMaxUB) }
func pmaxuw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMaxUW) }
func pmaxud(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMaxUD) }
func pmaxsb(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMaxSB) }
func pmaxsw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMaxSW) }
func pmaxsd(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMaxSD) }
func pavgb(c *CPU, in *Inst) Exit     { return c.vecOp(in, laneAvgB) }
func pavgw(c *CPU, in *Inst) Exit     { return c.vecOp(in, laneAvgW) }
func psadbw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneSad) }
func pmullw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMulLW) }
func pmulhw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMulHW) }
func pmulhuw(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneMulHUW) }
func pmulhrsw(c *CPU, in *Inst) Exit  { return c.vecOp(in, laneMulHRSW) }
func pmulld(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMulLD) }
func pmuludq(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneMulUDQ) }
func pmuldq(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneMulDQ) }
func pmaddwd(c *CPU, in *Inst) Exit   { return c.vecOp(in, laneMaddWD) }
func pmaddubsw(c *CPU, in *Inst) Exit { return c.vecOp(in, laneMaddUBSW) }
func psignb(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneSignB) }
func psignw(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneSignW) }
func psignd(c *CPU, in *Inst) Exit    { return c.vecOp(in, laneSignD) }

func pabsb(c *CPU, in *Inst) Exit { return c.vecMap(in, laneAbsB) }
func pabsw(c *CPU, in *Inst) Exit { return c.vecMap(in, laneAbsW) }
func pabsd(c *CPU, in *Inst) Exit { return c.vecMap(in, laneAbsD) }
