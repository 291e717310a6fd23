package x86

// The VEX-encoded forms share the lane arithmetic of the legacy ones. What
// differs: the first source is VEX.vvvv, a 128-bit form clears the upper half
// of its destination, a 256-bit form (VEX.L) works on two 128-bit lanes, and
// memory operands need no alignment but for the aligned moves.

// isWide says whether the form works on 256 bits.
func isWide(in *Inst) bool { return in.Flags&InstL != 0 }

// load256 reads 32 bytes.
func (c *CPU) load256(a uint64) (v Vec, e Exit) {
	if v[0], v[1], e = c.load128(a); e != ExitNone {
		if f := c.checkCanonical(a, 32, Load); f != ExitNone {
			return v, f // before the page fault of the first half
		}
		return v, e
	}
	v[2], v[3], e = c.load128(a + 16)
	return v, e
}

// store256 writes 32 bytes: all of them, or none and a fault.
func (c *CPU) store256(a uint64, v *Vec) Exit {
	if a&(pageSize-1) > pageSize-32 {
		if e := c.probe(a, 32, Store); e != ExitNone {
			return e
		}
	}
	if e := c.store128(a, v[0], v[1]); e != ExitNone {
		return e
	}
	return c.store128(a+16, v[2], v[3])
}

// vexMem reads 16 or 32 bytes at a.
func (c *CPU) vexMem(in *Inst, a uint64) (v Vec, e Exit) {
	if isWide(in) {
		return c.load256(a)
	}
	v[0], v[1], e = c.load128(a)
	return v, e
}

// vexRM returns the ymm/m256 operand, or xmm/m128 with the upper half zero.
func (c *CPU) vexRM(in *Inst) (Vec, Exit) {
	if isMem(in) {
		return c.vexMem(in, c.ea(in))
	}
	v := c.V[in.RM&15]
	if !isWide(in) {
		v[2], v[3] = 0, 0
	}
	return v, ExitNone
}

// setVex writes the destination, its upper half as zeros in a 128-bit form.
func (c *CPU) setVex(in *Inst, r Vec) {
	if !isWide(in) {
		r[2], r[3] = 0, 0
	}
	c.V[in.Reg&15] = r
}

// vexOp applies f to each quadword of the sources.
func (c *CPU) vexOp(in *Inst, f func(a, b uint64) uint64) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r := Vec{f(a[0], b[0]), f(a[1], b[1])}
	if isWide(in) {
		r[2], r[3] = f(a[2], b[2]), f(a[3], b[3])
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

// vexThree applies f to each quadword of the destination and the sources.
func (c *CPU) vexThree(in *Inst, f func(d, a, b uint64) uint64) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	d, a := &c.V[in.Reg&15], &c.V[in.VVVV&15]
	c.setVex(in, Vec{f(d[0], a[0], b[0]), f(d[1], a[1], b[1]), f(d[2], a[2], b[2]), f(d[3], a[3], b[3])})
	return ExitNone
}

// vexMap applies f to each quadword of the only source.
func (c *CPU) vexMap(in *Inst, f func(b uint64) uint64) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	c.setVex(in, Vec{f(b[0]), f(b[1]), f(b[2]), f(b[3])})
	return ExitNone
}

// vexLanes applies f to each 128-bit lane; the upper lane sees the immediate
// shifted right by shift.
func (c *CPU) vexLanes(in *Inst, f pairOp, shift uint) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	imm := in.Imm & 0xff
	lo := f(pair{a[0], a[1]}, pair{b[0], b[1]}, imm)
	r := Vec{lo[0], lo[1]}
	if isWide(in) {
		hi := f(pair{a[2], a[3]}, pair{b[2], b[3]}, imm>>shift)
		r[2], r[3] = hi[0], hi[1]
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

// vexCommit writes the result of arithmetic unless its flags raise #XM.
func (c *CPU) vexCommit(in *Inst, r Vec, fl mxcsr) Exit {
	if fl != 0 {
		if e := c.raise(fl); e != ExitNone {
			return e
		}
	}
	c.setVex(in, r)
	return ExitNone
}

// vexPacked64 and vexPacked32 apply f to the lanes of both sources.
func (c *CPU) vexPacked64(in *Inst, f fpOp64) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a, m := &c.V[in.VVVV&15], mxcsr(c.MXCSR)
	var r Vec
	var fl mxcsr
	for i := range vexQuads(in) {
		x, fx := f(a[i], b[i], m)
		r[i], fl = x, fl|fx
	}
	return c.vexCommit(in, r, fl)
}

func (c *CPU) vexPacked32(in *Inst, f fpOp32) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a, m := &c.V[in.VVVV&15], mxcsr(c.MXCSR)
	var r Vec
	var fl mxcsr
	for i := range vexQuads(in) {
		x, fx := pair32(a[i], b[i], f, m)
		r[i], fl = x, fl|fx
	}
	return c.vexCommit(in, r, fl)
}

// vexQuads is the number of quadwords of the form: 2 or 4.
func vexQuads(in *Inst) int {
	if isWide(in) {
		return 4
	}
	return 2
}

// vexScalar64 and vexScalar32 compute the lowest lane; the rest of the lower
// half comes from the first source.
func (c *CPU) vexScalar64(in *Inst, f fpOp64) Exit {
	b, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r, fl := f(a[0], b, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{r, a[1]}, fl)
}

func (c *CPU) vexScalar32(in *Inst, f fpOp32) Exit {
	b, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r, fl := f(uint32(a[0]), b, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{a[0]&^0xffffffff | uint64(r), a[1]}, fl)
}

// vexLow writes a 128-bit result, with the upper half zero whatever VEX.L,
// unless its flags raise #XM.
func (c *CPU) vexLow(in *Inst, r pair, fl mxcsr) Exit {
	if fl != 0 {
		if e := c.raise(fl); e != ExitNone {
			return e
		}
	}
	c.V[in.Reg&15] = Vec{r[0], r[1]}
	return ExitNone
}
