package x86

// Gathers. The elements are loaded one after the other, lowest first; each one
// loaded clears its mask, so that an instruction that faulted goes on where it
// stopped when it is executed again. The masks of elements that were passed
// over are cleared too, as seen on AMD. On Intel the masks that remain are all
// ones or zeros by then, and with the first element loaded what is above the
// destination is zero, up to bit 511.

// gatherShape says how wide the indexes and the elements are, in bits.
type gatherShape struct {
	index, element uint64
}

// gather loads the elements whose mask in VEX.vvvv is negative into the
// destination, and leaves the mask zero.
func (c *CPU) gather(in *Inst, s gatherShape) Exit {
	if in.Reg == in.VVVV || in.Reg == in.Index || in.VVVV == in.Index {
		return c.ud()
	}
	d, m, x := &c.V[in.Reg&15], &c.V[in.VVVV&15], &c.V[in.Index&15]
	n := uint64(64*vexQuads(in)) / max(s.index, s.element)
	keep := n * s.element / 64 // quadwords of the destination
	loaded := false
	scalar := *in // the address without the index
	scalar.Index = NoReg
	scalar.Seg, scalar.Flags = NoSeg, in.Flags&^InstAddr32
	base := c.ea(&scalar)
	for i := range n {
		p := i * s.element
		if m[p>>6]>>(p&63+s.element-1)&1 == 0 {
			setLane256(m, p, s.element, 0)
			continue
		}
		v, e := c.loadN(c.gatherAddress(in, base, getLane256(x, i*s.index, s.index)), uint8(s.element/8))
		if e != ExitNone {
			if !c.amd() {
				written := uint16(1) << (in.VVVV & 15)
				spreadMask(m, s.element, vexQuads(in))
				if loaded {
					clear(d[vexQuads(in):])
					written |= 1 << (in.Reg & 15)
				}
				c.Wide.clearHigh(written)
			}
			return e
		}
		loaded = true
		setLane256(d, p, s.element, v)
		setLane256(m, p, s.element, 0)
	}
	clear(d[keep:])
	*m = Vec{}
	return ExitNone
}

// spreadMask makes each lane of width bits its sign bit, in the first quads
// quadwords of m, and the others zero.
func spreadMask(m *Vec, width uint64, quads int) {
	for i := range m {
		switch {
		case i >= quads:
			m[i] = 0
		case width == 32:
			m[i] = dwords(uint64(int64(int32(m[i]))>>31), uint64(int64(m[i])>>63))
		default:
			m[i] = uint64(int64(m[i]) >> 63)
		}
	}
}

// gatherAddress adds a sign-extended index to the base.
func (c *CPU) gatherAddress(in *Inst, base uint64, index int64) uint64 {
	a := base + uint64(index)<<(in.Scale&3)
	if in.Flags&InstAddr32 != 0 {
		a = uint64(uint32(a))
	}
	if in.Seg != NoSeg {
		a = c.segment(in.Seg, a)
	}
	return a
}

// getLane256 reads the signed lane of width bits at bit position pos.
func getLane256(v *Vec, pos, width uint64) int64 {
	return int64(v[pos>>6&3]>>(pos&63)<<(64-width)) >> (64 - width)
}

// setLane256 replaces the lane of width bits at bit position pos.
func setLane256(v *Vec, pos, width, x uint64) {
	m := uint64(1)<<width - 1
	q := &v[pos>>6&3]
	*q = *q&^(m<<(pos&63)) | x&m<<(pos&63)
}

// The first letter is the index, the second the element: d 32 bits, q 64.
func vgatherdd(c *CPU, in *Inst) Exit { return c.gather(in, gatherShape{32, 32}) }
func vgatherdq(c *CPU, in *Inst) Exit { return c.gather(in, gatherShape{32, 64}) }
func vgatherqd(c *CPU, in *Inst) Exit { return c.gather(in, gatherShape{64, 32}) }
func vgatherqq(c *CPU, in *Inst) Exit { return c.gather(in, gatherShape{64, 64}) }
