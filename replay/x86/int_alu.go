package x86

// Two- and one-operand arithmetic and logic. AF after the logical operations
// is undefined; Intel and AMD clear it.

// operands returns destination and source of a two-operand form, both
// zero-extended from in.Size. With write the destination is going to be
// written: when it is memory, it is checked for that first.
func (c *CPU) operands(in *Inst, write bool) (d, s uint64, e Exit) {
	switch in.form {
	case formRMReg:
		s = c.reg(in)
	case formRMImm:
		s = zeroExtend(in.Imm, in.Size)
	case formRegRM:
		s, e = c.rm(in, in.Size)
		return c.reg(in), s, e
	}
	d, e = c.dest(in, write)
	return d, s, e
}

// dest returns the r/m operand, which with write is going to be written.
func (c *CPU) dest(in *Inst, write bool) (uint64, Exit) {
	if in.Flags&InstMem == 0 {
		return c.intReg(in.RM, in.Size, in.rex()), ExitNone
	}
	a := c.ea(in)
	if write {
		if e := c.probe(a, int(in.Size), Store); e != ExitNone {
			return 0, e
		}
	}
	return c.loadN(a, in.Size)
}

// setDest stores the result of a two-operand form.
func (c *CPU) setDest(in *Inst, v uint64) Exit {
	if in.form == formRegRM {
		c.setReg(in, v)
		return ExitNone
	}
	return c.setRM(in, in.Size, v)
}

// addWith and subWith are ADD, ADC and SUB, SBB.
func (c *CPU) addWith(in *Inst, carry uint64) Exit {
	a, b, e := c.operands(in, true)
	if e != ExitNone {
		return e
	}
	r := a + b + carry
	if e = c.setDest(in, r); e == ExitNone {
		c.addFlags(a, b, r, in.Size)
	}
	return e
}

func (c *CPU) subWith(in *Inst, borrow uint64) Exit {
	a, b, e := c.operands(in, true)
	if e != ExitNone {
		return e
	}
	r := a - b - borrow
	if e = c.setDest(in, r); e == ExitNone {
		c.subFlags(a, b, r, in.Size)
	}
	return e
}

func intAdd(c *CPU, in *Inst) Exit { return c.addWith(in, 0) }
func intAdc(c *CPU, in *Inst) Exit { return c.addWith(in, c.carry()) }
func intSub(c *CPU, in *Inst) Exit { return c.subWith(in, 0) }
func intSbb(c *CPU, in *Inst) Exit { return c.subWith(in, c.carry()) }

func intCmp(c *CPU, in *Inst) Exit {
	a, b, e := c.operands(in, false)
	if e == ExitNone {
		c.subFlags(a, b, a-b, in.Size)
	}
	return e
}

func intTest(c *CPU, in *Inst) Exit {
	a, b, e := c.operands(in, false)
	if e == ExitNone {
		c.logicFlags(a&b, in.Size)
	}
	return e
}

func (c *CPU) logic(in *Inst, r uint64, e Exit) Exit {
	if e != ExitNone {
		return e
	}
	if e = c.setDest(in, r); e == ExitNone {
		c.logicFlags(r, in.Size)
	}
	return e
}

func intOr(c *CPU, in *Inst) Exit {
	a, b, e := c.operands(in, true)
	return c.logic(in, a|b, e)
}

func intAnd(c *CPU, in *Inst) Exit {
	a, b, e := c.operands(in, true)
	return c.logic(in, a&b, e)
}

func intXor(c *CPU, in *Inst) Exit {
	a, b, e := c.operands(in, true)
	return c.logic(in, a^b, e)
}

func intNot(c *CPU, in *Inst) Exit {
	a, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	return c.setRM(in, in.Size, ^a)
}

func intNeg(c *CPU, in *Inst) Exit {
	a, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	if e = c.setRM(in, in.Size, -a); e == ExitNone {
		c.subFlags(0, a, -a, in.Size)
	}
	return e
}

func intInc(c *CPU, in *Inst) Exit {
	a, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	if e = c.setRM(in, in.Size, a+1); e == ExitNone {
		cf := c.cf()
		c.addFlags(a, 1, a+1, in.Size)
		c.setCF(cf)
	}
	return e
}

func intDec(c *CPU, in *Inst) Exit {
	a, e := c.dest(in, true)
	if e != ExitNone {
		return e
	}
	if e = c.setRM(in, in.Size, a-1); e == ExitNone {
		cf := c.cf()
		c.subFlags(a, 1, a-1, in.Size)
		c.setCF(cf)
	}
	return e
}

// intAdcx and intAdox add with carry and touch one flag only.
func intAdcx(c *CPU, in *Inst) Exit {
	b, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	a := c.reg(in)
	r := a + b + c.carry()
	c.setReg(in, r)
	c.setCF(carryOut(a, b, r, in.Size))
	return ExitNone
}

func intAdox(c *CPU, in *Inst) Exit {
	b, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	a := c.reg(in)
	r := a + b
	if c.of() {
		r++
	}
	c.setReg(in, r)
	c.setCO(c.cf(), carryOut(a, b, r, in.Size))
	return ExitNone
}

// carryOut says whether a + b + carry in = r carries out of size bytes.
func carryOut(a, b, r uint64, size uint8) bool {
	return (a&b|(a|b)&^r)>>(8*size-1)&1 != 0
}
