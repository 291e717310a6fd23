package x86

// VEX shifts: by the low quadword of a 128-bit operand, by an immediate, by
// bytes within 128-bit lanes, and by a count for each lane.

// vexShift shifts all lanes of the first source by one count.
func (c *CPU) vexShift(in *Inst, f func(a, n uint64) uint64) Exit {
	n, _, e := c.vecRM128(in, false)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	c.setVex(in, Vec{f(a[0], n), f(a[1], n), f(a[2], n), f(a[3], n)})
	return ExitNone
}

// setVexVVVV writes the destination of the forms that name it in VEX.vvvv.
func (c *CPU) setVexVVVV(in *Inst, r Vec) {
	if !isWide(in) {
		r[2], r[3] = 0, 0
	}
	c.V[in.VVVV&15] = r
}

func (c *CPU) vexShiftImm(in *Inst, f func(a, n uint64) uint64) Exit {
	a, n := &c.V[in.RM&15], in.Imm&0xff
	c.setVexVVVV(in, Vec{f(a[0], n), f(a[1], n), f(a[2], n), f(a[3], n)})
	return ExitNone
}

func vpsrldq(c *CPU, in *Inst) Exit {
	a, n := &c.V[in.RM&15], min(in.Imm&0xff, 16)*8
	var r Vec
	r[0], r[1] = shiftRight128(a[0], a[1], n)
	r[2], r[3] = shiftRight128(a[2], a[3], n)
	c.setVexVVVV(in, r)
	return ExitNone
}

func vpslldq(c *CPU, in *Inst) Exit {
	a, n := &c.V[in.RM&15], min(in.Imm&0xff, 16)*8
	var r Vec
	r[0], r[1] = shiftLeft128(a[0], a[1], n)
	r[2], r[3] = shiftLeft128(a[2], a[3], n)
	c.setVexVVVV(in, r)
	return ExitNone
}

func vpsllvd(c *CPU, in *Inst) Exit {
	return c.vexOp(in, func(a, b uint64) uint64 {
		return uint64(uint32(a)<<uint32(b)) | uint64(uint32(a>>32)<<(b>>32))<<32
	})
}

func vpsrlvd(c *CPU, in *Inst) Exit {
	return c.vexOp(in, func(a, b uint64) uint64 {
		return uint64(uint32(a)>>uint32(b)) | uint64(uint32(a>>32)>>(b>>32))<<32
	})
}

func vpsravd(c *CPU, in *Inst) Exit {
	return c.vexOp(in, func(a, b uint64) uint64 {
		return dwords(uint64(int32(a)>>uint32(b)), uint64(int32(a>>32)>>(b>>32)))
	})
}

func vpsllvq(c *CPU, in *Inst) Exit {
	return c.vexOp(in, func(a, b uint64) uint64 { return a << b })
}

func vpsrlvq(c *CPU, in *Inst) Exit {
	return c.vexOp(in, func(a, b uint64) uint64 { return a >> b })
}

func vpsrlw(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneShrW) }
func vpsrlwImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneShrW) }
func vpsrld(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneShrD) }
func vpsrldImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneShrD) }
func vpsrlq(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneShrQ) }
func vpsrlqImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneShrQ) }
func vpsraw(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneSarW) }
func vpsrawImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneSarW) }
func vpsrad(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneSarD) }
func vpsradImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneSarD) }
func vpsllw(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneShlW) }
func vpsllwImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneShlW) }
func vpslld(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneShlD) }
func vpslldImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneShlD) }
func vpsllq(c *CPU, in *Inst) Exit    { return c.vexShift(in, laneShlQ) }
func vpsllqImm(c *CPU, in *Inst) Exit { return c.vexShiftImm(in, laneShlQ) }
