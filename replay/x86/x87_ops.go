package x86

// Arithmetic and compare handlers.

// arith does operation op, ModRM.reg of D8, with a = st(0): FADD FMUL FCOM
// FCOMP FSUB FSUBR FDIV FDIVR.
func (x *fctx) arith(op uint8, a, b F80) F80 {
	switch op {
	case 0:
		return x.add(a, b)
	case 1:
		return x.mul(a, b)
	case 4:
		return x.sub(a, b)
	case 5:
		return x.sub(b, a)
	case 6:
		return x.div(a, b)
	}
	return x.div(b, a)
}

// x87Binary does the operation of the opcode between st(0) and a memory
// operand b that stood at a. denormal: it was a denormal single or double.
func (c *CPU) x87Binary(in *Inst, a uint64, b F80, denormal bool) Exit {
	c.x87NoteMem(in, a)
	f := &c.FPU
	op := x87Operation(in)
	isCompare := op&^1 == 2
	if !f.full(0) {
		ok := c.x87StackFault(in, false)
		if isCompare {
			f.setCC(cmpUnordered)
		}
		switch {
		case ok && op == 3:
			f.pop()
		case ok && !isCompare:
			f.set(0, f80Indefinite)
		}
		return ExitNone
	}
	x := f.ctx()
	x.memDenormal = denormal
	if isCompare {
		c.x87Compare(in, &x, f.st(0), b, false, op&1)
		return ExitNone
	}
	if r := x.arith(op, f.st(0), b); c.x87Raise(in, &x) {
		f.set(0, r)
	}
	return ExitNone
}

func x87ArithM32(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 4)
	if e != ExitNone {
		return e
	}
	r, denormal := fromFloat(v, float32Format)
	return c.x87Binary(in, a, r, denormal)
}

func x87ArithM64(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 8)
	if e != ExitNone {
		return e
	}
	r, denormal := fromFloat(v, float64Format)
	return c.x87Binary(in, a, r, denormal)
}

func x87ArithI16(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 2)
	if e != ExitNone {
		return e
	}
	return c.x87Binary(in, a, fromInt(int64(int16(v))), false)
}

func x87ArithI32(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 4)
	if e != ExitNone {
		return e
	}
	return c.x87Binary(in, a, fromInt(int64(int32(v))), false)
}

// x87ArithSt does st(dst) = st(0) op st(i) and pops where pop is set.
func (c *CPU) x87ArithSt(in *Inst, dst uint8, pop bool) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	i := x87Index(in)
	r := f80Indefinite
	var ok bool
	if f.full(0) && f.full(i) {
		x := f.ctx()
		r = x.arith(x87Operation(in), f.st(0), f.st(i))
		ok = c.x87Raise(in, &x)
	} else {
		ok = c.x87StackFault(in, false)
	}
	if ok {
		f.set(dst, r)
		if pop {
			f.pop()
		}
	}
	return ExitNone
}

func x87ArithSt0(c *CPU, in *Inst) Exit { return c.x87ArithSt(in, 0, false) }
func x87ArithSti(c *CPU, in *Inst) Exit { return c.x87ArithSt(in, x87Index(in), false) }
func x87ArithPop(c *CPU, in *Inst) Exit { return c.x87ArithSt(in, x87Index(in), true) }

// x87Compare compares a = st(0) with b, sets C3, C2, C0 and pops. An unmasked
// exception prevents the pop, not the result.
func (c *CPU) x87Compare(in *Inst, x *fctx, a, b F80, quiet bool, pops uint8) {
	f := &c.FPU
	cc := x.compare(a, b, quiet)
	ok := c.x87Raise(in, x)
	f.setCC(cc)
	for ; ok && pops > 0; pops-- {
		f.pop()
	}
}

