package x86

// VEX floating-point arithmetic, comparison and rounding, with the lane
// functions of the legacy forms.

func vaddps(c *CPU, in *Inst) Exit   { return c.vexFast32(in, kindAdd, add32) }
func vaddpd(c *CPU, in *Inst) Exit   { return c.vexFast64(in, kindAdd, add64) }
func vaddss(c *CPU, in *Inst) Exit   { return c.vexScalar32(in, add32) }
func vaddsd(c *CPU, in *Inst) Exit   { return c.vexScalar64(in, add64) }
func vmulps(c *CPU, in *Inst) Exit   { return c.vexFast32(in, kindMul, mul32) }
func vmulpd(c *CPU, in *Inst) Exit   { return c.vexFast64(in, kindMul, mul64) }
func vmulss(c *CPU, in *Inst) Exit   { return c.vexScalar32(in, mul32) }
func vmulsd(c *CPU, in *Inst) Exit   { return c.vexScalar64(in, mul64) }
func vsubps(c *CPU, in *Inst) Exit   { return c.vexFast32(in, kindSub, sub32) }
func vsubpd(c *CPU, in *Inst) Exit   { return c.vexFast64(in, kindSub, sub64) }
func vsubss(c *CPU, in *Inst) Exit   { return c.vexScalar32(in, sub32) }
func vsubsd(c *CPU, in *Inst) Exit   { return c.vexScalar64(in, sub64) }
func vminps(c *CPU, in *Inst) Exit   { return c.vexPacked32(in, min32) }
func vminpd(c *CPU, in *Inst) Exit   { return c.vexPacked64(in, min64) }
func vminss(c *CPU, in *Inst) Exit   { return c.vexScalar32(in, min32) }
func vminsd(c *CPU, in *Inst) Exit   { return c.vexScalar64(in, min64) }
func vdivps(c *CPU, in *Inst) Exit   { return c.vexFast32(in, kindDiv, div32) }
func vdivpd(c *CPU, in *Inst) Exit   { return c.vexFast64(in, kindDiv, div64) }
func vdivss(c *CPU, in *Inst) Exit   { return c.vexScalar32(in, div32) }
func vdivsd(c *CPU, in *Inst) Exit   { return c.vexScalar64(in, div64) }
func vmaxps(c *CPU, in *Inst) Exit   { return c.vexPacked32(in, max32) }
func vmaxpd(c *CPU, in *Inst) Exit   { return c.vexPacked64(in, max64) }
func vmaxss(c *CPU, in *Inst) Exit   { return c.vexScalar32(in, max32) }
func vmaxsd(c *CPU, in *Inst) Exit   { return c.vexScalar64(in, max64) }
func vsqrtps(c *CPU, in *Inst) Exit  { return c.vexPacked32(in, root32) }
func vsqrtpd(c *CPU, in *Inst) Exit  { return c.vexPacked64(in, root64) }
func vsqrtss(c *CPU, in *Inst) Exit  { return c.vexScalar32(in, root32) }
func vsqrtsd(c *CPU, in *Inst) Exit  { return c.vexScalar64(in, root64) }
func vrsqrtps(c *CPU, in *Inst) Exit { return c.vexPacked32(in, approxLane(c.approx().rsqrt32)) }
func vrsqrtss(c *CPU, in *Inst) Exit { return c.vexScalar32(in, approxLane(c.approx().rsqrt32)) }
func vrcpps(c *CPU, in *Inst) Exit   { return c.vexPacked32(in, approxLane(c.approx().rcp32)) }
func vrcpss(c *CPU, in *Inst) Exit   { return c.vexScalar32(in, approxLane(c.approx().rcp32)) }

func vcmppd(c *CPU, in *Inst) Exit {
	p := in.Imm & 31
	return c.vexPacked64(in, func(a, b uint64, m mxcsr) (uint64, mxcsr) { return cmp64(a, b, p, m) })
}

func vcmpps(c *CPU, in *Inst) Exit {
	p := in.Imm & 31
	return c.vexPacked32(in, func(a, b uint32, m mxcsr) (uint32, mxcsr) { return cmp32(a, b, p, m) })
}

func vcmpsdX(c *CPU, in *Inst) Exit {
	p := in.Imm & 31
	return c.vexScalar64(in, func(a, b uint64, m mxcsr) (uint64, mxcsr) { return cmp64(a, b, p, m) })
}

func vcmpss(c *CPU, in *Inst) Exit {
	p := in.Imm & 31
	return c.vexScalar32(in, func(a, b uint32, m mxcsr) (uint32, mxcsr) { return cmp32(a, b, p, m) })
}

