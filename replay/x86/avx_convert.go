package x86

// VEX conversions, those to and from half precision (F16C) among them.

// vexNarrow narrows each quadword of the source to 32 bits by f, and packs
// them: 128-bit forms fill 64 bits, 256-bit forms 128.
func (c *CPU) vexNarrow(in *Inst, f func(x uint64, m mxcsr) (uint32, mxcsr)) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	var r pair
	var fl mxcsr
	for i := range vexQuads(in) {
		x, fx := f(b[i], m)
		r[i>>1], fl = r[i>>1]|uint64(x)<<(i&1*32), fl|fx
	}
	return c.vexLow(in, r, fl)
}

func vcvtpd2ps(c *CPU, in *Inst) Exit { return c.vexNarrow(in, toSingle) }

func vcvtpd2dq(c *CPU, in *Inst) Exit {
	return c.vexNarrow(in, func(x uint64, m mxcsr) (uint32, mxcsr) { return double32(x, m.rc(), m) })
}

func vcvttpd2dq(c *CPU, in *Inst) Exit {
	return c.vexNarrow(in, func(x uint64, m mxcsr) (uint32, mxcsr) { return double32(x, rcZero, m) })
}

// vexHalfSource reads the source of a form that widens to the destination: 64
// bits, or 128 with VEX.L.
func (c *CPU) vexHalfSource(in *Inst) (pair, Exit) {
	if isWide(in) {
		lo, hi, e := c.vecRM128(in, false)
		return pair{lo, hi}, e
	}
	q, e := c.vecRM64(in)
	return pair{q}, e
}

// vexSpread widens each doubleword of the source to 64 bits by f.
func (c *CPU) vexSpread(in *Inst, f func(x uint32, m mxcsr) (uint64, mxcsr)) Exit {
	q, e := c.vexHalfSource(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR)
	var r Vec
	var fl mxcsr
	for i := range uint64(vexQuads(in)) {
		x, fx := f(uint32(dword(q, i)), m)
		r[i], fl = x, fl|fx
	}
	return c.vexCommit(in, r, fl)
}

func vcvtps2pd(c *CPU, in *Inst) Exit { return c.vexSpread(in, toDouble) }

func vcvtdq2pd(c *CPU, in *Inst) Exit {
	return c.vexSpread(in, func(x uint32, _ mxcsr) (uint64, mxcsr) { return int32Double(x), 0 })
}

func vcvtdq2ps(c *CPU, in *Inst) Exit {
	return c.vexPacked32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return int32Single(b, m) })
}

func vcvtps2dq(c *CPU, in *Inst) Exit {
	return c.vexPacked32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return single32(b, m.rc(), m) })
}

func vcvttps2dq(c *CPU, in *Inst) Exit {
	return c.vexPacked32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return single32(b, rcZero, m) })
}

func vcvtss2sd(c *CPU, in *Inst) Exit {
	x, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	r, fl := toDouble(x, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{r, c.V[in.VVVV&15][1]}, fl)
}

func vcvtsd2ss(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r, fl := toSingle(x, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{a[0]&^0xffffffff | uint64(r), a[1]}, fl)
}

func vcvtsi2sd(c *CPU, in *Inst) Exit {
	x, e := c.gpSrcW(in)
	if e != ExitNone {
		return e
	}
	r, fl := fpDouble.fromInt(x, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{r, c.V[in.VVVV&15][1]}, fl)
}

func vcvtsi2ss(c *CPU, in *Inst) Exit {
	x, e := c.gpSrcW(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r, fl := fpSingle.fromInt(x, mxcsr(c.MXCSR))
	return c.vexLow(in, pair{a[0]&^0xffffffff | r, a[1]}, fl)
}

// fpHalf is the half-precision format.
var fpHalf = fpFormat{frac: 10, bias: 15}

// vcvtph2ps widens halves; denormal halves are numbers whatever DAZ says.
func vcvtph2ps(c *CPU, in *Inst) Exit {
	q, e := c.vexHalfSource(in)
	if e != ExitNone {
		return e
	}
	m := mxcsr(c.MXCSR) &^ mxDAZ
	var r Vec
	var fl mxcsr
	for i := range uint(2 * vexQuads(in)) {
		x, fx := fpHalf.convert(uw(q[i>>2], i&3), fpSingle, m)
		r[i>>1], fl = r[i>>1]|x<<(i&1*32), fl|fx&^mxDE
	}
	return c.vexCommit(in, r, fl)
}

// vcvtps2ph narrows to halves with the rounding of imm[1:0], or MXCSR's if
// imm[2]; FTZ does not apply.
func vcvtps2ph(c *CPU, in *Inst) Exit {
	v, n := &c.V[in.Reg&15], vexQuads(in)
	m := mxcsr(c.MXCSR) &^ mxFTZ
	if in.Imm&4 == 0 {
		m = m&^mxRC | mxcsr(in.Imm&3)<<mxRCShift
	}
	var r pair
	var fl mxcsr
	for i := range 2 * n {
		x, fx := fpSingle.convert(v[i>>1]>>(i&1*32)&0xffffffff, fpHalf, m)
		if fx&(mxDE|mxUE) == mxDE|mxUE && !c.amd() {
			fx |= mxPE // Intel: a denormal is inexact, also where UE is unmasked
		}
		r[i>>2], fl = r[i>>2]|x<<(i&3*16), fl|fx
	}
	if !isMem(in) {
		if e := c.raise(fl); e != ExitNone {
			return e
		}
		c.V[in.RM&15] = Vec{r[0], r[1]}
		return ExitNone
	}
	a := c.ea(in)
	if c.amd() { // Intel sets the flags before it looks at the memory
		if e := c.probe(a, 4*n, Store); e != ExitNone {
			return e
		}
	}
	if e := c.raise(fl); e != ExitNone {
		return e
	}
	if n == 4 {
		return c.store128(a, r[0], r[1])
	}
	return c.store64(a, r[0])
}
