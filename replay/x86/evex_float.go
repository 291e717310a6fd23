package x86

// EVEX floating-point arithmetic. Elements that the mask leaves out raise nothing.

// ev64 and ev32 apply f to the elements of both sources. They are packed without a call between.
//
//go:noinline
func ev64(f fpOp64) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		m, quiet := c.control(in, o.form)
		var fl mxcsr
		for i := range o.quads {
			if o.mask>>i&1 != 0 {
				x, fx := f(o.a[i], o.b[i], m)
				o.r[i], fl = x, fl|fx
			}
		}
		return c.closeFloat(in, &o, fl, quiet)
	}
}

//go:noinline
func ev32(f fpOp32) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		m, quiet := c.control(in, o.form)
		var fl mxcsr
		for i := range o.n {
			if o.mask>>i&1 != 0 {
				s := i & 1 * 32
				x, fx := f(uint32(o.a[i>>1]>>s), uint32(o.b[i>>1]>>s), m)
				o.r[i>>1], fl = o.r[i>>1]|uint64(x)<<s, fl|fx
			}
		}
		return c.closeFloat(in, &o, fl, quiet)
	}
}

// closeFloat raises fl or writes the result.
func (c *CPU) closeFloat(in *Inst, o *evexOp, fl mxcsr, quiet bool) Exit {
	if e := c.settle(fl, quiet); e != ExitNone {
		return e
	}
	return c.close(in, o)
}

// evScalar64 and evScalar32 compute the lowest element.
//
//go:noinline
func evScalar64(f fpOp64) Handler {
	return evScalar(func(a, b, _ uint64, m mxcsr) (uint64, mxcsr) { return f(a, b, m) })
}

//go:noinline
func evScalar32(f fpOp32) Handler {
	return evScalar(func(a, b, _ uint64, m mxcsr) (uint64, mxcsr) {
		r, fl := f(uint32(a), uint32(b), m)
		return uint64(r), fl
	})
}

// fpElement is arithmetic on elements of a form's size, with the immediate.
type fpElement = func(a, b, imm uint64, m mxcsr) (uint64, mxcsr)

// evScalar computes the lowest element of a form.
//
//go:noinline
func evScalar(f fpElement) Handler {
	return func(c *CPU, in *Inst) Exit {
		form := &tablesVar.rows[in.Row].evex
		mask := c.maskOf(in, 1)
		z, e := c.evexSource(in, form, 1, mask)
		if e != ExitNone {
			return e
		}
		var r uint64
		if mask != 0 {
			m, quiet := c.control(in, form)
			a := c.ZMM(in.VVVV)
			x, fl := f(element(&a, uint(form.elem)*8, 0), element(&z, uint(form.unit)*8, 0), in.Imm, m)
			if e := c.settle(fl, quiet); e != ExitNone {
				return e
			}
			r = x
		}
		c.putScalar(in, in.Reg, r)
		return ExitNone
	}
}

// evPacked computes all elements of a form: from elements of form.unit to those of form.elem
// bytes.
//
//go:noinline
func evPacked(f fpElement) Handler {
	return func(c *CPU, in *Inst) Exit {
		return c.packed(in, func(_, a, b uint64, _ int, m mxcsr) (uint64, mxcsr) { return f(a, b, in.Imm, m) })
	}
}

// packed computes the elements in the mask: f has element i of the destination and of both
// sources.
func (c *CPU) packed(in *Inst, f func(d, a, b uint64, i int, m mxcsr) (uint64, mxcsr)) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	from, to, d := uint(o.form.unit)*8, uint(o.form.elem)*8, c.ZMM(in.Reg)
	m, quiet := c.control(in, o.form)
	var fl mxcsr
	for i := range o.n {
		if o.mask>>i&1 != 0 {
			x, fx := f(element(&d, to, i), element(&o.a, from, i), element(&o.b, from, i), i, m)
			setElement(&o.r, to, i, x)
			fl |= fx
		}
	}
	return c.closeFloat(in, &o, fl, quiet)
}

// evCompareFloat is VCMPPS and its kin: predicates on elements of a form's size, the
// lowest alone where it is a scalar.
//
//go:noinline
func evCompareFloat(f fpFormat, scalar bool) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		o.form = &tablesVar.rows[in.Row].evex
		if scalar {
			var e Exit
			o.n, o.mask, o.a = 1, c.maskOf(in, 1), c.ZMM(in.VVVV)
			if o.b, e = c.evexSource(in, o.form, 1, o.mask); e != ExitNone {
				return e
			}
		} else if e := c.open(in, &o); e != ExitNone {
			return e
		}
		m, quiet := c.control(in, o.form)
		p, width := in.Imm&31, uint(o.form.elem)*8
		var r uint64
		var fl mxcsr
		for i := range o.n {
			if o.mask>>i&1 != 0 {
				rel, fx := f.compare(element(&o.a, width, i), element(&o.b, width, i), cmpSignals(p), m)
				r |= uint64(cmpTruth[p&15]>>rel&1) << i
				fl |= fx
			}
		}
		if e := c.settle(fl, quiet); e != ExitNone {
			return e
		}
		return c.putMask(in, r, o.mask)
	}
}

// evFMA is fused multiplication and addition of packed elements, evFMAScalar of the lowest.
func evFMA(c *CPU, in *Inst) Exit {
	width := uint(tablesVar.rows[in.Row].evex.elem) * 8
	return c.packed(in, func(d, a, b uint64, i int, m mxcsr) (uint64, mxcsr) {
		return fmaElement(in.Opc, i&1 != 0, width, d, a, b, m)
	})
}

func evFMAScalar(c *CPU, in *Inst) Exit {
	f, mask := &tablesVar.rows[in.Row].evex, c.maskOf(in, 1)
	b, e := c.evexSource(in, f, 1, mask)
	if e != ExitNone {
		return e
	}
	width, d, a := uint(f.elem)*8, c.ZMM(in.Reg), c.ZMM(in.VVVV)
	m, quiet := c.control(in, f)
	if mask != 0 {
		x, fl := fmaElement(in.Opc, false, width, element(&d, width, 0), element(&a, width, 0), element(&b, width, 0), m)
		if e := c.settle(fl, quiet); e != ExitNone {
			return e
		}
		setElement(&d, width, 0, x)
	} else if in.EVEX.zeroes() {
		setElement(&d, width, 0, 0)
	}
	clear(d[2:])
	c.setZMM(in.Reg, &d)
	return ExitNone
}

// fmaElement multiplies and adds elements of width bits as the opcode says; odd tells the
// odd elements.
func fmaElement(opc uint8, odd bool, width uint, d, a, b uint64, m mxcsr) (uint64, mxcsr) {
	s, other := fmaKind(opc)
	if odd {
		s = other
	}
	x, y, z := fmaOrder(opc, d, a, b)
	if width == 64 {
		return fma64(x, y, z, s, m)
	}
	r, fl := fma32(uint32(x), uint32(y), uint32(z), s, m)
	return uint64(r), fl
}
