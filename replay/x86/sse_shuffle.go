package x86

// Instructions that move lanes across an XMM register: interleave, pack,
// shuffle, align, blend, insert, extract, horizontal sums, widening moves.

// pair is 128 bits, the low quadword first. A pairOp works on one such lane: a
// is the first source (the destination of the legacy forms), b the second.
type (
	pair   = [2]uint64
	pairOp = func(a, b pair, imm uint64) pair
)

// vecOp2 applies f to whole registers.
func (c *CPU) vecOp2(in *Inst, f pairOp) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	r := f(pair{v[0], v[1]}, pair{lo, hi}, in.Imm)
	v[0], v[1] = r[0], r[1]
	return ExitNone
}

func pairUnpcklbw(a, b pair, _ uint64) pair {
	return pair{interleaveB(a[0], b[0]), interleaveB(a[0]>>32, b[0]>>32)}
}
func punpcklbw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpcklbw) }

func pairUnpckhbw(a, b pair, _ uint64) pair {
	return pair{interleaveB(a[1], b[1]), interleaveB(a[1]>>32, b[1]>>32)}
}
func punpckhbw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpckhbw) }

func pairUnpcklwd(a, b pair, _ uint64) pair {
	return pair{interleaveW(a[0], b[0]), interleaveW(a[0]>>32, b[0]>>32)}
}
func punpcklwd(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpcklwd) }

func pairUnpckhwd(a, b pair, _ uint64) pair {
	return pair{interleaveW(a[1], b[1]), interleaveW(a[1]>>32, b[1]>>32)}
}
func punpckhwd(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpckhwd) }

func pairUnpckldq(a, b pair, _ uint64) pair {
	return pair{dwords(a[0], b[0]), dwords(a[0]>>32, b[0]>>32)}
}

// punpckldq is PUNPCKLDQ and UNPCKLPS.
func punpckldq(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpckldq) }

func pairUnpckhdq(a, b pair, _ uint64) pair {
	return pair{dwords(a[1], b[1]), dwords(a[1]>>32, b[1]>>32)}
}

// punpckhdq is PUNPCKHDQ and UNPCKHPS.
func punpckhdq(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpckhdq) }

func pairUnpcklqdq(a, b pair, _ uint64) pair { return pair{a[0], b[0]} }
func pairUnpckhqdq(a, b pair, _ uint64) pair { return pair{a[1], b[1]} }

// punpcklqdq is PUNPCKLQDQ and UNPCKLPD, punpckhqdq PUNPCKHQDQ and UNPCKHPD.
func punpcklqdq(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpcklqdq) }
func punpckhqdq(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairUnpckhqdq) }

// joinHalves makes a pairOp of f, which packs a quadword into 32 bits: the low
// half of the result comes from a, the high from b.
func joinHalves(f func(q uint64) uint64) pairOp {
	return func(a, b pair, _ uint64) pair {
		return pair{f(a[0]) | f(a[1])<<32, f(b[0]) | f(b[1])<<32}
	}
}

var (
	pairAcksswb = joinHalves(packSSWB)
	pairAckuswb = joinHalves(packUSWB)
	pairAckssdw = joinHalves(packSSDW)
	pairAckusdw = joinHalves(packUSDW)
	pairHaddw   = joinHalves(haddW)
	pairHaddd   = joinHalves(haddD)
	pairHaddsw  = joinHalves(haddSW)
	pairHsubw   = joinHalves(hsubW)
	pairHsubd   = joinHalves(hsubD)
	pairHsubsw  = joinHalves(hsubSW)
)

func packsswb(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairAcksswb) }
func packuswb(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairAckuswb) }
func packssdw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairAckssdw) }
func packusdw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairAckusdw) }
func phaddw(c *CPU, in *Inst) Exit   { return c.vecOp2(in, pairHaddw) }
func phaddd(c *CPU, in *Inst) Exit   { return c.vecOp2(in, pairHaddd) }
func phaddsw(c *CPU, in *Inst) Exit  { return c.vecOp2(in, pairHaddsw) }
func phsubw(c *CPU, in *Inst) Exit   { return c.vecOp2(in, pairHsubw) }
func phsubd(c *CPU, in *Inst) Exit   { return c.vecOp2(in, pairHsubd) }
func phsubsw(c *CPU, in *Inst) Exit  { return c.vecOp2(in, pairHsubsw) }

// dword returns doubleword i, 0 to 3.
func dword(v pair, i uint64) uint64 { return v[i>>1&1] >> (32 * (i & 1)) & 0xffffffff }

func pairShufd(_, b pair, m uint64) pair {
	return pair{dwords(dword(b, m), dword(b, m>>2)), dwords(dword(b, m>>4), dword(b, m>>6))}
}

