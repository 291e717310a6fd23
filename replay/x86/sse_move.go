package x86

// Moves between XMM registers, memory and general registers. A move to memory
// has ModRM.reg as its source and in.Mem's address, or ModRM.rm, as its target.

// isMem says whether ModRM names memory.
func isMem(in *Inst) bool { return in.Flags&InstMem != 0 }

// movups is MOVUPS, MOVUPD, MOVDQU and LDDQU: a load of any alignment.
func movups(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecRM128(in, false)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = lo, hi
	return ExitNone
}

// movaps is MOVAPS, MOVAPD, MOVDQA and MOVNTDQA: an aligned load. MXCSR.MM
// does not relax it.
func movaps(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecRM128(in, true)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = lo, hi
	return ExitNone
}

// movupsStore is the store form of movups.
func movupsStore(c *CPU, in *Inst) Exit {
	s := &c.V[in.Reg&15]
	if isMem(in) {
		return c.store128(c.ea(in), s[0], s[1])
	}
	d := &c.V[in.RM&15]
	d[0], d[1] = s[0], s[1]
	return ExitNone
}

// movapsStore is the store form of movaps, and MOVNTPS, MOVNTPD, MOVNTDQ.
func movapsStore(c *CPU, in *Inst) Exit {
	s := &c.V[in.Reg&15]
	if isMem(in) {
		a := c.ea(in)
		if a&15 != 0 {
			return c.gp()
		}
		return c.store128(a, s[0], s[1])
	}
	d := &c.V[in.RM&15]
	d[0], d[1] = s[0], s[1]
	return ExitNone
}

// movss loads a single: the rest of the register is cleared when it comes from
// memory and kept when it comes from a register.
func movss(c *CPU, in *Inst) Exit {
	x, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	if isMem(in) {
		v[0], v[1] = uint64(x), 0
		return ExitNone
	}
	v[0] = v[0]&^0xffffffff | uint64(x)
	return ExitNone
}

func movssStore(c *CPU, in *Inst) Exit {
	x := uint32(c.V[in.Reg&15][0])
	if isMem(in) {
		return c.store32(c.ea(in), x)
	}
	v := &c.V[in.RM&15]
	v[0] = v[0]&^0xffffffff | uint64(x)
	return ExitNone
}

// movsdX is MOVSD of XMM registers (the string move has the same name).
func movsdX(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0] = x
	if isMem(in) {
		v[1] = 0
	}
	return ExitNone
}

func movsdXStore(c *CPU, in *Inst) Exit {
	x := c.V[in.Reg&15][0]
	if isMem(in) {
		return c.store64(c.ea(in), x)
	}
	c.V[in.RM&15][0] = x
	return ExitNone
}

// movqX is MOVQ to an XMM register (F3 0F 7E), clearing the high quadword.
func movqX(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = x, 0
	return ExitNone
}

// movqXStore is MOVQ from an XMM register (66 0F D6).
func movqXStore(c *CPU, in *Inst) Exit {
	x := c.V[in.Reg&15][0]
	if isMem(in) {
		return c.store64(c.ea(in), x)
	}
	v := &c.V[in.RM&15]
	v[0], v[1] = x, 0
	return ExitNone
}

// movlps is MOVLPS and MOVLPD from memory.
func movlps(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	c.V[in.Reg&15][0] = x
	return ExitNone
}

// movlpsStore is MOVLPS and MOVLPD to memory.
func movlpsStore(c *CPU, in *Inst) Exit { return c.store64(c.ea(in), c.V[in.Reg&15][0]) }

// movhps is MOVHPS and MOVHPD from memory, and MOVLHPS.
func movhps(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	c.V[in.Reg&15][1] = x
	return ExitNone
}

// movhpsStore is MOVHPS and MOVHPD to memory.
func movhpsStore(c *CPU, in *Inst) Exit { return c.store64(c.ea(in), c.V[in.Reg&15][1]) }

func movhlps(c *CPU, in *Inst) Exit {
	c.V[in.Reg&15][0] = c.V[in.RM&15][1]
	return ExitNone
}

// gpSrc32 and gpSrc64 read a general register or memory.
func (c *CPU) gpSrc32(in *Inst) (uint32, Exit) {
	if isMem(in) {
		return c.load32(c.ea(in))
	}
	return uint32(c.R[in.RM&15]), ExitNone
}

func (c *CPU) gpSrc64(in *Inst) (uint64, Exit) {
	if isMem(in) {
		return c.load64(c.ea(in))
	}
	return c.R[in.RM&15], ExitNone
}

// gpSrcW reads the 64-bit operand when REX.W is set, else the 32-bit one,
// sign-extended.
func (c *CPU) gpSrcW(in *Inst) (int64, Exit) {
	if in.Flags&InstW != 0 {
		v, e := c.gpSrc64(in)
		return int64(v), e
	}
	v, e := c.gpSrc32(in)
	return int64(int32(v)), e
}

