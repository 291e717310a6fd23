package x86

// VEX forms that move lanes: within 128-bit lanes with the functions of
// sse_shuffle.go, and across them.

func vpunpcklbw(c *CPU, in *Inst) Exit       { return c.vexLanes(in, pairUnpcklbw, 0) }
func vpunpcklwd(c *CPU, in *Inst) Exit       { return c.vexLanes(in, pairUnpcklwd, 0) }
func vpunpckldq(c *CPU, in *Inst) Exit       { return c.vexLanes(in, pairUnpckldq, 0) }
func vpacksswb(c *CPU, in *Inst) Exit        { return c.vexLanes(in, pairAcksswb, 0) }
func vpackuswb(c *CPU, in *Inst) Exit        { return c.vexLanes(in, pairAckuswb, 0) }
func vpunpckhbw(c *CPU, in *Inst) Exit       { return c.vexLanes(in, pairUnpckhbw, 0) }
func vpunpckhwd(c *CPU, in *Inst) Exit       { return c.vexLanes(in, pairUnpckhwd, 0) }
func vpunpckhdq(c *CPU, in *Inst) Exit       { return c.vexLanes(in, pairUnpckhdq, 0) }
func vpackssdw(c *CPU, in *Inst) Exit        { return c.vexLanes(in, pairAckssdw, 0) }
func vpunpcklqdq(c *CPU, in *Inst) Exit      { return c.vexLanes(in, pairUnpcklqdq, 0) }
func vpunpckhqdq(c *CPU, in *Inst) Exit      { return c.vexLanes(in, pairUnpckhqdq, 0) }
func vpshufb(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairShufb, 0) }
func vphaddw(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairHaddw, 0) }
func vphaddd(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairHaddd, 0) }
func vphaddsw(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairHaddsw, 0) }
func vphsubw(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairHsubw, 0) }
func vphsubd(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairHsubd, 0) }
func vphsubsw(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairHsubsw, 0) }
func vpackusdw(c *CPU, in *Inst) Exit        { return c.vexLanes(in, pairAckusdw, 0) }
func vpshufd(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairShufd, 0) }
func vpshufhw(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairShufhw, 0) }
func vpshuflw(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairShuflw, 0) }
func vshufps(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairShufps, 0) }
func vshufpd(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairShufpd, 2) }
func vpalignr(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairAlignr, 0) }
func vpblendw(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairBlendw, 0) }
func vblendps(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairBlendps, 4) }
func vblendpd(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairBlendpd, 2) }
func vpblendd(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairBlendps, 4) }
func vmpsadbw(c *CPU, in *Inst) Exit         { return c.vexLanes(in, pairMpsadbw, 3) }
func vpermilpsImm(c *CPU, in *Inst) Exit     { return c.vexLanes(in, pairShufd, 0) }
func vpermilpdImm(c *CPU, in *Inst) Exit     { return c.vexLanes(in, pairPermilpdImm, 2) }
func vpermilps(c *CPU, in *Inst) Exit        { return c.vexLanes(in, pairPermilps, 0) }
func vpermilpd(c *CPU, in *Inst) Exit        { return c.vexLanes(in, pairPermilpd, 0) }
func vpclmulqdq(c *CPU, in *Inst) Exit       { return c.vexLanes(in, pairClmul, 0) }
func vaesenc(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairAesenc, 0) }
func vaesenclast(c *CPU, in *Inst) Exit      { return c.vexLanes(in, pairAesenclast, 0) }
func vaesdec(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairAesdec, 0) }
func vaesdeclast(c *CPU, in *Inst) Exit      { return c.vexLanes(in, pairAesdeclast, 0) }
func vaesimc(c *CPU, in *Inst) Exit          { return c.vexLanes(in, pairAesimc, 0) }
func vaeskeygenassist(c *CPU, in *Inst) Exit { return c.vexLanes(in, pairAeskeygenassist, 0) }
func vphminposuw(c *CPU, in *Inst) Exit      { return c.vexLanes(in, pairMinposuw, 0) }