func pairShuflw(_, b pair, m uint64) pair { return pair{shuffleW(b[0], m), b[1]} }
func pairShufhw(_, b pair, m uint64) pair { return pair{b[0], shuffleW(b[1], m)} }

func pairShufps(a, b pair, m uint64) pair {
	return pair{dwords(dword(a, m), dword(a, m>>2)), dwords(dword(b, m>>4), dword(b, m>>6))}
}

func pairShufpd(a, b pair, m uint64) pair { return pair{a[m&1], b[m>>1&1]} }
func pairShufb(a, b pair, _ uint64) pair  { return pair{shuffleB16(a, b[0]), shuffleB16(a, b[1])} }

func pshufd(c *CPU, in *Inst) Exit  { return c.vecOp2(in, pairShufd) }
func pshuflw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairShuflw) }
func pshufhw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairShufhw) }
func shufps(c *CPU, in *Inst) Exit  { return c.vecOp2(in, pairShufps) }
func shufpd(c *CPU, in *Inst) Exit  { return c.vecOp2(in, pairShufpd) }
func pshufb(c *CPU, in *Inst) Exit  { return c.vecOp2(in, pairShufb) }

// shuffleB16 looks up eight bytes in a table of 16.
func shuffleB16(a pair, b uint64) (r uint64) {
	for i := 0; i < 64; i += 8 {
		if s := b >> i; s&0x80 == 0 {
			r |= a[s>>3&1] >> (s & 7 * 8) & 0xff << i
		}
	}
	return r
}

// shiftRight128 shifts a pair of quadwords right by n bits, 0 to 128.
func shiftRight128(lo, hi, n uint64) (uint64, uint64) {
	if n >= 64 {
		return hi >> (n - 64), 0
	}
	return lo>>n | hi<<(64-n), hi >> n
}

// pairAlignr is the low half of the 256 bits a:b, shifted right by imm bytes.
func pairAlignr(a, b pair, imm uint64) pair {
	n := imm & 0xff * 8
	switch {
	case n >= 256:
		return pair{}
	case n >= 128:
		lo, hi := shiftRight128(a[0], a[1], n-128)
		return pair{lo, hi}
	}
	lo, hi := shiftRight128(b[0], b[1], n)
	l, h := shiftLeft128(a[0], a[1], 128-n)
	return pair{lo | l, hi | h}
}

func palignr(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairAlignr) }

// shiftLeft128 shifts a pair of quadwords left by n bits, 0 to 128.
func shiftLeft128(lo, hi, n uint64) (uint64, uint64) {
	if n >= 64 {
		return 0, lo << (n - 64)
	}
	return lo << n, hi<<n | lo>>(64-n)
}

// blendMask widens bit i of imm to lane i of a quadword of 64/width lanes.
func blendMask(imm uint64, width uint) (m uint64) {
	for i := uint(0); i < 64/width; i++ {
		if imm>>i&1 != 0 {
			m |= (1<<width - 1) << (i * width)
		}
	}
	return m
}

func pairBlendw(a, b pair, imm uint64) pair {
	return pair{pick(blendMask(imm, 16), b[0], a[0]), pick(blendMask(imm>>4, 16), b[1], a[1])}
}

func pairBlendps(a, b pair, imm uint64) pair {
	return pair{pick(blendMask(imm, 32), b[0], a[0]), pick(blendMask(imm>>2, 32), b[1], a[1])}
}

func pairBlendpd(a, b pair, imm uint64) pair {
	return pair{pick(-(imm & 1), b[0], a[0]), pick(-(imm >> 1 & 1), b[1], a[1])}
}

func pblendw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairBlendw) }
func blendps(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairBlendps) }
func blendpd(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairBlendpd) }

// maskB, maskD and maskQ spread the top bits of lanes: the masks of the
// variable blends.
func maskB(m uint64) uint64 { return spreadB(m & topB) }
func maskD(m uint64) uint64 { return spreadD(m & topD) }
func maskQ(m uint64) uint64 { return -(m >> 63) }

// blendv takes lanes of the source where XMM0's mask is set.
func (c *CPU) blendv(in *Inst, mask func(uint64) uint64) Exit {
	m := &c.V[0]
	m0, m1 := mask(m[0]), mask(m[1])
	return c.vecOp2(in, func(a, b pair, _ uint64) pair {
		return pair{pick(m0, b[0], a[0]), pick(m1, b[1], a[1])}
	})
}

func pblendvb(c *CPU, in *Inst) Exit { return c.blendv(in, maskB) }
func blendvps(c *CPU, in *Inst) Exit { return c.blendv(in, maskD) }
func blendvpd(c *CPU, in *Inst) Exit { return c.blendv(in, maskQ) }