// x87CompareSt is FCOM, FUCOM and those that pop, with st(i).
func (c *CPU) x87CompareSt(in *Inst, quiet bool, pops uint8) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	i := x87Index(in)
	if f.full(0) && f.full(i) {
		x := f.ctx()
		c.x87Compare(in, &x, f.st(0), f.st(i), quiet, pops)
		return ExitNone
	}
	ok := c.x87StackFault(in, false)
	f.setCC(cmpUnordered)
	for ; ok && pops > 0; pops-- {
		f.pop()
	}
	return ExitNone
}

func x87Fcom(c *CPU, in *Inst) Exit   { return c.x87CompareSt(in, false, 0) }
func x87Fcomp(c *CPU, in *Inst) Exit  { return c.x87CompareSt(in, false, 1) }
func x87Fcompp(c *CPU, in *Inst) Exit { return c.x87CompareSt(in, false, 2) }
func x87Fucom(c *CPU, in *Inst) Exit  { return c.x87CompareSt(in, true, 0) }
func x87Fucomp(c *CPU, in *Inst) Exit { return c.x87CompareSt(in, true, 1) }

// x87Fucompp is DA E9, whose low bits make i = 1.
func x87Fucompp(c *CPU, in *Inst) Exit { return c.x87CompareSt(in, true, 2) }

// x87CompareFlags is FCOMI, FUCOMI and those that pop: the result goes to ZF,
// PF and CF; OF, SF and AF become zero. An unmasked exception prevents the
// pop, not the result.
func (c *CPU) x87CompareFlags(in *Inst, quiet, pop bool) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	i := x87Index(in)
	cc := uint16(cmpUnordered)
	x := f.ctx()
	if f.full(0) && f.full(i) {
		cc = x.compare(f.st(0), f.st(i), quiet)
		x.ex |= f.SW & fpuC1 // kept; SDM vol. 2A has it cleared
	} else {
		x.ex = fpuIE | fpuSF
	}
	ok := c.x87Raise(in, &x)
	var flags uint64
	if cc&fpuC0 != 0 {
		flags |= FlagCF
	}
	if cc&fpuC2 != 0 {
		flags |= FlagPF
	}
	if cc&fpuC3 != 0 {
		flags |= FlagZF
	}
	c.setFlagsRaw(flags)
	if ok && pop {
		f.pop()
	}
	return ExitNone
}

func x87Fcomi(c *CPU, in *Inst) Exit   { return c.x87CompareFlags(in, false, false) }
func x87Fcomip(c *CPU, in *Inst) Exit  { return c.x87CompareFlags(in, false, true) }
func x87Fucomi(c *CPU, in *Inst) Exit  { return c.x87CompareFlags(in, true, false) }
func x87Fucomip(c *CPU, in *Inst) Exit { return c.x87CompareFlags(in, true, true) }

// unary does the operation of D9 and the second opcode byte op.
func (x *fctx) unary(op uint8, a F80) F80 {
	switch op {
	case 0xe0:
		return a.negated()
	case 0xe1:
		return a.absolute()
	case 0xf0:
		return x.f2xm1(a)
	case 0xfa:
		return x.sqrt(a)
	}
	return x.round(a)
}

// x87Unary is FCHS, FABS, F2XM1, FSQRT and FRNDINT: st(0) is replaced.
func x87Unary(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	r := f80Indefinite
	var ok bool
	if f.full(0) {
		x := f.ctx()
		r = x.unary(uint8(in.Imm), f.st(0))
		ok = c.x87Raise(in, &x)
	} else {
		ok = c.x87StackFault(in, false)
	}
	if ok {
		f.set(0, r)
	}
	return ExitNone
}

// x87Ftst compares st(0) with zero.
func x87Ftst(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	if f.full(0) {
		x := f.ctx()
		c.x87Compare(in, &x, f.st(0), F80{}, false, 0)
	} else {
		c.x87StackFault(in, false)
		f.setCC(cmpUnordered)
	}
	return ExitNone
}

