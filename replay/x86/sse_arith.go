package x86

// Scalar and packed floating-point arithmetic. All lanes are computed before
// anything is committed: an unmasked exception in one leaves the destination
// as it was and raises #XM, with the flags set.

type (
	fpOp64 = func(a, b uint64, m mxcsr) (uint64, mxcsr)
	fpOp32 = func(a, b uint32, m mxcsr) (uint32, mxcsr)
)

// raise adds exception flags to MXCSR. An unmasked one gives #XM; when the
// operands alone raise it, the flags that come from results are not set.
func (c *CPU) raise(fl mxcsr) Exit {
	m := mxcsr(c.MXCSR)
	open := fl &^ (m >> mxMaskShift) & mxFlags
	if open == 0 {
		c.MXCSR |= uint32(fl & mxFlags)
		return ExitNone
	}
	if open&mxPre != 0 {
		fl &= mxPre
	}
	c.MXCSR |= uint32(fl & mxFlags)
	return c.fault(FaultXM, c.RIP)
}

// setLow32 replaces the low doubleword of an XMM register.
func setLow32(v *Vec, x uint32) { v[0] = v[0]&^0xffffffff | uint64(x) }

func (c *CPU) scalar64(in *Inst, f fpOp64) Exit {
	b, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	r, fl := f(v[0], b, mxcsr(c.MXCSR))
	if fl != 0 {
		if e := c.raise(fl); e != ExitNone {
			return e
		}
	}
	v[0] = r
	return ExitNone
}

func (c *CPU) scalar32(in *Inst, f fpOp32) Exit {
	b, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	r, fl := f(uint32(v[0]), b, mxcsr(c.MXCSR))
	if fl != 0 {
		if e := c.raise(fl); e != ExitNone {
			return e
		}
	}
	setLow32(v, r)
	return ExitNone
}

// commit stores a packed result unless its flags raise #XM.
func (c *CPU) commit(in *Inst, r [2]uint64, fl mxcsr) Exit {
	if fl != 0 {
		if e := c.raise(fl); e != ExitNone {
			return e
		}
	}
	v := &c.V[in.Reg&15]
	v[0], v[1] = r[0], r[1]
	return ExitNone
}

// pair32 applies f to both singles of a quadword.
func pair32(a, b uint64, f fpOp32, m mxcsr) (uint64, mxcsr) {
	r0, f0 := f(uint32(a), uint32(b), m)
	r1, f1 := f(uint32(a>>32), uint32(b>>32), m)
	return uint64(r0) | uint64(r1)<<32, f0 | f1
}

func (c *CPU) packed64(in *Inst, f fpOp64) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, m := &c.V[in.Reg&15], mxcsr(c.MXCSR)
	r0, f0 := f(v[0], lo, m)
	r1, f1 := f(v[1], hi, m)
	return c.commit(in, [2]uint64{r0, r1}, f0|f1)
}

func (c *CPU) packed32(in *Inst, f fpOp32) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, m := &c.V[in.Reg&15], mxcsr(c.MXCSR)
	r0, f0 := pair32(v[0], lo, f, m)
	r1, f1 := pair32(v[1], hi, f, m)
	return c.commit(in, [2]uint64{r0, r1}, f0|f1)
}