// setLane replaces the lane of width bits at bit position pos of v.
func setLane(v *Vec, pos, width uint64, x uint64) {
	m := uint64(1)<<width - 1 // all ones when width is 64
	q := &v[pos>>6&1]
	*q = *q&^(m<<(pos&63)) | x&m<<(pos&63)
}

// getLane reads the lane of width bits at bit position pos of v.
func getLane(v *Vec, pos, width uint64) uint64 {
	return v[pos>>6&1] >> (pos & 63) & (1<<width - 1)
}

func pinsrb(c *CPU, in *Inst) Exit {
	x, e := uint8(c.R[in.RM&15]), ExitNone
	if isMem(in) {
		x, e = c.load8(c.ea(in))
	}
	if e == ExitNone {
		setLane(&c.V[in.Reg&15], in.Imm&15*8, 8, uint64(x))
	}
	return e
}

func pinsrw(c *CPU, in *Inst) Exit {
	x, e := uint16(c.R[in.RM&15]), ExitNone
	if isMem(in) {
		x, e = c.load16(c.ea(in))
	}
	if e == ExitNone {
		setLane(&c.V[in.Reg&15], in.Imm&7*16, 16, uint64(x))
	}
	return e
}

// pinsrd is PINSRD, and PINSRQ with REX.W.
func pinsrd(c *CPU, in *Inst) Exit {
	x, e := c.gpSrcW(in)
	if e != ExitNone {
		return e
	}
	if in.Flags&InstW != 0 {
		c.V[in.Reg&15][in.Imm&1] = uint64(x)
	} else {
		setLane(&c.V[in.Reg&15], in.Imm&3*32, 32, uint64(x))
	}
	return ExitNone
}

func pextrb(c *CPU, in *Inst) Exit {
	x := getLane(&c.V[in.Reg&15], in.Imm&15*8, 8)
	if isMem(in) {
		return c.store8(c.ea(in), uint8(x))
	}
	c.R[in.RM&15] = x
	return ExitNone
}

// pextrw is the SSE4.1 form, with the destination in ModRM.rm.
func pextrw(c *CPU, in *Inst) Exit {
	x := getLane(&c.V[in.Reg&15], in.Imm&7*16, 16)
	if isMem(in) {
		return c.store16(c.ea(in), uint16(x))
	}
	c.R[in.RM&15] = x
	return ExitNone
}

// pextrwReg is the SSE2 form, with the destination in ModRM.reg.
func pextrwReg(c *CPU, in *Inst) Exit {
	c.R[in.Reg&15] = getLane(&c.V[in.RM&15], in.Imm&7*16, 16)
	return ExitNone
}

// pextrd is PEXTRD and EXTRACTPS, and PEXTRQ with REX.W.
func pextrd(c *CPU, in *Inst) Exit {
	v := &c.V[in.Reg&15]
	if in.Flags&InstW != 0 {
		return c.gpDest(in, v[in.Imm&1])
	}
	return c.gpDest(in, getLane(v, in.Imm&3*32, 32))
}

// extractps always moves 32 bits; REX.W only widens the register it clears.
func extractps(c *CPU, in *Inst) Exit {
	x := getLane(&c.V[in.Reg&15], in.Imm&3*32, 32)
	if isMem(in) {
		return c.store32(c.ea(in), uint32(x))
	}
	c.R[in.RM&15] = x
	return ExitNone
}

// insertpsSource is the doubleword that INSERTPS moves; from memory there is
// no choice.
func (c *CPU) insertpsSource(in *Inst) (uint64, Exit) {
	if isMem(in) {
		d, e := c.load32(c.ea(in))
		return uint64(d), e
	}
	return getLane(&c.V[in.RM&15], in.Imm>>6&3*32, 32), ExitNone
}

// clearSingles clears the doublewords that imm[3:0] names.
func clearSingles(v *Vec, imm uint64) {
	v[0] &^= blendMask(imm, 32)
	v[1] &^= blendMask(imm>>2, 32)
}

