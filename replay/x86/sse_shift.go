package x86

// Shifts of XMM lanes: by the low quadword of the source, which counts as one
// unsigned number however large, or by an immediate.

// vecShift shifts the lanes of the destination by the source's low quadword.
func (c *CPU) vecShift(in *Inst, f func(a, n uint64) uint64) Exit {
	n, _, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = f(v[0], n), f(v[1], n)
	return ExitNone
}

// vecShiftImm shifts the lanes of the register in ModRM.rm by the immediate.
func (c *CPU) vecShiftImm(in *Inst, f func(a, n uint64) uint64) Exit {
	n := in.Imm & 0xff
	v := &c.V[in.RM&15]
	v[0], v[1] = f(v[0], n), f(v[1], n)
	return ExitNone
}

func psllw(c *CPU, in *Inst) Exit { return c.vecShift(in, laneShlW) }
func pslld(c *CPU, in *Inst) Exit { return c.vecShift(in, laneShlD) }
func psllq(c *CPU, in *Inst) Exit { return c.vecShift(in, laneShlQ) }
func psrlw(c *CPU, in *Inst) Exit { return c.vecShift(in, laneShrW) }
func psrld(c *CPU, in *Inst) Exit { return c.vecShift(in, laneShrD) }
func psrlq(c *CPU, in *Inst) Exit { return c.vecShift(in, laneShrQ) }
func psraw(c *CPU, in *Inst) Exit { return c.vecShift(in, laneSarW) }
func psrad(c *CPU, in *Inst) Exit { return c.vecShift(in, laneSarD) }

func psllwImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneShlW) }
func pslldImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneShlD) }
func psllqImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneShlQ) }
func psrlwImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneShrW) }
func psrldImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneShrD) }
func psrlqImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneShrQ) }
func psrawImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneSarW) }
func psradImm(c *CPU, in *Inst) Exit { return c.vecShiftImm(in, laneSarD) }

// psrldq shifts the whole register right by bytes, pslldq left.
func psrldq(c *CPU, in *Inst) Exit {
	v := &c.V[in.RM&15]
	v[0], v[1] = shiftRight128(v[0], v[1], min(in.Imm&0xff, 16)*8)
	return ExitNone
}

func pslldq(c *CPU, in *Inst) Exit {
	v := &c.V[in.RM&15]
	v[0], v[1] = shiftLeft128(v[0], v[1], min(in.Imm&0xff, 16)*8)
	return ExitNone
}
