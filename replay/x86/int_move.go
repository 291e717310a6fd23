package x86

// Moves, conversions and exchanges.

func intMovStore(c *CPU, in *Inst) Exit { return c.setRM(in, in.Size, c.reg(in)) }
func intMovImm(c *CPU, in *Inst) Exit   { return c.setRM(in, in.Size, in.Imm) }

func intMovLoad(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e == ExitNone {
		c.setReg(in, v)
	}
	return e
}

func intMovRegImm(c *CPU, in *Inst) Exit {
	c.setReg(in, in.Imm)
	return ExitNone
}

func intMovAccMem(c *CPU, in *Inst) Exit {
	v, e := c.loadN(c.ea(in), in.Size)
	if e == ExitNone {
		c.setIntReg(RAX, in.Size, true, v)
	}
	return e
}

func intMovMemAcc(c *CPU, in *Inst) Exit { return c.storeN(c.ea(in), in.Size, c.R[RAX]) }

func intMovsxd(c *CPU, in *Inst) Exit {
	if in.Size == 2 { // an alias of MOV r16, r/m16
		n := uint8(2)
		if c.ID.Vendor == VendorAMD && in.Flags&InstMem != 0 {
			n = 4 // reads four bytes all the same (measured 2026-11-20)
		}
		v, e := c.rm(in, n)
		if e == ExitNone {
			c.setReg(in, v)
		}
		return e
	}
	v, e := c.rm(in, 4)
	if e == ExitNone {
		c.setReg(in, signExtend(v, 4))
	}
	return e
}

// narrowSize is the source size of MOVZX and MOVSX.
func narrowSize(in *Inst) uint8 { return 1 + in.Opc&1 }

func intMovzx(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, narrowSize(in))
	if e == ExitNone {
		c.setReg(in, v)
	}
	return e
}

func intMovsx(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, narrowSize(in))
	if e == ExitNone {
		c.setReg(in, signExtend(v, narrowSize(in)))
	}
	return e
}

// intLea ignores segment bases.
func intLea(c *CPU, in *Inst) Exit {
	plain := *in
	plain.Seg = NoSeg
	c.setReg(in, c.ea(&plain))
	return ExitNone
}

func intXchg(c *CPU, in *Inst) Exit {
	v, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	if e = c.setRM(in, in.Size, c.reg(in)); e == ExitNone {
		c.setReg(in, v)
	}
	return e
}

// intXchgAcc is XCHG rAX, reg; with rAX itself it is NOP, which leaves the
// upper half alone. F3 90 is PAUSE: on Intel with REX.B too, on AMD that is
// XCHG rAX, r8 all the same (measured 2026-11-21 and 2026-11-20).
func intXchgAcc(c *CPU, in *Inst) Exit {
	if in.Reg == RAX || in.Reg&7 == RAX && in.Flags&InstRep != 0 && !c.amd() {
		return ExitNone
	}
	a, b := c.intReg(RAX, in.Size, true), c.reg(in)
	c.setIntReg(RAX, in.Size, true, b)
	c.setReg(in, a)
	return ExitNone
}

func intCbw(c *CPU, in *Inst) Exit {
	c.setIntReg(RAX, in.Size, true, signExtend(c.R[RAX], in.Size/2))
	return ExitNone
}

func intCwd(c *CPU, in *Inst) Exit {
	c.setIntReg(RDX, in.Size, true, uint64(int64(signExtend(c.R[RAX], in.Size))>>63))
	return ExitNone
}

func intXlat(c *CPU, in *Inst) Exit {
	at := *in
	at.Base, at.Index, at.Disp = RBX, NoReg, int64(c.R[RAX]&0xff)
	v, e := c.load8(c.ea(&at))
	if e == ExitNone {
		c.setIntReg(RAX, 1, true, uint64(v))
	}
	return e
}

// intCmov loads its source even when the condition is false, and then still
// clears the upper half of a 32-bit destination.
func intCmov(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	if !c.cond(in.Opc & 15) {
		v = c.reg(in)
	}
	c.setReg(in, v)
	return ExitNone
}

func intSetcc(c *CPU, in *Inst) Exit {
	var v uint64
	if c.cond(in.Opc & 15) {
		v = 1
	}
	return c.setRM(in, 1, v)
}

