package x86

// MMX: eight 64-bit registers that are the significands of the x87 data
// registers by physical number. Every MMX instruction but EMMS makes the x87
// stack full with TOP 0, and one that writes a register sets the sign and
// exponent above it to ones. A pending x87 exception is raised first, before
// any memory access (SDM vol. 1, 9.6; vol. 3, 12.1).

// mmxReady raises a pending x87 exception.
func (c *CPU) mmxReady() Exit {
	if c.FPU.Pending() {
		return c.fault(FaultMF, c.RIP)
	}
	return ExitNone
}

// mmxSrc returns the mm/m64 operand, after mmxReady.
func (c *CPU) mmxSrc(in *Inst) (uint64, Exit) {
	if e := c.mmxReady(); e != ExitNone {
		return 0, e
	}
	if isMem(in) {
		return c.load64(c.ea(in))
	}
	return c.FPU.MMX(in.RM), ExitNone
}

// setMMX enters MMX state and writes register n.
func (c *CPU) setMMX(n uint8, v uint64) {
	c.FPU.EnterMMX()
	c.FPU.SetMMX(n, v)
}

// mmxOp sets the destination to f of destination and source.
func (c *CPU) mmxOp(in *Inst, f func(a, b uint64) uint64) Exit {
	b, e := c.mmxSrc(in)
	if e != ExitNone {
		return e
	}
	c.setMMX(in.Reg, f(c.FPU.MMX(in.Reg), b))
	return ExitNone
}

// mmxShiftImm shifts the register in ModRM.rm by the immediate.
func (c *CPU) mmxShiftImm(in *Inst, f func(a, n uint64) uint64) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	c.setMMX(in.RM, f(c.FPU.MMX(in.RM), in.Imm&0xff))
	return ExitNone
}

func mmxPsllw(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneShlW) }
func mmxPslld(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneShlD) }
func mmxPsllq(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneShlQ) }
func mmxPsrlw(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneShrW) }
func mmxPsrld(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneShrD) }
func mmxPsrlq(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneShrQ) }
func mmxPsraw(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneSarW) }
func mmxPsrad(c *CPU, in *Inst) Exit { return c.mmxOp(in, laneSarD) }

func mmxPsllwImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneShlW) }
func mmxPslldImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneShlD) }
func mmxPsllqImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneShlQ) }
func mmxPsrlwImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneShrW) }
func mmxPsrldImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneShrD) }
func mmxPsrlqImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneShrQ) }
func mmxPsrawImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneSarW) }
func mmxPsradImm(c *CPU, in *Inst) Exit { return c.mmxShiftImm(in, laneSarD) }

// mmxUnpackLow interleaves low halves; from memory only 32 bits are read.
func (c *CPU) mmxUnpackLow(in *Inst, f func(a, b uint64) uint64) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	b := c.FPU.MMX(in.RM)
	if isMem(in) {
		d, e := c.load32(c.ea(in))
		if e != ExitNone {
			return e
		}
		b = uint64(d)
	}
	c.setMMX(in.Reg, f(c.FPU.MMX(in.Reg), b))
	return ExitNone
}

func mmxPunpcklbw(c *CPU, in *Inst) Exit { return c.mmxUnpackLow(in, interleaveB) }
func mmxPunpcklwd(c *CPU, in *Inst) Exit { return c.mmxUnpackLow(in, interleaveW) }
func mmxPunpckldq(c *CPU, in *Inst) Exit { return c.mmxUnpackLow(in, dwords) }

func mmxPunpckhbw(c *CPU, in *Inst) Exit {
	return c.mmxOp(in, func(a, b uint64) uint64 { return interleaveB(a>>32, b>>32) })
}

func mmxPunpckhwd(c *CPU, in *Inst) Exit {
	return c.mmxOp(in, func(a, b uint64) uint64 { return interleaveW(a>>32, b>>32) })
}

func mmxPunpckhdq(c *CPU, in *Inst) Exit {
	return c.mmxOp(in, func(a, b uint64) uint64 { return dwords(a>>32, b>>32) })
}

// mmxPack joins what f makes of the destination and of the source, 32 bits each.
func (c *CPU) mmxPack(in *Inst, f func(q uint64) uint64) Exit {
	return c.mmxOp(in, func(a, b uint64) uint64 { return f(a) | f(b)<<32 })
}

