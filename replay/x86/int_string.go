package x86

// String instructions. A REP form runs iteration by iteration: registers are
// always those of a whole number of iterations, so a fault, an attention or a
// single step can stop between any two, and executing the instruction again
// goes on from there. State.RepIter counts the iterations. Measured on AMD
// family 25 model 17, 2026-11-20, and on Intel family 6 model 207, 2026-11-21:
//
//   - The flags between two iterations of CMPS and SCAS are those of the last
//     comparison on AMD, and those of before the instruction on Intel.
//   - With 32-bit addresses and a REP prefix Intel clears the upper half of the
//     counter, and of the pointers of MOVS and STOS, before anything else: also
//     when the counter is zero or the first iteration faults.

// exitRepeat is what a REP instruction returns to Step between iterations. It
// never leaves the package.
const exitRepeat Exit = 255

// stringAddr returns the address in register r for a string instruction.
func (c *CPU) stringAddr(in *Inst, r uint8) uint64 {
	if in.Flags&InstAddr32 != 0 {
		return uint64(uint32(c.R[r]))
	}
	return c.R[r]
}

// source is the address of the source operand, segment override included.
func (c *CPU) source(in *Inst) uint64 {
	a := c.stringAddr(in, RSI)
	if in.Seg != NoSeg {
		a = c.segment(in.Seg, a)
	}
	return a
}

// advance moves register r by n operands in the direction of DF.
func (c *CPU) advance(in *Inst, r uint8, n uint64) {
	d := n * uint64(in.Size)
	if c.eflags&FlagDF != 0 {
		d = -d
	}
	v := c.R[r] + d
	if in.Flags&InstAddr32 != 0 {
		v = uint64(uint32(v))
	}
	c.R[r] = v
}

// repeat runs one, or bulk for as many as it can at once, until the counter is
// zero or, for comparisons, the condition ends it.
func (c *CPU) repeat(in *Inst, compare bool, one func(*CPU, *Inst) Exit, bulk func(*CPU, *Inst, uint64) uint64) Exit {
	if in.Flags&(InstRep|InstRepne) == 0 {
		return one(c, in)
	}
	size := uint8(8)
	if in.Flags&InstAddr32 != 0 {
		size = 4
		if !c.amd() {
			c.cutPointers(in)
		}
	}
	keep := compare && !c.amd()
	for {
		left := zeroExtend(c.R[RCX], size)
		if left == 0 {
			break
		}
		n := uint64(0)
		if bulk != nil && !c.stepping && left > 1 {
			n = bulk(c, in, left)
		}
		res, aux := c.res, c.aux
		if n == 0 {
			if e := one(c, in); e != ExitNone {
				return e
			}
			n = 1
		}
		c.R[RCX] = left - n
		c.RepIter += n
		if left == n || compare && c.zf() != (in.Flags&InstRep != 0) {
			break
		}
		if keep {
			c.res, c.aux = res, aux
		}
		if c.stepping {
			return exitRepeat
		}
		if c.stop&stopOwner != 0 || c.interrupt.Load() {
			c.stop &^= stopOwner
			return ExitAttention
		}
	}
	c.RepIter = 0
	return ExitNone
}

// cutPointers clears the upper halves that Intel clears first.
func (c *CPU) cutPointers(in *Inst) {
	c.R[RCX] = uint64(uint32(c.R[RCX]))
	switch in.Opc {
	case 0xa4, 0xa5: // MOVS
		c.R[RSI] = uint64(uint32(c.R[RSI]))
		c.R[RDI] = uint64(uint32(c.R[RDI]))
	case 0xaa, 0xab: // STOS
		c.R[RDI] = uint64(uint32(c.R[RDI]))
	}
}

func intMovs(c *CPU, in *Inst) Exit { return c.repeat(in, false, movs1, movsBulk) }
func intStos(c *CPU, in *Inst) Exit { return c.repeat(in, false, stos1, stosBulk) }
func intLods(c *CPU, in *Inst) Exit { return c.repeat(in, false, lods1, nil) }
func intCmps(c *CPU, in *Inst) Exit { return c.repeat(in, true, cmps1, nil) }
func intScas(c *CPU, in *Inst) Exit { return c.repeat(in, true, scas1, nil) }