// intCmpxchg writes its destination in either case. A 32-bit comparison that
// fails clears the upper half of rax and leaves that of a register destination.
func intCmpxchg(c *CPU, in *Inst) Exit {
	d, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	acc := zeroExtend(c.R[RAX], in.Size)
	if acc == d {
		e = c.setRM(in, in.Size, c.reg(in))
	} else {
		if in.Flags&InstMem != 0 {
			e = c.setRM(in, in.Size, d)
		}
		if e == ExitNone {
			c.setIntReg(RAX, in.Size, true, d)
		}
	}
	if e == ExitNone {
		c.subFlags(acc, d, acc-d, in.Size)
	}
	return e
}

// setZF replaces ZF and keeps the other flags.
func (c *CPU) setZF(zf bool) {
	f := c.arithFlags() &^ FlagZF
	if zf {
		f |= FlagZF
	}
	c.setFlagsRaw(f)
}

func intCmpxchg8b(c *CPU, in *Inst) Exit {
	a := c.ea(in)
	if e := c.probe(a, 8, Store); e != ExitNone {
		return e
	}
	v, e := c.load64(a)
	if e != ExitNone {
		return e
	}
	equal := v == c.R[RDX]<<32|c.R[RAX]&0xffffffff
	w := v
	if equal {
		w = c.R[RCX]<<32 | c.R[RBX]&0xffffffff
	}
	if e = c.store64(a, w); e != ExitNone {
		return e
	}
	if !equal {
		c.R[RAX], c.R[RDX] = v&0xffffffff, v>>32
	}
	c.setZF(equal)
	return ExitNone
}

// intCmpxchg16b needs an address that is a multiple of 16.
func intCmpxchg16b(c *CPU, in *Inst) Exit {
	a := c.ea(in)
	if a&15 != 0 {
		return c.gp()
	}
	if e := c.probe(a, 16, Store); e != ExitNone {
		return e
	}
	lo, hi, e := c.load128(a)
	if e != ExitNone {
		return e
	}
	equal := lo == c.R[RAX] && hi == c.R[RDX]
	l, h := lo, hi
	if equal {
		l, h = c.R[RBX], c.R[RCX]
	}
	if e = c.store128(a, l, h); e != ExitNone {
		return e
	}
	if !equal {
		c.R[RAX], c.R[RDX] = lo, hi
	}
	c.setZF(equal)
	return ExitNone
}

// intXadd: with the same register twice the sum wins.
func intXadd(c *CPU, in *Inst) Exit {
	d, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	s := c.reg(in)
	r := d + s
	if in.Flags&InstMem != 0 {
		if e = c.storeN(c.ea(in), in.Size, r); e != ExitNone {
			return e
		}
		c.setReg(in, d)
	} else {
		c.setReg(in, d)
		c.setIntReg(in.RM, in.Size, in.rex(), r)
	}
	c.addFlags(d, s, r, in.Size)
	return ExitNone
}

// intMovFromSeg: a register destination is zero-extended, memory gets 16 bits.
func intMovFromSeg(c *CPU, in *Inst) Exit {
	n := in.Reg & 7
	if n > GS {
		return c.ud()
	}
	v := uint64(c.Seg[n])
	if in.Flags&InstMem != 0 {
		return c.store16(c.ea(in), uint16(v))
	}
	c.setIntReg(in.RM, in.Size, true, v)
	return ExitNone
}

func intMovToSeg(c *CPU, in *Inst) Exit {
	n := in.Reg & 7
	if n > GS || n == CS {
		return c.ud()
	}
	v, e := c.rm(in, 2)
	if e != ExitNone {
		return e
	}
	return c.loadSeg(n, uint16(v))
}

// The user selectors of Linux (arch/x86/include/asm/segment.h).
const (
	selUser32CS = 0x23
	selUserDS   = 0x2b
	selUserCS   = 0x33
	selCPUNode  = 0x7b
)

// loadSeg loads a selector into ES, SS, DS, FS or GS. Linux has four
// descriptors that user code may load, and the null selector; the privilege
// level in the selector matters for SS only. Loading FS or GS sets the base to
// 0, except that AMD before Zen 3 keeps it for the null selector
// (CPUID 8000_0021 eax bit 6, NullSelectClearsBase).
func (c *CPU) loadSeg(n uint8, sel uint16) Exit {
	null := sel&^3 == 0
	switch {
	case sel == selUserDS:
	case n == SS:
		return c.gp()
	case null:
	case sel|3 == selUserDS, sel|3 == selUser32CS, sel|3 == selUserCS, sel|3 == selCPUNode:
	default:
		return c.gp()
	}
	c.Seg[n] = sel
	if !null || c.ID.Vendor != VendorAMD || c.ID.Family >= 0x19 {
		switch n {
		case FS:
			c.FSBase = 0
		case GS:
			c.GSBase = 0
		}
	}
	return ExitNone
}
