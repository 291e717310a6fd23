package x86

// EVEX comparisons, whose result is a mask register, and moves between masks and vectors.

// topBits gathers the top bits of the elements of q, of bytes bytes.
func topBits(q uint64, bytes uint8) uint64 {
	switch bytes {
	case 8:
		return q >> 63
	case 4:
		return q>>31&1 | q>>63<<1
	case 2:
		return q>>15&1 | q>>30&2 | q>>45&4 | q>>60&8
	}
	return moveMask8(q)
}

// evTest sets the mask by the top bits of f, for each element.
//
//go:noinline
func evTest(f func(a, b uint64) uint64) Handler {
	return evTestImm(func(a, b, _ uint64) uint64 { return f(a, b) })
}

// evTestImm is evTest with the immediate.
//
//go:noinline
func evTestImm(f func(a, b, imm uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		var r uint64
		for i := range o.quads {
			r |= topBits(f(o.a[i], o.b[i], in.Imm), o.form.elem) << (uint8(i) * (8 / o.form.elem))
		}
		return c.putMask(in, r, o.mask)
	}
}

// evPredicate is VPCMP: equal, less, less or equal, false, and their opposites.
//
//go:noinline
func evPredicate(equal, greater func(a, b uint64) uint64) Handler {
	return evTestImm(func(a, b, imm uint64) (r uint64) {
		switch imm & 3 {
		case 0:
			r = equal(a, b)
		case 1:
			r = greater(b, a)
		case 2:
			r = ^greater(a, b)
		}
		return r ^ -(imm >> 2 & 1)
	})
}

func laneGtUB(a, b uint64) uint64 { return ^spreadB(swarGE(b, a, topB)) }
func laneGtUW(a, b uint64) uint64 { return ^spreadW(swarGE(b, a, topW)) }
func laneGtUD(a, b uint64) uint64 { return ^spreadD(swarGE(b, a, topD)) }
func laneGtUQ(a, b uint64) uint64 { return -b2u(a > b) }

// both makes a test of the bits that both sources have: whether there are none.
//
//go:noinline
func both(equal func(a, b uint64) uint64) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 { return equal(a&b, 0) }
}

// not is the opposite of a test.
//
//go:noinline
func not(f func(a, b uint64) uint64) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 { return ^f(a, b) }
}

// evFromMask makes elements of bytes bytes from the bits of the mask register in ModRM.rm.
//
//go:noinline
func evFromMask(bytes uint8) Handler {
	return func(c *CPU, in *Inst) Exit {
		var r zmm
		for i := range in.vectorLength() {
			r[i] = spreadMaskBits(c.Wide.K[in.RM&7], bytes, i)
		}
		c.put(in, in.Reg, &r, 0, 0, 0)
		return ExitNone
	}
}

// evToMask collects the top bits of elements of bytes bytes.
//
//go:noinline
func evToMask(bytes uint8) Handler {
	return func(c *CPU, in *Inst) Exit {
		z := c.ZMM(in.RM)
		var r uint64
		for i := range in.vectorLength() {
			r |= topBits(z[i], bytes) << (uint8(i) * (8 / bytes))
		}
		c.Wide.K[in.Reg&7] = r
		return ExitNone
	}
}

// evMaskBroadcast is VPBROADCASTMB2Q and VPBROADCASTMW2D: the low bits of a mask in each
// element.
//
//go:noinline
func evMaskBroadcast(f func(k uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		q := f(c.Wide.K[in.RM&7])
		r := zmm{q, q, q, q, q, q, q, q}
		c.put(in, in.Reg, &r, 0, 0, 0)
		return ExitNone
	}
}

func maskByte(k uint64) uint64 { return k & 0xff }
func maskWord(k uint64) uint64 { return k & 0xffff * 0x100000001 }

// evShuffleBits is VPSHUFBITQMB: bits of the first source that bytes of the second select.
func evShuffleBits(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	var r uint64
	for i := range o.quads {
		for j := range 8 {
			r |= o.a[i] >> (o.b[i] >> (8 * j) & 63) & 1 << (8*i + j)
		}
	}
	return c.putMask(in, r, o.mask)
}

// evBlend takes the second source where the mask is set, and the first one elsewhere.
func evBlend(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	if !in.EVEX.zeroes() {
		for i := range o.quads {
			o.b[i] = pick(spreadMaskBits(o.mask, o.form.elem, i), o.b[i], o.a[i])
		}
		o.mask = allOf(o.n)
	}
	c.put(in, in.Reg, &o.b, o.n, o.form.elem, o.mask)
	return ExitNone
}