// insertps copies a doubleword of the source to one of the destination and
// clears those that imm[3:0] names.
func insertps(c *CPU, in *Inst) Exit {
	x, e := c.insertpsSource(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	setLane(v, in.Imm>>4&3*32, 32, x)
	clearSingles(v, in.Imm)
	return ExitNone
}

// widenLow extends the low lanes of q, width by width, until 64 bits are
// full.
func widenLow(q uint64, from, to uint, signed bool) (r uint64) {
	for i := uint(0); i < 64/to; i++ {
		x := q >> (i * from) << (64 - from)
		if signed {
			x = uint64(int64(x) >> (64 - from))
		} else {
			x >>= 64 - from
		}
		r |= x << (64 - to) >> (64 - to) << (i * to)
	}
	return r
}

// widenSource reads the n bytes (2, 4, 8 or 16) that are widened.
func (c *CPU) widenSource(in *Inst, n uint) (q pair, e Exit) {
	if !isMem(in) {
		v := &c.V[in.RM&15]
		return pair{v[0], v[1]}, ExitNone
	}
	a := c.ea(in)
	switch n {
	case 16:
		q[0], q[1], e = c.load128(a)
	case 8:
		q[0], e = c.load64(a)
	case 4:
		var d uint32
		d, e = c.load32(a)
		q[0] = uint64(d)
	default:
		var w uint16
		w, e = c.load16(a)
		q[0] = uint64(w)
	}
	return q, e
}

// widen extends the low lanes of the source to fill the destination.
func (c *CPU) widen(in *Inst, from, to uint, signed bool) Exit {
	q, e := c.widenSource(in, 16*from/to)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	v[0] = widenLow(q[0], from, to, signed)
	v[1] = widenLow(q[0]>>(64*from/to), from, to, signed)
	return ExitNone
}

// vexWiden does so for both widths of the VEX forms.
func (c *CPU) vexWiden(in *Inst, from, to uint, signed bool) Exit {
	n := 16 * from / to
	if isWide(in) {
		n *= 2
	}
	q, e := c.widenSource(in, n)
	if e != ExitNone {
		return e
	}
	var r Vec
	step := 64 * from / to // source bits for a quadword
	for i := range r {
		bit := uint(i) * step
		r[i] = widenLow(q[bit>>6]>>(bit&63), from, to, signed)
	}
	c.setVex(in, r)
	return ExitNone
}

func pmovsxbw(c *CPU, in *Inst) Exit { return c.widen(in, 8, 16, true) }
func pmovsxbd(c *CPU, in *Inst) Exit { return c.widen(in, 8, 32, true) }
func pmovsxbq(c *CPU, in *Inst) Exit { return c.widen(in, 8, 64, true) }
func pmovsxwd(c *CPU, in *Inst) Exit { return c.widen(in, 16, 32, true) }
func pmovsxwq(c *CPU, in *Inst) Exit { return c.widen(in, 16, 64, true) }
func pmovsxdq(c *CPU, in *Inst) Exit { return c.widen(in, 32, 64, true) }
func pmovzxbw(c *CPU, in *Inst) Exit { return c.widen(in, 8, 16, false) }
func pmovzxbd(c *CPU, in *Inst) Exit { return c.widen(in, 8, 32, false) }
func pmovzxbq(c *CPU, in *Inst) Exit { return c.widen(in, 8, 64, false) }
func pmovzxwd(c *CPU, in *Inst) Exit { return c.widen(in, 16, 32, false) }
func pmovzxwq(c *CPU, in *Inst) Exit { return c.widen(in, 16, 64, false) }
func pmovzxdq(c *CPU, in *Inst) Exit { return c.widen(in, 32, 64, false) }

// ptest sets ZF if destination and source have no bit in common and CF if the
// source has no bit outside the destination.
func ptest(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	c.setFlagsRaw(b2u((v[0]&lo)|(v[1]&hi) == 0)*FlagZF | b2u((^v[0]&lo)|(^v[1]&hi) == 0)*FlagCF)
	return ExitNone
}

// pairMpsadbw sums absolute differences of one group of four bytes of b
// against eight overlapping groups of a.
func pairMpsadbw(a, b pair, imm uint64) (r pair) {
	group := dword(b, imm&3)
	s, _ := shiftRight128(a[0], a[1], imm>>2&1*32)
	top, _ := shiftRight128(a[0], a[1], imm>>2&1*32+64)
	for i := uint64(0); i < 8; i++ {
		w, _ := shiftRight128(s, top, i*8)
		r[i>>2] |= laneSad(w&0xffffffff, group) << (i & 3 * 16)
	}
	return r
}

func mpsadbw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairMpsadbw) }

// pairMinposuw finds the smallest of eight words and its first index.
func pairMinposuw(_, b pair, _ uint64) pair {
	least, at := uint64(0xffff), uint64(0)
	for i := uint64(0); i < 8; i++ {
		if w := b[i>>2] >> (i & 3 * 16) & 0xffff; w < least {
			least, at = w, i
		}
	}
	return pair{least | at<<16, 0}
}

func phminposuw(c *CPU, in *Inst) Exit { return c.vecOp2(in, pairMinposuw) }
