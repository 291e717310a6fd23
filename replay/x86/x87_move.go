package x86

// Loads, stores and register moves.

// x87Load pushes v, which stood at a. denormal: it was a denormal single or
// double.
func (c *CPU) x87Load(in *Inst, a uint64, v F80, denormal bool) Exit {
	c.x87NoteMem(in, a)
	f := &c.FPU
	if f.full(7) {
		if c.x87StackFault(in, true) {
			f.push(f80Indefinite)
		}
		return ExitNone
	}
	x := f.ctx()
	if denormal {
		x.ex |= fpuDE
	}
	if v.isSNaN() && in.Opc&3 == 1 && x87Operation(in) == 0 { // D9 /0 and DD /0, not DB /5
		x.ex |= fpuIE
		v = v.quieted()
	}
	c.x87Raise(in, &x)
	if x.ex&^x.cw&fpuIE == 0 { // an unmasked DE does not keep FLD from pushing
		f.push(v)
	}
	return ExitNone
}

// x87Operand waits, then loads size bytes (2, 4 or 8), zero-extended.
func (c *CPU) x87Operand(in *Inst, size uint8) (v, a uint64, e Exit) {
	if e := c.x87Wait(); e != ExitNone {
		return 0, 0, e
	}
	a = c.ea(in)
	switch size {
	case 2:
		w, e := c.load16(a)
		return uint64(w), a, e
	case 4:
		d, e := c.load32(a)
		return uint64(d), a, e
	}
	v, e = c.load64(a)
	return v, a, e
}

func x87FldM32(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 4)
	if e != ExitNone {
		return e
	}
	r, denormal := fromFloat(v, float32Format)
	return c.x87Load(in, a, r, denormal)
}

func x87FldM64(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 8)
	if e != ExitNone {
		return e
	}
	r, denormal := fromFloat(v, float64Format)
	return c.x87Load(in, a, r, denormal)
}

func x87FildM16(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 2)
	if e != ExitNone {
		return e
	}
	return c.x87Load(in, a, fromInt(int64(int16(v))), false)
}

func x87FildM32(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 4)
	if e != ExitNone {
		return e
	}
	return c.x87Load(in, a, fromInt(int64(int32(v))), false)
}

func x87FildM64(c *CPU, in *Inst) Exit {
	v, a, e := c.x87Operand(in, 8)
	if e != ExitNone {
		return e
	}
	return c.x87Load(in, a, fromInt(int64(v)), false)
}

// x87FldM80 loads as it stands: no number format raises an exception.
func x87FldM80(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	a := c.ea(in)
	m, e := c.load64(a)
	if e != ExitNone {
		return e
	}
	se, e := c.load16(a + 8)
	if e != ExitNone {
		return e
	}
	return c.x87Load(in, a, F80{M: m, E: se}, false)
}

func x87Fbld(c *CPU, in *Inst) Exit {
	var b [10]byte
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	a := c.ea(in)
	if e := c.loadBytes(a, b[:8]); e != ExitNone {
		return e // in two parts, see x87StoreTen
	}
	if e := c.loadBytes(a+8, b[8:]); e != ExitNone {
		return e
	}
	return c.x87Load(in, a, fromBCD(&b), false)
}

// x87FldSt pushes a copy of st(i).
func x87FldSt(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	i := x87Index(in)
	switch {
	case f.full(7), !f.full(i):
		if c.x87StackFault(in, f.full(i)) { // an empty source comes first
			f.push(f80Indefinite)
		}
	default:
		v := f.st(i)
		f.SW &^= fpuC1
		f.push(v)
	}
	return ExitNone
}

// x87StoreFloat is FST and FSTP to a single or double.
func (c *CPU) x87StoreFloat(in *Inst, ff floatFormat, pop bool) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	f := &c.FPU
	x := f.ctx()
	var v uint64
	var stored bool
	if f.full(0) {
		v, stored = x.toFloat(f.st(0), ff)
	} else {
		x.ex = fpuIE | fpuSF
		stored = !x.stopped()
		v = (1<<(ff.exp+2) - 1) << (ff.prec - 2) // the indefinite: sign, exponent, quiet bit
	}
	a := c.ea(in)
	if e := c.x87Store(a, v, uint8(ff.exp+ff.prec)/8, stored); e != ExitNone {
		return e
	}
	c.x87NoteMem(in, a)
	c.x87Raise(in, &x)
	if stored && pop {
		f.pop()
	}
	return ExitNone
}

// x87Store stores size bytes of v at a; where an unmasked exception prevents
// that, AMD checks whether it could, Intel does not look at the memory.
func (c *CPU) x87Store(a, v uint64, size uint8, do bool) Exit {
	switch {
	case !do && c.ID.Vendor == VendorIntel:
		return ExitNone
	case !do:
		return c.probe(a, int(size), Store)
	}
	switch size {
	case 2:
		return c.store16(a, uint16(v))
	case 4:
		return c.store32(a, uint32(v))
	}
	return c.store64(a, v)
}

func x87FstM32(c *CPU, in *Inst) Exit  { return c.x87StoreFloat(in, float32Format, false) }
func x87FstM64(c *CPU, in *Inst) Exit  { return c.x87StoreFloat(in, float64Format, false) }
func x87FstpM32(c *CPU, in *Inst) Exit { return c.x87StoreFloat(in, float32Format, true) }
func x87FstpM64(c *CPU, in *Inst) Exit { return c.x87StoreFloat(in, float64Format, true) }