func addps(c *CPU, in *Inst) Exit { return c.fast32(in, kindAdd, add32) }
func addpd(c *CPU, in *Inst) Exit { return c.fast64(in, kindAdd, add64) }
func addss(c *CPU, in *Inst) Exit { return c.scalar32(in, add32) }
func addsd(c *CPU, in *Inst) Exit { return c.scalar64(in, add64) }
func subps(c *CPU, in *Inst) Exit { return c.fast32(in, kindSub, sub32) }
func subpd(c *CPU, in *Inst) Exit { return c.fast64(in, kindSub, sub64) }
func subss(c *CPU, in *Inst) Exit { return c.scalar32(in, sub32) }
func subsd(c *CPU, in *Inst) Exit { return c.scalar64(in, sub64) }
func mulps(c *CPU, in *Inst) Exit { return c.fast32(in, kindMul, mul32) }
func mulpd(c *CPU, in *Inst) Exit { return c.fast64(in, kindMul, mul64) }
func mulss(c *CPU, in *Inst) Exit { return c.scalar32(in, mul32) }
func mulsd(c *CPU, in *Inst) Exit { return c.scalar64(in, mul64) }
func divps(c *CPU, in *Inst) Exit { return c.fast32(in, kindDiv, div32) }
func divpd(c *CPU, in *Inst) Exit { return c.fast64(in, kindDiv, div64) }
func divss(c *CPU, in *Inst) Exit { return c.scalar32(in, div32) }
func divsd(c *CPU, in *Inst) Exit { return c.scalar64(in, div64) }
func minps(c *CPU, in *Inst) Exit { return c.packed32(in, min32) }
func minpd(c *CPU, in *Inst) Exit { return c.packed64(in, min64) }
func minss(c *CPU, in *Inst) Exit { return c.scalar32(in, min32) }
func minsd(c *CPU, in *Inst) Exit { return c.scalar64(in, min64) }
func maxps(c *CPU, in *Inst) Exit { return c.packed32(in, max32) }
func maxpd(c *CPU, in *Inst) Exit { return c.packed64(in, max64) }
func maxss(c *CPU, in *Inst) Exit { return c.scalar32(in, max32) }
func maxsd(c *CPU, in *Inst) Exit { return c.scalar64(in, max64) }

// The one-operand forms ignore the destination.
func root64(_, b uint64, m mxcsr) (uint64, mxcsr) { return sqrt64(b, m) }
func root32(_, b uint32, m mxcsr) (uint32, mxcsr) { return sqrt32(b, m) }

func sqrtps(c *CPU, in *Inst) Exit { return c.packed32(in, root32) }
func sqrtpd(c *CPU, in *Inst) Exit { return c.packed64(in, root64) }
func sqrtss(c *CPU, in *Inst) Exit { return c.scalar32(in, root32) }
func sqrtsd(c *CPU, in *Inst) Exit { return c.scalar64(in, root64) }

// addsubpd subtracts in the low lane and adds in the high one.
func addsubpd(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, m := &c.V[in.Reg&15], mxcsr(c.MXCSR)
	r0, f0 := sub64(v[0], lo, m)
	r1, f1 := add64(v[1], hi, m)
	return c.commit(in, [2]uint64{r0, r1}, f0|f1)
}

func addsubps(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, m := &c.V[in.Reg&15], mxcsr(c.MXCSR)
	r0, f0 := sub32(uint32(v[0]), uint32(lo), m)
	r1, f1 := add32(uint32(v[0]>>32), uint32(lo>>32), m)
	r2, f2 := sub32(uint32(v[1]), uint32(hi), m)
	r3, f3 := add32(uint32(v[1]>>32), uint32(hi>>32), m)
	r := [2]uint64{uint64(r0) | uint64(r1)<<32, uint64(r2) | uint64(r3)<<32}
	return c.commit(in, r, f0|f1|f2|f3)
}

// horizontal64 applies f to the two lanes of the destination and of the source.
func (c *CPU) horizontal64(in *Inst, f fpOp64) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, m := &c.V[in.Reg&15], mxcsr(c.MXCSR)
	r0, f0 := f(v[0], v[1], m)
	r1, f1 := f(lo, hi, m)
	return c.commit(in, [2]uint64{r0, r1}, f0|f1)
}

func (c *CPU) horizontal32(in *Inst, f fpOp32) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v, m := &c.V[in.Reg&15], mxcsr(c.MXCSR)
	r0, f0 := pair32(dwords(v[0], v[1]), dwords(v[0]>>32, v[1]>>32), f, m)
	r1, f1 := pair32(dwords(lo, hi), dwords(lo>>32, hi>>32), f, m)
	return c.commit(in, [2]uint64{r0, r1}, f0|f1)
}

