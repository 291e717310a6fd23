package x86

import "math/bits"

// EVEX moves: with masks, between registers and memory, and the forms of 128 bits that
// do what the VEX forms do.

// evLoad moves ModRM.rm to the destination.
func evLoad(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	c.put(in, in.Reg, &o.b, o.n, o.form.elem, o.mask)
	return ExitNone
}

// evStore moves the register in ModRM.reg to ModRM.rm.
func evStore(c *CPU, in *Inst) Exit {
	f := &tablesVar.rows[in.Row].evex
	bytes := max(f.elem, f.unit)
	n := 8 * in.vectorLength() / int(bytes)
	r := c.ZMM(in.Reg)
	return c.keep(in, &r, n, bytes, c.maskOf(in, n))
}

// evAligned raises #GP for an address that is no multiple of the vector length.
//
//go:noinline
func evAligned(h Handler) Handler {
	return func(c *CPU, in *Inst) Exit {
		f := &tablesVar.rows[in.Row].evex
		isMasked := f.elem != 0 && c.maskOf(in, 8*in.vectorLength()/int(f.elem)) == 0
		if isMem(in) && !isMasked && c.ea(in)&uint64(8*in.vectorLength()-1) != 0 {
			return c.gp()
		}
		return h(c, in)
	}
}

// evLoadScalar is VMOVSS and VMOVSD from memory, evMoveScalar between registers, with
// the destination in ModRM.rm where the row says so, evStoreScalar to memory.
func evLoadScalar(c *CPU, in *Inst) Exit {
	f := &tablesVar.rows[in.Row].evex
	r, e := c.evexSource(in, f, 1, c.maskOf(in, 1))
	if e == ExitNone {
		c.put(in, in.Reg, &r, 1, f.elem, c.maskOf(in, 1))
	}
	return e
}

func evMoveScalar(c *CPU, in *Inst) Exit {
	from, to := in.RM, in.Reg
	f := &tablesVar.rows[in.Row].evex
	if in.Opc == 0x11 {
		from, to = to, from
	}
	z := c.ZMM(from)
	c.putScalar(in, to, element(&z, uint(f.elem)*8, 0))
	return ExitNone
}

func evStoreScalar(c *CPU, in *Inst) Exit {
	r, f := c.ZMM(in.Reg), &tablesVar.rows[in.Row].evex
	return c.keep(in, &r, 1, f.elem, c.maskOf(in, 1))
}

// putScalar writes the lowest element of a register, unless it is masked; the rest of 128
// bits comes from the register in vvvv.
func (c *CPU) putScalar(in *Inst, reg uint8, v uint64) {
	width := uint(tablesVar.rows[in.Row].evex.elem) * 8
	if c.maskOf(in, 1) == 0 {
		if v = 0; !in.EVEX.zeroes() {
			old := c.ZMM(reg)
			v = element(&old, width, 0)
		}
	}
	r := c.ZMM(in.VVVV)
	clear(r[2:])
	setElement(&r, width, 0, v)
	c.setZMM(reg, &r)
}

// evAs executes a form without masks by the handler of its VEX form: with the vector
// registers that it names in the places of XMM0 to XMM2, and with its rounding mode.
//
//go:noinline
func evAs(h Handler) Handler {
	return func(c *CPU, in *Inst) Exit {
		f := &tablesVar.rows[in.Row].evex
		as, was, mxcsr := *in, [3]Vec(c.V[:3]), c.MXCSR
		isVector := [3]bool{f.reg == operandVector, f.flags&evexVVVV != 0, f.rm == operandVector && !isMem(in)}
		var from [3]zmm
		for i, at := range [3]*uint8{&as.Reg, &as.VVVV, &as.RM} {
			if isVector[i] {
				from[i] = c.ZMM(*at)
				*at = uint8(i)
			}
		}
		for i := range from {
			if isVector[i] {
				c.V[i] = Vec(from[i][:4])
			}
		}
		m, quiet := c.control(in, f)
		c.MXCSR = uint32(m)
		e := h(c, &as)
		if quiet {
			c.MXCSR = mxcsr
		}
		to := [3]Vec(c.V[:3])
		copy(c.V[:3], was[:])
		switch {
		case e != ExitNone:
		case f.flags&evexStores != 0 && isVector[2]:
			c.setZMM(in.RM, &zmm{to[2][0], to[2][1]})
		case f.flags&evexStores == 0 && f.reg == operandVector && tablesVar.rows[in.Row].use.dest&destReg != 0:
			c.setZMM(in.Reg, &zmm{to[0][0], to[0][1]})
		}
		return e
	}
}

// evBroadcast fills the destination with the first bytes bytes of the source, a
// register or memory.
//
//go:noinline
func evBroadcast(bytes int) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.openPart(in, &o, bytes); e != ExitNone {
			return e
		}
		for i := range o.quads {
			o.r[i] = o.b[0]
			if bytes >= 8 {
				o.r[i] = o.b[i%(bytes/8)]
			}
		}
		return c.fill(in, &o, uint(bytes)*8)
	}
}

