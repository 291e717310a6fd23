package x86

import "math/bits"

// VEX moves, masked moves and gathers.

func vmovups(c *CPU, in *Inst) Exit {
	v, e := c.vexRM(in)
	if e == ExitNone {
		c.V[in.Reg&15] = v
	}
	return e
}

// vexAligned raises #GP for an address that is no multiple of the operand size.
func (c *CPU) vexAligned(in *Inst) (a uint64, e Exit) {
	a = c.ea(in)
	if a&uint64(8*vexQuads(in)-1) != 0 {
		return a, c.gp()
	}
	return a, ExitNone
}

// vmovaps is VMOVAPS, VMOVAPD, VMOVDQA and VMOVNTDQA.
func vmovaps(c *CPU, in *Inst) Exit {
	if isMem(in) {
		if _, e := c.vexAligned(in); e != ExitNone {
			return e
		}
	}
	return vmovups(c, in)
}

// vexStore writes a register to memory at a.
func (c *CPU) vexStore(in *Inst, a uint64, v *Vec) Exit {
	if isWide(in) {
		return c.store256(a, v)
	}
	return c.store128(a, v[0], v[1])
}

// vexRegStore is the register form of a store.
func (c *CPU) vexRegStore(in *Inst) Exit {
	v := c.V[in.Reg&15]
	if !isWide(in) {
		v[2], v[3] = 0, 0
	}
	c.V[in.RM&15] = v
	return ExitNone
}

func vmovupsStore(c *CPU, in *Inst) Exit {
	if !isMem(in) {
		return c.vexRegStore(in)
	}
	return c.vexStore(in, c.ea(in), &c.V[in.Reg&15])
}

func vmovapsStore(c *CPU, in *Inst) Exit {
	if !isMem(in) {
		return c.vexRegStore(in)
	}
	a, e := c.vexAligned(in)
	if e != ExitNone {
		return e
	}
	return c.vexStore(in, a, &c.V[in.Reg&15])
}

func vmovssLoad(c *CPU, in *Inst) Exit {
	x, e := c.load32(c.ea(in))
	if e == ExitNone {
		c.V[in.Reg&15] = Vec{uint64(x)}
	}
	return e
}

func vmovsdLoad(c *CPU, in *Inst) Exit {
	x, e := c.load64(c.ea(in))
	if e == ExitNone {
		c.V[in.Reg&15] = Vec{x}
	}
	return e
}

// The register forms of VMOVSS and VMOVSD merge; the second encoding has
// source and destination exchanged.
func mergeSingle(a, b *Vec) Vec { return Vec{a[0]&^0xffffffff | b[0]&0xffffffff, a[1]} }
func mergeDouble(a, b *Vec) Vec { return Vec{b[0], a[1]} }

func vmovss(c *CPU, in *Inst) Exit {
	c.V[in.Reg&15] = mergeSingle(&c.V[in.VVVV&15], &c.V[in.RM&15])
	return ExitNone
}

func vmovssRev(c *CPU, in *Inst) Exit {
	c.V[in.RM&15] = mergeSingle(&c.V[in.VVVV&15], &c.V[in.Reg&15])
	return ExitNone
}

func vmovsd(c *CPU, in *Inst) Exit {
	c.V[in.Reg&15] = mergeDouble(&c.V[in.VVVV&15], &c.V[in.RM&15])
	return ExitNone
}

func vmovsdRev(c *CPU, in *Inst) Exit {
	c.V[in.RM&15] = mergeDouble(&c.V[in.VVVV&15], &c.V[in.Reg&15])
	return ExitNone
}

func vmovlps(c *CPU, in *Inst) Exit {
	x, e := c.load64(c.ea(in))
	if e == ExitNone {
		c.V[in.Reg&15] = Vec{x, c.V[in.VVVV&15][1]}
	}
	return e
}

// vmovhps is VMOVHPS and VMOVHPD from memory, and VMOVLHPS.
func vmovhps(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e == ExitNone {
		c.V[in.Reg&15] = Vec{c.V[in.VVVV&15][0], x}
	}
	return e
}

func vmovhlps(c *CPU, in *Inst) Exit {
	c.V[in.Reg&15] = Vec{c.V[in.RM&15][1], c.V[in.VVVV&15][1]}
	return ExitNone
}

func vmovsldup(c *CPU, in *Inst) Exit {
	return c.vexMap(in, func(b uint64) uint64 { return dwords(b, b) })
}

func vmovshdup(c *CPU, in *Inst) Exit {
	return c.vexMap(in, func(b uint64) uint64 { return dwords(b>>32, b>>32) })
}