// pairPermilps selects doublewords by the low two bits of each of b's,
// pairPermilpd quadwords by bit 1, pairPermilpdImm quadwords of b by imm.
func pairPermilps(a, b pair, _ uint64) pair {
	return pair{
		dwords(dword(a, b[0]&3), dword(a, b[0]>>32&3)),
		dwords(dword(a, b[1]&3), dword(a, b[1]>>32&3)),
	}
}

func pairPermilpd(a, b pair, _ uint64) pair      { return pair{a[b[0]>>1&1], a[b[1]>>1&1]} }
func pairPermilpdImm(_, b pair, imm uint64) pair { return pair{b[imm&1], b[imm>>1&1]} }

// vexBlend takes the second source where the register in imm[7:4] has top bits set.
func (c *CPU) vexBlend(in *Inst, mask func(uint64) uint64) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a, m := &c.V[in.VVVV&15], &c.V[in.Imm>>4&15]
	var r Vec
	for i := range r {
		r[i] = pick(mask(m[i]), b[i], a[i])
	}
	c.setVex(in, r)
	return ExitNone
}

func vpblendvb(c *CPU, in *Inst) Exit { return c.vexBlend(in, maskB) }
func vblendvps(c *CPU, in *Inst) Exit { return c.vexBlend(in, maskD) }
func vblendvpd(c *CPU, in *Inst) Exit { return c.vexBlend(in, maskQ) }

// half returns one 128-bit half of a register.
func (v *Vec) half(n uint64) pair { return pair{v[n&1*2], v[n&1*2+1]} }

func vinsert128(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecRM128(in, false)
	if e != ExitNone {
		return e
	}
	r := c.V[in.VVVV&15]
	n := in.Imm & 1 * 2
	r[n], r[n+1] = lo, hi
	c.V[in.Reg&15] = r
	return ExitNone
}

func vextract128(c *CPU, in *Inst) Exit {
	h := c.V[in.Reg&15].half(in.Imm)
	if isMem(in) {
		return c.store128(c.ea(in), h[0], h[1])
	}
	c.V[in.RM&15] = Vec{h[0], h[1]}
	return ExitNone
}