// movdX is MOVD and MOVQ from a general register or memory.
func movdX(c *CPU, in *Inst) Exit {
	var x uint64
	var e Exit
	if in.Flags&InstW != 0 {
		x, e = c.gpSrc64(in)
	} else {
		var d uint32
		d, e = c.gpSrc32(in)
		x = uint64(d)
	}
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = x, 0
	return ExitNone
}

// gpDest writes the operand in ModRM.rm: 64 bits with REX.W, else 32.
func (c *CPU) gpDest(in *Inst, x uint64) Exit {
	switch {
	case in.Flags&InstW != 0 && isMem(in):
		return c.store64(c.ea(in), x)
	case in.Flags&InstW != 0:
		c.R[in.RM&15] = x
	case isMem(in):
		return c.store32(c.ea(in), uint32(x))
	default:
		c.R[in.RM&15] = uint64(uint32(x))
	}
	return ExitNone
}

// movdXStore is MOVD and MOVQ to a general register or memory.
func movdXStore(c *CPU, in *Inst) Exit { return c.gpDest(in, c.V[in.Reg&15][0]) }

// movnti stores a general register.
func movnti(c *CPU, in *Inst) Exit { return c.gpDest(in, c.R[in.Reg&15]) }

func movsldup(c *CPU, in *Inst) Exit {
	return c.vecMap(in, func(b uint64) uint64 { return dwords(b, b) })
}

func movshdup(c *CPU, in *Inst) Exit {
	return c.vecMap(in, func(b uint64) uint64 { return dwords(b>>32, b>>32) })
}

func movddup(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = x, x
	return ExitNone
}

func pmovmskb(c *CPU, in *Inst) Exit {
	v := &c.V[in.RM&15]
	c.R[in.Reg&15] = moveMask8(v[0]) | moveMask8(v[1])<<8
	return ExitNone
}

func movmskps(c *CPU, in *Inst) Exit {
	v := &c.V[in.RM&15]
	c.R[in.Reg&15] = v[0]>>31&1 | v[0]>>63<<1 | v[1]>>31&1<<2 | v[1]>>63<<3
	return ExitNone
}

func movmskpd(c *CPU, in *Inst) Exit {
	v := &c.V[in.RM&15]
	c.R[in.Reg&15] = v[0]>>63 | v[1]>>63<<1
	return ExitNone
}

// maskmovdqu stores the bytes whose mask byte is negative at DS:rDI. The bytes
// in between are neither read nor written.
func maskmovdqu(c *CPU, in *Inst) Exit {
	var b [16]byte
	s, m := &c.V[in.Reg&15], &c.V[in.RM&15]
	putVec(&b, s[0], s[1])
	return c.maskMove(in, b[:], moveMask8(m[0])|moveMask8(m[1])<<8)
}

// maskMove stores the bytes of b selected by mask at rDI, all or none. Both
// vendors fault for all of b's range whatever the mask; of 16 bytes Intel tries
// the upper half first.
func (c *CPU) maskMove(in *Inst, b []byte, mask uint64) Exit {
	a := c.R[RDI]
	if in.Flags&InstAddr32 != 0 {
		a = uint64(uint32(a))
	}
	if in.Seg != NoSeg {
		a = c.segment(in.Seg, a)
	}
	if !c.amd() && len(b) == 16 {
		if e := c.probe(a+8, 8, Store); e != ExitNone {
			return e
		}
	}
	if e := c.probe(a, 8, Store); e != ExitNone {
		return e // its #PF comes before the #GP of a second half that is not canonical
	}
	if e := c.probe(a, len(b), Store); e != ExitNone {
		return e
	}
	for i := range b {
		if mask>>i&1 != 0 {
			if e := c.store8(a+uint64(i), b[i]); e != ExitNone {
				return e
			}
		}
	}
	return ExitNone
}

// putVec writes two quadwords as 16 bytes; getVec reads them.
func putVec(b *[16]byte, lo, hi uint64) {
	for i := range 8 {
		b[i], b[i+8] = byte(lo>>(8*i)), byte(hi>>(8*i))
	}
}

func getVec(b *[16]byte) (lo, hi uint64) {
	for i := range 8 {
		lo |= uint64(b[i]) << (8 * i)
		hi |= uint64(b[i+8]) << (8 * i)
	}
	return lo, hi
}

// ldmxcsr loads MXCSR; bits that the processor lacks give #GP.
func ldmxcsr(c *CPU, in *Inst) Exit {
	v, e := c.load32(c.ea(in))
	if e != ExitNone {
		return e
	}
	if v&^c.mxcsrMask() != 0 {
		return c.gp()
	}
	c.MXCSR = v
	return ExitNone
}

// mxcsrMask are the bits of MXCSR that may be set: AMD has the misaligned
// exception mask, bit 17, besides those that all have.
func (c *CPU) mxcsrMask() uint32 {
	if c.amd() {
		return 0x2ffff
	}
	return 0xffff
}

func stmxcsr(c *CPU, in *Inst) Exit { return c.store32(c.ea(in), c.MXCSR) }

// amd says that the emulated CPU is AMD's.
func (c *CPU) amd() bool { return c.ID != nil && c.ID.Vendor == VendorAMD }