func movs1(c *CPU, in *Inst) Exit {
	v, e := c.loadN(c.source(in), in.Size)
	if e != ExitNone {
		return e
	}
	if e = c.storeN(c.stringAddr(in, RDI), in.Size, v); e == ExitNone {
		c.advance(in, RSI, 1)
		c.advance(in, RDI, 1)
	}
	return e
}

func stos1(c *CPU, in *Inst) Exit {
	e := c.storeN(c.stringAddr(in, RDI), in.Size, c.R[RAX])
	if e == ExitNone {
		c.advance(in, RDI, 1)
	}
	return e
}

func lods1(c *CPU, in *Inst) Exit {
	v, e := c.loadN(c.source(in), in.Size)
	if e == ExitNone {
		c.setIntReg(RAX, in.Size, true, v)
		c.advance(in, RSI, 1)
	}
	return e
}

// cmps1: when both operands fault, the one at rdi is reported, but by REPE CMPSB
// on Zen 4 the one at rsi (family 25 model 17; not on model 1), and by all on Zen 5 (family 26 model 2).
func cmps1(c *CPU, in *Inst) Exit {
	var a, b uint64
	var e Exit
	if in.Size == 1 && in.Flags&InstRep != 0 && c.ID.isZen4() || c.ID.isZen5() {
		if a, e = c.loadN(c.source(in), in.Size); e != ExitNone {
			return e
		}
		if b, e = c.loadN(c.stringAddr(in, RDI), in.Size); e != ExitNone {
			return e
		}
	} else {
		if b, e = c.loadN(c.stringAddr(in, RDI), in.Size); e != ExitNone {
			return e
		}
		if a, e = c.loadN(c.source(in), in.Size); e != ExitNone {
			return e
		}
	}
	c.subFlags(a, b, a-b, in.Size)
	c.advance(in, RSI, 1)
	c.advance(in, RDI, 1)
	return ExitNone
}

func scas1(c *CPU, in *Inst) Exit {
	b, e := c.loadN(c.stringAddr(in, RDI), in.Size)
	if e == ExitNone {
		a := zeroExtend(c.R[RAX], in.Size)
		c.subFlags(a, b, a-b, in.Size)
		c.advance(in, RDI, 1)
	}
	return e
}

// span returns how many operands, up to n, fit between a and the page's end.
func span(a, n uint64, size uint8) uint64 {
	if m := (pageSize - a&(pageSize-1)) / uint64(size); m < n {
		return m
	}
	return n
}

// movsBulk moves up to n operands within one source and one destination page
// and returns how many; 0 when the single step must do it: backwards, slow
// pages, operands that cross a page, or a destination so close above the
// source that a byte would be read after it was written.
func movsBulk(c *CPU, in *Inst, n uint64) uint64 {
	if c.eflags&FlagDF != 0 || in.Flags&InstAddr32 != 0 {
		return 0
	}
	src, dst := c.source(in), c.R[RDI]
	n = span(dst, span(src, n, in.Size), in.Size)
	bytes := n * uint64(in.Size)
	if n < 2 || dst-src < bytes {
		return 0
	}
	q := c.storePage(dst) // first: it may give the page a new place
	if q == nil {
		return 0
	}
	p := c.loadPage(src)
	if p == nil {
		return 0
	}
	s, d := src&(pageSize-1), dst&(pageSize-1)
	if p == q && d-s < bytes {
		return 0 // two addresses of one page
	}
	copy(q[d:d+bytes], p[s:s+bytes])
	c.R[RSI] += bytes
	c.R[RDI] += bytes
	return n
}

// stosBulk is movsBulk for STOS.
func stosBulk(c *CPU, in *Inst, n uint64) uint64 {
	if c.eflags&FlagDF != 0 || in.Flags&InstAddr32 != 0 {
		return 0
	}
	dst := c.R[RDI]
	n = span(dst, n, in.Size)
	if n < 2 {
		return 0
	}
	q := c.storePage(dst)
	if q == nil {
		return 0
	}
	bytes := n * uint64(in.Size)
	d := q[dst&(pageSize-1):][:bytes]
	v := c.R[RAX]
	for i := 0; i < int(in.Size); i++ {
		d[i] = byte(v >> (8 * i))
	}
	for k := int(in.Size); k < len(d); k *= 2 {
		copy(d[k:], d[:k])
	}
	c.R[RDI] += bytes
	return n
}