func vroundpd(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.vexPacked64(in, func(_, b uint64, m mxcsr) (uint64, mxcsr) { return round64(b, imm, m) })
}

func vroundps(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.vexPacked32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return round32(b, imm, m) })
}

func vroundsd(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.vexScalar64(in, func(_, b uint64, m mxcsr) (uint64, mxcsr) { return round64(b, imm, m) })
}

func vroundss(c *CPU, in *Inst) Exit {
	imm := in.Imm
	return c.vexScalar32(in, func(_, b uint32, m mxcsr) (uint32, mxcsr) { return round32(b, imm, m) })
}

// fpPair is arithmetic on a 128-bit lane as a whole.
type fpPair = func(a, b pair, imm uint64, m mxcsr) (pair, mxcsr)

// vexFPLanes applies f to each 128-bit lane with the same immediate.
func (c *CPU) vexFPLanes(in *Inst, f fpPair) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a, m := &c.V[in.VVVV&15], mxcsr(c.MXCSR)
	lo, fl := f(pair{a[0], a[1]}, pair{b[0], b[1]}, in.Imm, m)
	r := Vec{lo[0], lo[1]}
	if isWide(in) {
		hi, fh := f(pair{a[2], a[3]}, pair{b[2], b[3]}, in.Imm, m)
		r[2], r[3], fl = hi[0], hi[1], fl|fh
	}
	return c.vexCommit(in, r, fl)
}

// addsub64 and addsub32 subtract in even lanes and add in odd ones.
func addsub64(a, b pair, _ uint64, m mxcsr) (pair, mxcsr) {
	r0, f0 := sub64(a[0], b[0], m)
	r1, f1 := add64(a[1], b[1], m)
	return pair{r0, r1}, f0 | f1
}

func addsub32(a, b pair, _ uint64, m mxcsr) (r pair, fl mxcsr) {
	for i := range r {
		r0, f0 := sub32(uint32(a[i]), uint32(b[i]), m)
		r1, f1 := add32(uint32(a[i]>>32), uint32(b[i]>>32), m)
		r[i], fl = uint64(r0)|uint64(r1)<<32, fl|f0|f1
	}
	return r, fl
}

// across64 and across32 apply f to neighbouring lanes of a, then of b.
func across64(f fpOp64) fpPair {
	return func(a, b pair, _ uint64, m mxcsr) (pair, mxcsr) {
		r0, f0 := f(a[0], a[1], m)
		r1, f1 := f(b[0], b[1], m)
		return pair{r0, r1}, f0 | f1
	}
}

func across32(f fpOp32) fpPair {
	return func(a, b pair, _ uint64, m mxcsr) (pair, mxcsr) {
		r0, f0 := pair32(dwords(a[0], a[1]), dwords(a[0]>>32, a[1]>>32), f, m)
		r1, f1 := pair32(dwords(b[0], b[1]), dwords(b[0]>>32, b[1]>>32), f, m)
		return pair{r0, r1}, f0 | f1
	}
}

var (
	pairHaddpd = across64(add64)
	pairHaddps = across32(add32)
	pairHsubpd = across64(sub64)
	pairHsubps = across32(sub32)
)

func vhaddpd(c *CPU, in *Inst) Exit   { return c.vexFPLanes(in, pairHaddpd) }
func vhaddps(c *CPU, in *Inst) Exit   { return c.vexFPLanes(in, pairHaddps) }
func vhsubpd(c *CPU, in *Inst) Exit   { return c.vexFPLanes(in, pairHsubpd) }
func vhsubps(c *CPU, in *Inst) Exit   { return c.vexFPLanes(in, pairHsubps) }
func vaddsubpd(c *CPU, in *Inst) Exit { return c.vexFPLanes(in, addsub64) }
func vaddsubps(c *CPU, in *Inst) Exit { return c.vexFPLanes(in, addsub32) }

func vdppd(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	r, e := c.dot64(c.V[in.VVVV&15].half(0), b.half(0), in.Imm)
	if e != ExitNone {
		return e
	}
	return c.vexLow(in, r, 0)
}

func vdpps(c *CPU, in *Inst) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.VVVV&15]
	r, e := c.dot32([2]pair{a.half(0), a.half(1)}, [2]pair{b.half(0), b.half(1)}, vexQuads(in)/2, in.Imm)
	if e != ExitNone {
		return e
	}
	c.setVex(in, Vec{r[0][0], r[0][1], r[1][0], r[1][1]})
	return ExitNone
}