func haddpd(c *CPU, in *Inst) Exit { return c.horizontal64(in, add64) }
func haddps(c *CPU, in *Inst) Exit { return c.horizontal32(in, add32) }
func hsubpd(c *CPU, in *Inst) Exit { return c.horizontal64(in, sub64) }
func hsubps(c *CPU, in *Inst) Exit { return c.horizontal32(in, sub32) }

// dot64 multiplies the lanes that imm[5:4] names, adds the products and puts
// the sum into the lanes that imm[1:0] names. The exceptions of each step are
// raised before the next step.
func (c *CPU) dot64(a, b pair, imm uint64) (r pair, e Exit) {
	m := mxcsr(c.MXCSR)
	var p pair
	var fl mxcsr
	for i := range p {
		if imm>>(4+i)&1 != 0 {
			x, f := mul64(a[i], b[i], m)
			p[i], fl = x, fl|f
		}
	}
	if e := c.raise(fl); e != ExitNone {
		return r, e
	}
	s, f := add64(p[0], p[1], m)
	t := s
	if !c.amd() { // the second sum is of the products the other way round
		t, _ = add64(p[1], p[0], m)
	}
	return pair{-(imm & 1) & s, -(imm >> 1 & 1) & t}, c.raise(f)
}

// dot32 does so for the four singles of each of n 128-bit lanes, 1 or 2; the
// products are added in pairs.
func (c *CPU) dot32(a, b [2]pair, n int, imm uint64) (r [2]pair, e Exit) {
	m := mxcsr(c.MXCSR)
	var p, product [8]uint32
	var fl mxcsr
	for i := range uint64(4 * n) {
		if imm>>(4+i&3)&1 != 0 {
			x, f := mul32(uint32(dword(a[i>>2], i)), uint32(dword(b[i>>2], i)), m)
			p[i], fl = x, fl|f
		}
	}
	product = p
	for _, step := range [2]int{4, 2} { // products of a lane that are left
		if e := c.raise(fl); e != ExitNone {
			return r, e
		}
		fl = 0
		for i := range n {
			q := p[4*i : 4*i+4]
			for k := range step / 2 {
				x, f := add32(q[2*k], q[2*k+1], m)
				q[k], fl = x, fl|f
			}
		}
	}
	for i := range n {
		s := p[4*i]
		lo, hi := dwords(uint64(s), uint64(s)), dwords(uint64(s), uint64(s))
		if s&0x7fffffff > 0x7f800000 && !c.amd() { // a NaN
			lo, hi = c.dotNaN(product[4*i : 4*i+4])
		}
		r[i] = pair{lo & blendMask(imm, 32), hi & blendMask(imm>>2, 32)}
	}
	return r, c.raise(fl)
}

// dotNaN is the sum of four products on Intel, for each of four results: there
// each begins with its neighbour's product, so that NaNs come in another order.
func (c *CPU) dotNaN(p []uint32) (lo, hi uint64) {
	var s [4]uint64
	for i := range s {
		a, _ := add32(p[i^1], p[i], mxcsr(c.MXCSR))
		b, _ := add32(p[i^3], p[i^2], mxcsr(c.MXCSR))
		v, _ := add32(a, b, mxcsr(c.MXCSR))
		s[i] = uint64(v)
	}
	return dwords(s[0], s[1]), dwords(s[2], s[3])
}

func dppd(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	r, e := c.dot64(pair{v[0], v[1]}, pair{lo, hi}, in.Imm)
	if e != ExitNone {
		return e
	}
	v[0], v[1] = r[0], r[1]
	return ExitNone
}

func dpps(c *CPU, in *Inst) Exit {
	lo, hi, e := c.vecSrc(in)
	if e != ExitNone {
		return e
	}
	v := &c.V[in.Reg&15]
	r, e := c.dot32([2]pair{{v[0], v[1]}}, [2]pair{{lo, hi}}, 1, in.Imm)
	if e != ExitNone {
		return e
	}
	v[0], v[1] = r[0][0], r[0][1]
	return ExitNone
}
