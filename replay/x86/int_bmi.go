package x86

import "math/bits"

// BMI1 and BMI2. AF and PF are undefined: both vendors clear AF; AMD sets PF
// from the low byte of the result, Intel clears it. After BEXTR both clear SF,
// and AMD sets AF. Measured on AMD family 25 model 17, 2026-11-20, and on
// Intel family 6 model 207, 2026-11-21.

// bmiLogic stores r in register n and sets the flags, CF last.
func (c *CPU) bmiLogic(in *Inst, n uint8, r uint64, cf bool) {
	r = zeroExtend(r, in.Size)
	c.setIntReg(n, in.Size, true, r)
	c.logicFlags(r, in.Size)
	if !c.amd() && parityEven(r) {
		c.aux = auxPF
	}
	c.setCO(cf, false)
}

// vreg is the register in VEX.vvvv.
func (c *CPU) vreg(in *Inst) uint64 { return zeroExtend(c.R[in.VVVV&15], in.Size) }

func bmiAndn(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e == ExitNone {
		c.bmiLogic(in, in.Reg, ^c.vreg(in)&v, false)
	}
	return e
}

func bmiBlsr(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e == ExitNone {
		c.bmiLogic(in, in.VVVV, v&(v-1), v == 0)
	}
	return e
}

func bmiBlsmsk(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e == ExitNone {
		c.bmiLogic(in, in.VVVV, v^(v-1), v == 0)
	}
	return e
}

func bmiBlsi(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e == ExitNone {
		c.bmiLogic(in, in.VVVV, v&-v, v != 0)
	}
	return e
}

func bmiBextr(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	ctl := c.R[in.VVVV&15]
	start, n := ctl&0xff, ctl>>8&0xff
	r := uint64(0)
	if start < 64 {
		r = v >> start
	}
	if n < 64 {
		r &= 1<<n - 1
	}
	c.bmiLogic(in, in.Reg, r, false)
	f := c.arithFlags() &^ FlagSF
	if c.amd() {
		f |= FlagAF
	}
	c.setFlagsRaw(f)
	return ExitNone
}

func bmiBzhi(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	n := c.R[in.VVVV&15] & 0xff
	over := n >= 8*uint64(in.Size)
	if !over {
		v &= 1<<n - 1
	}
	c.bmiLogic(in, in.Reg, v, over)
	return ExitNone
}

func bmiPext(c *CPU, in *Inst) Exit {
	mask, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	var r uint64
	v := c.vreg(in)
	for i := 0; mask != 0; i++ {
		r |= v >> bits.TrailingZeros64(mask) & 1 << i
		mask &= mask - 1
	}
	c.setReg(in, r)
	return ExitNone
}

func bmiPdep(c *CPU, in *Inst) Exit {
	mask, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	var r uint64
	for v := c.vreg(in); mask != 0; v >>= 1 {
		r |= v & 1 << bits.TrailingZeros64(mask)
		mask &= mask - 1
	}
	c.setReg(in, r)
	return ExitNone
}

// bmiMulx multiplies by rdx; when both destinations are one register it holds
// the high half.
func bmiMulx(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	hi, lo := bits.Mul64(zeroExtend(c.R[RDX], in.Size), v)
	if in.Size == 4 {
		hi = lo >> 32
	}
	c.setIntReg(in.VVVV, in.Size, true, lo)
	c.setReg(in, hi)
	return ExitNone
}

// xshift is the source and the count of SARX, SHLX and SHRX.
func (c *CPU) xshift(in *Inst) (v uint64, n uint, e Exit) {
	v, e = c.rm(in, in.Size)
	return v, uint(c.R[in.VVVV&15]) & (8*uint(in.Size) - 1), e
}

func bmiSarx(c *CPU, in *Inst) Exit {
	v, n, e := c.xshift(in)
	if e == ExitNone {
		c.setReg(in, uint64(int64(signExtend(v, in.Size))>>n))
	}
	return e
}

func bmiShlx(c *CPU, in *Inst) Exit {
	v, n, e := c.xshift(in)
	if e == ExitNone {
		c.setReg(in, v<<n)
	}
	return e
}

func bmiShrx(c *CPU, in *Inst) Exit {
	v, n, e := c.xshift(in)
	if e == ExitNone {
		c.setReg(in, v>>n)
	}
	return e
}

func bmiRorx(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	w := 8 * uint(in.Size)
	n := uint(in.Imm) & (w - 1)
	c.setReg(in, rotl(v, (w-n)%w, w))
	return ExitNone
}