// fill repeats the lowest element of width bits in each quadword of the result.
func (c *CPU) fill(in *Inst, o *evexOp, width uint) Exit {
	for i := range o.quads {
		for at := width; at < 64; at *= 2 {
			o.r[i] = o.r[i]&(1<<at-1) | o.r[i]<<at
		}
	}
	return c.close(in, o)
}

// openPart is open for a source of so many bytes, whatever the vector length: it is
// not accessed where no element is in the mask.
func (c *CPU) openPart(in *Inst, o *evexOp, bytes int) (e Exit) {
	o.form = &tablesVar.rows[in.Row].evex
	o.quads = in.vectorLength()
	o.n = 8 * o.quads / int(o.form.elem)
	o.mask = c.maskOf(in, o.n)
	if o.form.flags&evexVVVV != 0 {
		o.a = c.ZMM(in.VVVV)
	}
	switch {
	case !isMem(in):
		o.b = c.ZMM(in.RM)
	case o.form.flags&evexEager != 0 || in.EVEX.Mask() == 0:
		o.b, e = c.loadZMM(c.ea(in), bytes)
	default: // an element is there for all that are made of it
		var mask uint64
		part := max(bytes/int(o.form.elem), 1)
		for i := 0; i < o.n; i += part {
			mask |= o.mask >> i
		}
		o.b, e = c.loadMasked(in, bytes, int(o.form.elem), mask&allOf(part))
	}
	return e
}

// evBroadcastGeneral fills the destination with a general register.
func evBroadcastGeneral(c *CPU, in *Inst) Exit {
	f := &tablesVar.rows[in.Row].evex
	o := evexOp{form: f, quads: in.vectorLength()}
	o.n = 8 * o.quads / int(f.elem)
	o.mask = c.maskOf(in, o.n)
	for i := range o.quads {
		o.r[i] = c.R[in.RM&15]
	}
	return c.fill(in, &o, uint(f.elem)*8)
}

// evExtend widens elements of from bits to to bits.
//
//go:noinline
func evExtend(from, to uint, signed bool) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		for i := range o.n {
			v := element(&o.b, from, i)
			if signed {
				v = uint64(int64(v<<(64-from)) >> (64 - from))
			}
			setElement(&o.r, to, i, v)
		}
		return c.close(in, &o)
	}
}

// evTruncate narrows elements of from bits to to bits by f.
//
//go:noinline
func evTruncate(from, to uint, f func(v uint64, from, to uint) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		z := c.ZMM(in.Reg)
		n := 64 * in.vectorLength() / int(from)
		var r zmm
		for i := range n {
			setElement(&r, to, i, f(element(&z, from, i), from, to))
		}
		return c.keep(in, &r, n, uint8(to/8), c.maskOf(in, n))
	}
}

// The ways to narrow an element.
func truncate(v uint64, _, _ uint) uint64 { return v }

func saturateSigned(v uint64, from, to uint) uint64 {
	s := int64(v<<(64-from)) >> (64 - from)
	return uint64(max(-1<<(to-1), min(1<<(to-1)-1, s)))
}

func saturateUnsigned(v uint64, _, to uint) uint64 { return min(v, 1<<to-1) }

// evCompress packs the elements in the mask.
func evCompress(c *CPU, in *Inst) Exit {
	f := &tablesVar.rows[in.Row].evex
	width := uint(f.elem) * 8
	n := 64 * in.vectorLength() / int(width)
	mask, z := c.maskOf(in, n), c.ZMM(in.Reg)
	var r zmm
	at := 0
	for i := range n {
		if mask>>i&1 != 0 {
			setElement(&r, width, at, element(&z, width, i))
			at++
		}
	}
	if isMem(in) {
		return c.storeElements(in, &r, at*int(f.elem), int(f.elem), ^uint64(0))
	}
	c.put(in, in.RM, &r, n, f.elem, uint64(1)<<at-1)
	return ExitNone
}

// evExpand is the inverse: it spreads the first elements of the source to those in the mask.
func evExpand(c *CPU, in *Inst) Exit {
	f := &tablesVar.rows[in.Row].evex
	width := uint(f.elem) * 8
	n := 64 * in.vectorLength() / int(width)
	mask := c.maskOf(in, n)
	z, e := c.ZMM(in.RM&31), ExitNone
	if isMem(in) {
		count := bits.OnesCount64(mask)
		if in.EVEX.Mask() == 0 {
			z, e = c.loadZMM(c.ea(in), count*int(f.elem))
		} else {
			z, e = c.loadMasked(in, count*int(f.elem), int(f.elem), ^uint64(0))
		}
		if e != ExitNone {
			return e
		}
	}
	var r zmm
	at := 0
	for i := range n {
		if mask>>i&1 != 0 {
			setElement(&r, width, i, element(&z, width, at))
			at++
		}
	}
	c.put(in, in.Reg, &r, n, f.elem, mask)
	return ExitNone
}