func vmovddup(c *CPU, in *Inst) Exit {
	if isWide(in) {
		v, e := c.vexRM(in)
		if e == ExitNone {
			c.V[in.Reg&15] = Vec{v[0], v[0], v[2], v[2]}
		}
		return e
	}
	x, e := c.vecRM64(in)
	if e == ExitNone {
		c.V[in.Reg&15] = Vec{x, x}
	}
	return e
}

// vmovd is VMOVD and VMOVQ from a general register or memory.
func vmovd(c *CPU, in *Inst) Exit {
	e := movdX(c, in)
	if e == ExitNone {
		clearUpper(&c.V[in.Reg&15])
	}
	return e
}

// clearUpper clears the upper half of a register.
func clearUpper(v *Vec) { v[2], v[3] = 0, 0 }

func vmovq(c *CPU, in *Inst) Exit {
	x, e := c.vecRM64(in)
	if e == ExitNone {
		c.V[in.Reg&15] = Vec{x}
	}
	return e
}

func vmovqStore(c *CPU, in *Inst) Exit {
	x := c.V[in.Reg&15][0]
	if isMem(in) {
		return c.store64(c.ea(in), x)
	}
	c.V[in.RM&15] = Vec{x}
	return ExitNone
}

// signBits collects bits of each quadword, width bits from each.
func (c *CPU) signBits(in *Inst, width uint, f func(q uint64) uint64) Exit {
	v := &c.V[in.RM&15]
	var r uint64
	for i := range vexQuads(in) {
		r |= f(v[i]) << (uint(i) * width)
	}
	c.R[in.Reg&15] = r
	return ExitNone
}

func vpmovmskb(c *CPU, in *Inst) Exit {
	v := &c.V[in.RM&15]
	r := moveMask8(v[0]) | moveMask8(v[1])<<8
	if isWide(in) {
		r |= moveMask8(v[2])<<16 | moveMask8(v[3])<<24
	}
	c.R[in.Reg&15] = r
	return ExitNone
}

func vmovmskps(c *CPU, in *Inst) Exit {
	return c.signBits(in, 2, func(q uint64) uint64 { return q>>31&1 | q>>63<<1 })
}

func vmovmskpd(c *CPU, in *Inst) Exit {
	return c.signBits(in, 1, func(q uint64) uint64 { return q >> 63 })
}

func vzeroupper(c *CPU, _ *Inst) Exit {
	c.unuse(xfeatAVX | xfeatHigh)
	for i := range c.V {
		clearUpper(&c.V[i])
	}
	c.Wide.clearHigh(0xffff)
	return ExitNone
}

func vzeroall(c *CPU, _ *Inst) Exit {
	c.unuse(xfeatSSE | xfeatAVX | xfeatHigh)
	c.V = [16]Vec{}
	c.Wide.clearHigh(0xffff)
	return ExitNone
}

// laneAddress is the address of the lane of size bytes that is off bytes behind the operand at a.
// AMD makes each lane's by itself: one of 32 bits wraps at 4 GiB, and with a segment it is the
// lane's offset that must be canonical, as in segment, and not the operand's.
func (c *CPU) laneAddress(in *Inst, a, off, size uint64) uint64 {
	if in.Flags&InstAddr32 == 0 && in.Seg == NoSeg || c.ID.Vendor != VendorAMD {
		return a + off
	}
	lane := *in
	lane.Disp += int64(off)
	if in.Seg != NoSeg {
		last := lane
		last.Seg = NoSeg
		last.Disp += int64(size) - 1
		if end := c.ea(&last); !canonical(end) {
			return end
		}
	}
	return c.ea(&lane)
}

// maskRange looks at the addresses of a masked move the way Intel does before it
// touches memory; the lanes are of size bytes, and active has a bit for each. An
// address that is not canonical in any active lane comes first. A store that
// crosses into a page it may not write reports its last byte.
func (c *CPU) maskRange(in *Inst, size uint64, active uint, k Access) Exit {
	if c.amd() || active == 0 {
		return ExitNone
	}
	a := c.ea(in)
	first := a + uint64(bits.TrailingZeros(active))*size
	last := a + uint64(bits.Len(active))*size - 1
	if !canonical(first) || !canonical(last) {
		c.Fault = Fault{Kind: FaultNonCanon, Access: k, Addr: a}
		return ExitFault
	}
	if k == Load {
		return ExitNone
	}
	if e := c.probe(first, 1, k); e != ExitNone {
		return e
	}
	return c.probe(last, 1, k)
}

// activeD and activeQ collect the sign bits of the mask's lanes.
func activeD(in *Inst, m *Vec) (r uint) {
	for i := range vexQuads(in) {
		r |= uint(m[i]>>31&1|m[i]>>63<<1) << (2 * i)
	}
	return r
}