// x87Fxam classifies st(0) (SDM vol. 2A, FXAM): C1 is its sign even when empty.
func x87Fxam(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	a := f.st(0)
	var cc uint16
	switch {
	case !f.full(0):
		cc = fpuC3 | fpuC0
	case a.isUnsupported():
		cc = 0
	case a.isNaN():
		cc = fpuC0
	case a.isInf():
		cc = fpuC2 | fpuC0
	case a.isZero():
		cc = fpuC3
	case a.isDenormal():
		cc = fpuC3 | fpuC2
	default:
		cc = fpuC2
	}
	if a.sign() != 0 {
		cc |= fpuC1
	}
	f.setCC(cc)
	return ExitNone
}

// x87Fscale scales st(0) by st(1).
func x87Fscale(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	if !f.full(0) || !f.full(1) {
		if c.x87StackFault(in, false) {
			f.set(0, f80Indefinite)
		}
		return ExitNone
	}
	x := c.x87Ctx()
	if r := x.scale(f.st(0), f.st(1)); c.x87Raise(in, &x) {
		f.set(0, r)
	}
	return ExitNone
}

// x87Fprem and x87Fprem1 replace st(0) by its remainder by st(1).
func x87Fprem(c *CPU, in *Inst) Exit  { return c.x87Remainder(in, false) }
func x87Fprem1(c *CPU, in *Inst) Exit { return c.x87Remainder(in, true) }

func (c *CPU) x87Remainder(in *Inst, nearest bool) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	f.SW &^= fpuC2
	if !f.full(0) || !f.full(1) {
		if c.x87StackFault(in, false) {
			f.set(0, f80Indefinite)
		}
		return ExitNone
	}
	x := c.x87Ctx()
	r, cc, isNumber := x.remainder(f.st(0), f.st(1), nearest)
	if !c.x87Raise(in, &x) {
		return ExitNone
	}
	if isNumber { // a NaN leaves C0 and C3 alone
		f.setCC(cc)
	}
	f.set(0, r)
	return ExitNone
}

// x87Fxtract replaces st(0) by its exponent and pushes its significand.
func x87Fxtract(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	if !f.full(0) || f.full(7) {
		if c.x87StackFault(in, f.full(0)) {
			f.set(0, f80Indefinite)
			f.push(f80Indefinite)
		}
		return ExitNone
	}
	x := f.ctx()
	if exponent, significand := x.extract(f.st(0)); c.x87Raise(in, &x) {
		f.set(0, exponent)
		f.push(significand)
	}
	return ExitNone
}

// x87Constants are the constants of D9 E8 to EE, chopped to 64 bits, and
// whether the rest is above one half of the last place.
var x87Constants = [7]struct {
	v       F80
	exact   bool
	roundUp bool
}{
	{v: F80{M: f80Int, E: f80Bias}, exact: true},                   // 1
	{v: F80{M: 0xd49a784bcd1b8afe, E: f80Bias + 1}},                // log2 10
	{v: F80{M: 0xb8aa3b295c17f0bb, E: f80Bias}, roundUp: true},     // log2 e
	{v: F80{M: 0xc90fdaa22168c234, E: f80Bias + 1}, roundUp: true}, // pi
	{v: F80{M: 0x9a209a84fbcff798, E: f80Bias - 2}, roundUp: true}, // log10 2
	{v: F80{M: 0xb17217f7d1cf79ab, E: f80Bias - 1}, roundUp: true}, // ln 2
	{exact: true}, // 0
}

// x87Fconst pushes a constant, rounded to 64 bits by RC whatever PC says; no
// exception but a stack overflow.
func x87Fconst(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	if f.full(7) {
		if c.x87StackFault(in, true) {
			f.push(f80Indefinite)
		}
		return ExitNone
	}
	k := x87Constants[min(x87Index(in), 6)]
	v := k.v
	if rc := c.x87RC(); !k.exact && (rc == x87Up || rc == x87Nearest && k.roundUp) {
		v.M++
	}
	f.SW &^= fpuC1
	f.push(v)
	return ExitNone
}
