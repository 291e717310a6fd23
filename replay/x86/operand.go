package x86

// Operands of an instruction: addresses, general registers of each size, register or
// memory as ModRM says (SDM vol. 1, 3.4.1 and 3.7). Handlers get at them by these.
// Accesses to memory by address are in mem.go, vectors of 256 bits in avx_core.go.

// ea returns the linear address of in's memory operand.
func (c *CPU) ea(in *Inst) uint64 {
	a := uint64(in.Disp)
	if in.Base < 16 {
		a += c.R[in.Base]
	}
	if in.Index < 16 {
		a += c.R[in.Index] << (in.Scale & 63)
	}
	if in.Flags&InstAddr32 != 0 {
		a = uint64(uint32(a))
	}
	if in.Seg != NoSeg {
		a = c.segment(in.Seg, a)
	}
	return a
}

// Address returns the linear address of in's memory operand, or what LEA makes of it, as
// the registers are now.
// Preconditions: in has one, and not a vector of addresses.
func (c *CPU) Address(in *Inst) uint64 { return c.ea(in) }

// inArea returns the address of byte n of the save area at a, the operand of in.
// With a 32-bit address it wraps at 4 GiB on Intel: the area's bytes are addressed
// each for itself, other than those of a vector.
func (c *CPU) inArea(in *Inst, a, n uint64) uint64 {
	if in.Flags&InstAddr32 == 0 || c.ID.Vendor != VendorIntel {
		return a + n
	}
	flat := *in
	flat.Seg = NoSeg
	e := c.ea(&flat)
	return a - e + uint64(uint32(e+n))
}

// segment adds the base of FS or GS. AMD faults already when the sum is of an
// address that is not canonical, so that one is returned as it is.
func (c *CPU) segment(seg uint8, a uint64) uint64 {
	if !canonical(a) && c.ID.Vendor == VendorAMD {
		return a
	}
	return a + c.segmentBase(seg)
}

func (c *CPU) segmentBase(seg uint8) uint64 {
	if seg == FS {
		return c.FSBase
	}
	return c.GSBase
}

// intReg returns general register n of size bytes, zero-extended. Without a
// REX prefix byte registers 4 to 7 are ah, ch, dh and bh.
func (c *CPU) intReg(n, size uint8, rex bool) uint64 {
	if size == 1 && !rex && n&^3 == 4 {
		return c.R[n&3] >> 8 & 0xff
	}
	return zeroExtend(c.R[n&15], size)
}

// setIntReg sets general register n: 4-byte writes clear the upper half,
// smaller ones keep the rest.
func (c *CPU) setIntReg(n, size uint8, rex bool, v uint64) {
	r := &c.R[n&15]
	switch size {
	case 8:
		*r = v
	case 4:
		*r = uint64(uint32(v))
	case 2:
		*r = *r&^0xffff | v&0xffff
	default:
		if !rex && n&^3 == 4 {
			r = &c.R[n&3]
			*r = *r&^0xff00 | v&0xff<<8
			return
		}
		*r = *r&^0xff | v&0xff
	}
}

// loadN loads size bytes (1, 2, 4 or 8), zero-extended.
func (c *CPU) loadN(a uint64, size uint8) (uint64, Exit) {
	switch size {
	case 8:
		return c.load64(a)
	case 4:
		v, e := c.load32(a)
		return uint64(v), e
	case 2:
		v, e := c.load16(a)
		return uint64(v), e
	default:
		v, e := c.load8(a)
		return uint64(v), e
	}
}

// storeN stores the low size bytes (1, 2, 4 or 8) of v.
func (c *CPU) storeN(a uint64, size uint8, v uint64) Exit {
	switch size {
	case 8:
		return c.store64(a, v)
	case 4:
		return c.store32(a, uint32(v))
	case 2:
		return c.store16(a, uint16(v))
	default:
		return c.store8(a, uint8(v))
	}
}

// rex reports whether the byte registers 4 to 7 are spl, bpl, sil and dil.
func (in *Inst) rex() bool { return in.Flags&InstREX != 0 }

// reg returns the ModRM.reg (or opcode) register, zero-extended from in.Size.
func (c *CPU) reg(in *Inst) uint64 { return c.intReg(in.Reg, in.Size, in.rex()) }

// setReg sets the ModRM.reg (or opcode) register.
func (c *CPU) setReg(in *Inst, v uint64) { c.setIntReg(in.Reg, in.Size, in.rex(), v) }

// rm returns the r/m operand, zero-extended from size bytes.
func (c *CPU) rm(in *Inst, size uint8) (uint64, Exit) {
	if in.Flags&InstMem != 0 {
		return c.loadN(c.ea(in), size)
	}
	return c.intReg(in.RM, size, in.rex()), ExitNone
}

// setRM stores the r/m operand of size bytes.
func (c *CPU) setRM(in *Inst, size uint8, v uint64) Exit {
	if in.Flags&InstMem != 0 {
		return c.storeN(c.ea(in), size, v)
	}
	c.setIntReg(in.RM, size, in.rex(), v)
	return ExitNone
}

// vecRM128 returns the xmm/m128 operand. With aligned an address that is no
// multiple of 16 raises #GP, as legacy SSE does.
func (c *CPU) vecRM128(in *Inst, aligned bool) (lo, hi uint64, e Exit) {
	if in.Flags&InstMem == 0 {
		v := &c.V[in.RM&15]
		return v[0], v[1], ExitNone
	}
	a := c.ea(in)
	if aligned && a&15 != 0 {
		return 0, 0, c.gp()
	}
	return c.load128(a)
}

// vecRM64 returns the low quadword of an xmm register, or m64.
func (c *CPU) vecRM64(in *Inst) (uint64, Exit) {
	if in.Flags&InstMem == 0 {
		return c.V[in.RM&15][0], ExitNone
	}
	return c.load64(c.ea(in))
}

// vecRM32 returns the low doubleword of an xmm register, or m32.
func (c *CPU) vecRM32(in *Inst) (uint32, Exit) {
	if in.Flags&InstMem == 0 {
		return uint32(c.V[in.RM&15][0]), ExitNone
	}
	return c.load32(c.ea(in))
}