// vperm2x128 chooses each half from four, or zero.
func vperm2x128(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	src := [2]Vec{c.V[in.VVVV&15], b}
	var r Vec
	for i := range uint64(2) {
		if k := in.Imm >> (4 * i); k&8 == 0 {
			h := src[k>>1&1].half(k)
			r[2*i], r[2*i+1] = h[0], h[1]
		}
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

// vpermd is VPERMD and VPERMPS: the first source holds the indexes.
func vpermd(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	x := &c.V[in.VVVV&15]
	var r Vec
	for i := range r {
		r[i] = dwords(dword256(&b, x[i]), dword256(&b, x[i]>>32))
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

// dword256 returns doubleword i, 0 to 7.
func dword256(v *Vec, i uint64) uint64 { return v[i>>1&3] >> (32 * (i & 1)) & 0xffffffff }

// vpermq is VPERMQ and VPERMPD.
func vpermq(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	m := in.Imm
	c.V[in.Reg&15] = Vec{b[m&3], b[m>>2&3], b[m>>4&3], b[m>>6&3]}
	return ExitNone
}

// broadcast fills the destination with q.
func (c *CPU) broadcast(in *Inst, q uint64, e Exit) Exit {
	if e == ExitNone {
		c.setVex(in, Vec{q, q, q, q})
	}
	return e
}

func vpbroadcastb(c *CPU, in *Inst) Exit {
	x, e := uint8(c.V[in.RM&15][0]), ExitNone
	if isMem(in) {
		x, e = c.load8(c.ea(in))
	}
	return c.broadcast(in, uint64(x)*0x0101010101010101, e)
}

func vpbroadcastw(c *CPU, in *Inst) Exit {
	x, e := uint16(c.V[in.RM&15][0]), ExitNone
	if isMem(in) {
		x, e = c.load16(c.ea(in))
	}
	return c.broadcast(in, uint64(x)*0x0001000100010001, e)
}

// vpbroadcastd is VBROADCASTSS too, vpbroadcastq VBROADCASTSD.
func vpbroadcastd(c *CPU, in *Inst) Exit {
	x, e := c.vecRM32(in)
	return c.broadcast(in, uint64(x)|uint64(x)<<32, e)
}

func vpbroadcastq(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	return c.broadcast(in, x, e)
}

// vbroadcast128 is VBROADCASTF128 and VBROADCASTI128.
func vbroadcast128(c *CPU, in *Inst) Exit {
	lo, hi, e := c.load128(c.ea(in))
	if e == ExitNone {
		c.V[in.Reg&15] = Vec{lo, hi, lo, hi}
	}
	return e
}

// vexInsert writes x into a lane of a copy of the first source.
func (c *CPU) vexInsert(in *Inst, pos, width, x uint64) Exit {
	a := &c.V[in.VVVV&15]
	r := Vec{a[0], a[1]}
	setLane(&r, pos, width, x)
	c.V[in.Reg&15] = r
	return ExitNone
}

func vpinsrb(c *CPU, in *Inst) Exit {
	x, e := uint8(c.R[in.RM&15]), ExitNone
	if isMem(in) {
		x, e = c.load8(c.ea(in))
	}
	if e != ExitNone {
		return e
	}
	return c.vexInsert(in, in.Imm&15*8, 8, uint64(x))
}

func vpinsrw(c *CPU, in *Inst) Exit {
	x, e := uint16(c.R[in.RM&15]), ExitNone
	if isMem(in) {
		x, e = c.load16(c.ea(in))
	}
	if e != ExitNone {
		return e
	}
	return c.vexInsert(in, in.Imm&7*16, 16, uint64(x))
}

// vpinsrd is VPINSRD, and VPINSRQ with VEX.W.
func vpinsrd(c *CPU, in *Inst) Exit {
	x, e := c.gpSrcW(in)
	if e != ExitNone {
		return e
	}
	if in.Flags&InstW != 0 {
		return c.vexInsert(in, in.Imm&1*64, 64, uint64(x))
	}
	return c.vexInsert(in, in.Imm&3*32, 32, uint64(x))
}

func vinsertps(c *CPU, in *Inst) Exit {
	x, e := c.insertpsSource(in)
	if e != ExitNone {
		return e
	}
	c.vexInsert(in, in.Imm>>4&3*32, 32, x)
	clearSingles(&c.V[in.Reg&15], in.Imm)
	return ExitNone
}

func vpmovsxbw(c *CPU, in *Inst) Exit { return c.vexWiden(in, 8, 16, true) }
func vpmovsxbd(c *CPU, in *Inst) Exit { return c.vexWiden(in, 8, 32, true) }
func vpmovsxbq(c *CPU, in *Inst) Exit { return c.vexWiden(in, 8, 64, true) }
func vpmovsxwd(c *CPU, in *Inst) Exit { return c.vexWiden(in, 16, 32, true) }
func vpmovsxwq(c *CPU, in *Inst) Exit { return c.vexWiden(in, 16, 64, true) }
func vpmovsxdq(c *CPU, in *Inst) Exit { return c.vexWiden(in, 32, 64, true) }
func vpmovzxbw(c *CPU, in *Inst) Exit { return c.vexWiden(in, 8, 16, false) }
func vpmovzxbd(c *CPU, in *Inst) Exit { return c.vexWiden(in, 8, 32, false) }
func vpmovzxbq(c *CPU, in *Inst) Exit { return c.vexWiden(in, 8, 64, false) }
func vpmovzxwd(c *CPU, in *Inst) Exit { return c.vexWiden(in, 16, 32, false) }
func vpmovzxwq(c *CPU, in *Inst) Exit { return c.vexWiden(in, 16, 64, false) }
func vpmovzxdq(c *CPU, in *Inst) Exit { return c.vexWiden(in, 32, 64, false) }