func activeQ(in *Inst, m *Vec) (r uint) {
	for i := range vexQuads(in) {
		r |= uint(m[i]>>63) << i
	}
	return r
}

// vmaskloadD and vmaskloadQ load the lanes whose mask in VEX.vvvv is negative;
// the others become zero and are not touched in memory.
func vmaskloadD(c *CPU, in *Inst) Exit {
	m, a := &c.V[in.VVVV&15], c.ea(in)
	if e := c.maskRange(in, 4, activeD(in, m), Load); e != ExitNone {
		return e
	}
	var r Vec
	for i := range uint64(2 * vexQuads(in)) {
		if dword256(m, i)>>31 != 0 {
			x, e := c.load32(c.laneAddress(in, a, 4*i, 4))
			if e != ExitNone {
				return e
			}
			r[i>>1] |= uint64(x) << (i & 1 * 32)
		}
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

func vmaskloadQ(c *CPU, in *Inst) Exit {
	m, a := &c.V[in.VVVV&15], c.ea(in)
	if e := c.maskRange(in, 8, activeQ(in, m), Load); e != ExitNone {
		return e
	}
	var r Vec
	for i := range uint64(vexQuads(in)) {
		if m[i]>>63 != 0 {
			x, e := c.load64(c.laneAddress(in, a, 8*i, 8))
			if e != ExitNone {
				return e
			}
			r[i] = x
		}
	}
	c.V[in.Reg&15] = r
	return ExitNone
}

// vmaskstoreD and vmaskstoreQ store the lanes whose mask is negative, all or none.
func vmaskstoreD(c *CPU, in *Inst) Exit {
	m, v, a := &c.V[in.VVVV&15], &c.V[in.Reg&15], c.ea(in)
	n := uint64(2 * vexQuads(in))
	if e := c.maskRange(in, 4, activeD(in, m), Store); e != ExitNone {
		return e
	}
	for i := range n {
		if dword256(m, i)>>31 != 0 {
			if e := c.probe(c.laneAddress(in, a, 4*i, 4), 4, Store); e != ExitNone {
				return e
			}
		}
	}
	for i := range n {
		if dword256(m, i)>>31 != 0 {
			if e := c.store32(c.laneAddress(in, a, 4*i, 4), uint32(dword256(v, i))); e != ExitNone {
				return e
			}
		}
	}
	return ExitNone
}

func vmaskstoreQ(c *CPU, in *Inst) Exit {
	m, v, a := &c.V[in.VVVV&15], &c.V[in.Reg&15], c.ea(in)
	n := uint64(vexQuads(in))
	if e := c.maskRange(in, 8, activeQ(in, m), Store); e != ExitNone {
		return e
	}
	for i := range n {
		if m[i]>>63 != 0 {
			if e := c.probe(c.laneAddress(in, a, 8*i, 8), 8, Store); e != ExitNone {
				return e
			}
		}
	}
	for i := range n {
		if m[i]>>63 != 0 {
			if e := c.store64(c.laneAddress(in, a, 8*i, 8), v[i]); e != ExitNone {
				return e
			}
		}
	}
	return ExitNone
}

// vexTest sets ZF and CF as PTEST does, for the bits in mask alone.
func (c *CPU) vexTest(in *Inst, mask uint64) Exit {
	b, e := c.vexRM(in)
	if e != ExitNone {
		return e
	}
	a := &c.V[in.Reg&15]
	var both, only uint64
	for i := range vexQuads(in) {
		both |= a[i] & b[i] & mask
		only |= ^a[i] & b[i] & mask
	}
	c.setFlagsRaw(b2u(both == 0)*FlagZF | b2u(only == 0)*FlagCF)
	return ExitNone
}

func vptest(c *CPU, in *Inst) Exit  { return c.vexTest(in, ^uint64(0)) }
func vtestps(c *CPU, in *Inst) Exit { return c.vexTest(in, topD) }
func vtestpd(c *CPU, in *Inst) Exit { return c.vexTest(in, 1<<63) }

// The VEX string comparisons differ in clearing the upper half of XMM0.
func vpcmpestri(c *CPU, in *Inst) Exit { return c.pcmpstr(in, true, true) }
func vpcmpistri(c *CPU, in *Inst) Exit { return c.pcmpstr(in, false, true) }

func vpcmpestrm(c *CPU, in *Inst) Exit {
	e := c.pcmpstr(in, true, false)
	if e == ExitNone {
		clearUpper(&c.V[0])
	}
	return e
}

func vpcmpistrm(c *CPU, in *Inst) Exit {
	e := c.pcmpstr(in, false, false)
	if e == ExitNone {
		clearUpper(&c.V[0])
	}
	return e
}