func mmxPacksswb(c *CPU, in *Inst) Exit { return c.mmxPack(in, packSSWB) }
func mmxPackuswb(c *CPU, in *Inst) Exit { return c.mmxPack(in, packUSWB) }
func mmxPackssdw(c *CPU, in *Inst) Exit { return c.mmxPack(in, packSSDW) }
func mmxPhaddw(c *CPU, in *Inst) Exit   { return c.mmxPack(in, haddW) }
func mmxPhaddd(c *CPU, in *Inst) Exit   { return c.mmxPack(in, haddD) }
func mmxPhaddsw(c *CPU, in *Inst) Exit  { return c.mmxPack(in, haddSW) }
func mmxPhsubw(c *CPU, in *Inst) Exit   { return c.mmxPack(in, hsubW) }
func mmxPhsubd(c *CPU, in *Inst) Exit   { return c.mmxPack(in, hsubD) }
func mmxPhsubsw(c *CPU, in *Inst) Exit  { return c.mmxPack(in, hsubSW) }

func mmxPshufb(c *CPU, in *Inst) Exit { return c.mmxOp(in, shuffleB8) }

func mmxPshufw(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.mmxOp(in, func(_, b uint64) uint64 { return shuffleW(b, imm) })
}

func mmxPalignr(c *CPU, in *Inst) Exit {
	n := min(in.Imm&0xff, 16) * 8
	return c.mmxOp(in, func(a, b uint64) uint64 {
		r, _ := shiftRight128(b, a, n)
		return r
	})
}

// mmxMovd is MOVD and MOVQ from a general register or memory.
func mmxMovd(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	x, e := c.gpSrcW(in)
	if e != ExitNone {
		return e
	}
	if in.Flags&InstW == 0 {
		x = int64(uint32(x))
	}
	c.setMMX(in.Reg, uint64(x))
	return ExitNone
}

// mmxMovdStore is MOVD and MOVQ to a general register or memory.
func mmxMovdStore(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	return c.mmxStored(c.gpDest(in, c.FPU.MMX(in.Reg)))
}

// mmxStored enters MMX state after a store that ended with e. Where it faults
// Intel has cleared TOP by then and AMD has changed nothing.
func (c *CPU) mmxStored(e Exit) Exit {
	switch {
	case e == ExitNone:
		c.FPU.EnterMMX()
	case !c.amd():
		c.FPU.Top = 0
	}
	return e
}

func mmxMovq(c *CPU, in *Inst) Exit {
	return c.mmxOp(in, func(_, b uint64) uint64 { return b })
}

// mmxMovqStore is MOVQ to a register or memory, and MOVNTQ.
func mmxMovqStore(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	x := c.FPU.MMX(in.Reg)
	if !isMem(in) {
		c.setMMX(in.RM, x)
		return ExitNone
	}
	return c.mmxStored(c.store64(c.ea(in), x))
}

func movq2dq(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = c.FPU.MMX(in.RM), 0
	c.FPU.EnterMMX()
	return ExitNone
}

func movdq2q(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	c.setMMX(in.Reg, c.V[in.RM&15][0])
	return ExitNone
}

func mmxPmovmskb(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	c.R[in.Reg&15] = moveMask8(c.FPU.MMX(in.RM))
	c.FPU.EnterMMX()
	return ExitNone
}

func mmxPextrw(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	c.R[in.Reg&15] = c.FPU.MMX(in.RM) >> (in.Imm & 3 * 16) & 0xffff
	c.FPU.EnterMMX()
	return ExitNone
}

func mmxPinsrw(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	x, e := uint16(c.R[in.RM&15]), ExitNone
	if isMem(in) {
		x, e = c.load16(c.ea(in))
	}
	if e != ExitNone {
		return e
	}
	n := in.Imm & 3 * 16
	c.setMMX(in.Reg, c.FPU.MMX(in.Reg)&^(0xffff<<n)|uint64(x)<<n)
	return ExitNone
}

func maskmovq(c *CPU, in *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	var b [16]byte
	putVec(&b, c.FPU.MMX(in.Reg), 0)
	c.FPU.EnterMMX() // even when the store faults, as seen on AMD and Intel
	return c.maskMove(in, b[:8], moveMask8(c.FPU.MMX(in.RM)))
}

func emms(c *CPU, _ *Inst) Exit {
	if e := c.mmxReady(); e != ExitNone {
		return e
	}
	c.FPU.EMMS()
	return ExitNone
}