// x87StoreInt is FIST, FISTP and FISTTP.
func (c *CPU) x87StoreInt(in *Inst, size uint8, rc uint16, pop bool) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	f := &c.FPU
	x := f.ctx()
	v := uint64(1) << (size*8 - 1)
	if f.full(0) {
		v = x.toInt(f.st(0), uint(size)*8, rc)
	} else {
		x.ex = fpuIE | fpuSF
	}
	a := c.ea(in)
	if e := c.x87Store(a, v, size, !x.stopped()); e != ExitNone {
		return e
	}
	c.x87NoteMem(in, a)
	if c.x87Raise(in, &x) && pop {
		f.pop()
	}
	return ExitNone
}

func x87FistM16(c *CPU, in *Inst) Exit   { return c.x87StoreInt(in, 2, c.x87RC(), false) }
func x87FistM32(c *CPU, in *Inst) Exit   { return c.x87StoreInt(in, 4, c.x87RC(), false) }
func x87FistpM16(c *CPU, in *Inst) Exit  { return c.x87StoreInt(in, 2, c.x87RC(), true) }
func x87FistpM32(c *CPU, in *Inst) Exit  { return c.x87StoreInt(in, 4, c.x87RC(), true) }
func x87FistpM64(c *CPU, in *Inst) Exit  { return c.x87StoreInt(in, 8, c.x87RC(), true) }
func x87FisttpM16(c *CPU, in *Inst) Exit { return c.x87StoreInt(in, 2, x87Chop, true) }
func x87FisttpM32(c *CPU, in *Inst) Exit { return c.x87StoreInt(in, 4, x87Chop, true) }
func x87FisttpM64(c *CPU, in *Inst) Exit { return c.x87StoreInt(in, 8, x87Chop, true) }

func (c *CPU) x87RC() uint16 { return c.FPU.CW >> 10 & 3 }

// x87StoreTen stores 10 bytes and pops, with the exceptions of x.
func (c *CPU) x87StoreTen(in *Inst, x *fctx, b *[10]byte) Exit {
	a := c.ea(in)
	var e Exit
	switch {
	case !x.stopped() && c.ID.Vendor == VendorIntel: // in two parts, each for itself
		if e = c.storeBytes(a, b[:8]); e == ExitNone {
			e = c.storeBytes(a+8, b[8:])
		}
	case !x.stopped():
		e = c.storeBytes(a, b[:])
	case c.ID.Vendor != VendorIntel: // see x87Store
		e = c.probe(a, 10, Store)
	}
	if e != ExitNone {
		if f := c.probe(a, 8, Store); f != ExitNone {
			return f // the significand goes first: its #PF before the #GP of the rest
		}
		return c.probe(a, 10, Store)
	}
	c.x87NoteMem(in, a)
	if c.x87Raise(in, x) {
		c.FPU.pop()
	}
	return ExitNone
}

func x87FstpM80(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	f := &c.FPU
	x := f.ctx()
	v := f.st(0)
	if !f.full(0) {
		x.ex, v = fpuIE|fpuSF, f80Indefinite
	}
	var b [10]byte
	v.put(b[:])
	return c.x87StoreTen(in, &x, &b)
}

func x87Fbstp(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	f := &c.FPU
	x := f.ctx()
	b := indefiniteBCD
	if f.full(0) {
		b = x.toBCD(f.st(0))
	} else {
		x.ex = fpuIE | fpuSF
	}
	return c.x87StoreTen(in, &x, &b)
}

// x87FstSt copies st(0) to st(i); FSTP and its aliases pop after it.
func x87FstSt(c *CPU, in *Inst) Exit  { return c.x87StoreSt(in, false) }
func x87FstpSt(c *CPU, in *Inst) Exit { return c.x87StoreSt(in, true) }

func (c *CPU) x87StoreSt(in *Inst, pop bool) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	v := f.st(0)
	f.SW &^= fpuC1
	if !f.full(0) {
		if !c.x87StackFault(in, false) {
			return ExitNone
		}
		v = f80Indefinite
	}
	f.set(x87Index(in), v)
	if pop {
		f.pop()
	}
	return ExitNone
}

// x87FstpNoFault is the alias D9 D8+i of FSTP st(i), which only pops where
// st(0) is empty.
func x87FstpNoFault(c *CPU, in *Inst) Exit {
	if c.FPU.full(0) {
		return c.x87StoreSt(in, true)
	}
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	c.FPU.SW &^= fpuC1
	c.FPU.pop()
	return ExitNone
}

// x87Fxch exchanges st(0) and st(i).
func x87Fxch(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	i := x87Index(in)
	f.SW &^= fpuC1
	if !f.full(0) || !f.full(i) {
		if !c.x87StackFault(in, false) {
			return ExitNone
		}
		for _, k := range [2]uint8{0, i} {
			if !f.full(k) {
				f.set(k, f80Indefinite)
			}
		}
	}
	a, b := f.st(0), f.st(i)
	f.set(0, b)
	f.set(i, a)
	return ExitNone
}

// x87Fcmov copies st(i) to st(0) where the condition of the opcode holds:
// DA C0+8k for B, E, BE, U; DB C0+8k for their opposites. C1 keeps its value.
func x87Fcmov(c *CPU, in *Inst) Exit {
	if e := c.x87Wait(); e != ExitNone {
		return e
	}
	c.x87Note(in)
	f := &c.FPU
	i := x87Index(in)
	if !f.full(0) || !f.full(i) {
		if c.x87StackFault(in, false) {
			f.set(0, f80Indefinite)
		}
		return ExitNone
	}
	masks := [4]uint64{FlagCF, FlagZF, FlagCF | FlagZF, FlagPF}
	holds := c.Flags()&masks[x87Operation(in)&3] != 0
	if negated := in.Imm>>8&1 != 0; holds != negated { // opcode DB, not DA
		f.set(0, f.st(i))
	}
	return ExitNone
}
