package x86

// EVEX forms that move elements across lanes. Those within 128-bit lanes are evPairs.

// evPermute takes elements of the second source, which the first one's select.
func evPermute(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	width := uint(o.form.elem) * 8
	for i := range o.n {
		setElement(&o.r, width, i, element(&o.b, width, int(element(&o.a, width, i))&(o.n-1)))
	}
	return c.close(in, &o)
}

// evPermuteTwo takes elements of two tables: the index is in the destination (VPERMI2), or
// in the first source, where the first table is the destination (VPERMT2).
//
//go:noinline
func evPermuteTwo(isIndex bool) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.open(in, &o); e != ExitNone {
			return e
		}
		width := uint(o.form.elem) * 8
		index, table := c.ZMM(in.Reg), o.a
		if !isIndex {
			index, table = table, index
		}
		for i := range o.n {
			at := int(element(&index, width, i)) & (2*o.n - 1)
			from := &table
			if at >= o.n {
				from = &o.b
			}
			setElement(&o.r, width, i, element(from, width, at&(o.n-1)))
		}
		return c.close(in, &o)
	}
}

// evPermuteImm is VPERMQ and VPERMPD by an immediate: within 256 bits.
func evPermuteImm(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	for i := range o.quads {
		o.r[i] = o.b[i&^3|int(in.Imm>>(2*(i&3))&3)]
	}
	return c.close(in, &o)
}

// evAlign is VALIGND and VALIGNQ: both sources, shifted right by elements.
func evAlign(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	width := uint(o.form.elem) * 8
	for i := range o.n {
		at, from := i+int(in.Imm)&(o.n-1), &o.b
		if at >= o.n {
			at, from = at-o.n, &o.a
		}
		setElement(&o.r, width, i, element(from, width, at))
	}
	return c.close(in, &o)
}

// evShuffleLanes is VSHUFF32X4 and its kin: 128-bit lanes of the first source in the
// lower half, of the second in the upper one.
func evShuffleLanes(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	lanes := o.quads / 2
	imm := int(in.Imm)
	for i := range lanes {
		from := &o.a
		if i >= lanes/2 {
			from = &o.b
		}
		at := imm & (lanes - 1)
		imm >>= lanes / 2
		o.r[2*i], o.r[2*i+1] = from[2*at], from[2*at+1]
	}
	return c.close(in, &o)
}

// evInsert replaces a part of the first source, of so many quadwords.
//
//go:noinline
func evInsert(quads int) Handler {
	return func(c *CPU, in *Inst) Exit {
		var o evexOp
		if e := c.openPart(in, &o, 8*quads); e != ExitNone {
			return e
		}
		o.r = o.a
		copy(o.r[int(in.Imm)&(o.quads/quads-1)*quads:], o.b[:quads])
		return c.close(in, &o)
	}
}

// evExtract moves a part of so many quadwords to ModRM.rm.
//
//go:noinline
func evExtract(quads int) Handler {
	return func(c *CPU, in *Inst) Exit {
		f := &tablesVar.rows[in.Row].evex
		z := c.ZMM(in.Reg)
		var r zmm
		copy(r[:quads], z[int(in.Imm)&(in.vectorLength()/quads-1)*quads:])
		n := 8 * quads / int(f.elem)
		if isMem(in) { // whatever the mask says
			if e := c.probe(c.ea(in), 8*quads, Store); e != ExitNone {
				return e
			}
		}
		return c.keep(in, &r, n, f.elem, c.maskOf(in, n))
	}
}

// evMoveDouble is VMOVDDUP.
func evMoveDouble(c *CPU, in *Inst) Exit {
	var o evexOp
	if e := c.open(in, &o); e != ExitNone {
		return e
	}
	for i := range o.quads {
		o.r[i] = o.b[i&^1]
	}
	return c.close(in, &o)
}

// laneSLDup and laneSHDup repeat the lower and the upper single of a quadword.
func laneSLDup(b uint64) uint64 { return dwords(b, b) }
func laneSHDup(b uint64) uint64 { return dwords(b>>32, b>>32) }
