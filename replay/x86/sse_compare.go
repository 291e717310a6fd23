package x86

// Floating-point comparisons into masks and into flags.

// cmpTruth has, for each of the 16 predicates, the relations that make it
// true: bit 0 less, 1 equal, 2 greater, 3 unordered (SDM vol. 2, CMPPD). The
// upper 16 of the VEX predicates have the same truth and the opposite
// signalling of quiet NaNs.
var cmpTruth = [16]uint8{
	0b0010, 0b0001, 0b0011, 0b1000, 0b1101, 0b1110, 0b1100, 0b0111,
	0b1010, 0b1001, 0b1011, 0b0000, 0b0101, 0b0110, 0b0100, 0b1111,
}

// cmpSignals says whether predicate p raises IE for quiet NaNs.
func cmpSignals(p uint64) bool { return (p&3 == 1 || p&3 == 2) != (p&16 != 0) }

// cmp64 and cmp32 evaluate predicate p, 0 to 31, to a mask of ones or zeros.
func cmp64(a, b, p uint64, m mxcsr) (uint64, mxcsr) {
	rel, fl := fpDouble.compare(a, b, cmpSignals(p), m)
	return -uint64(cmpTruth[p&15] >> rel & 1), fl
}

func cmp32(a, b uint32, p uint64, m mxcsr) (uint32, mxcsr) {
	rel, fl := fpSingle.compare(uint64(a), uint64(b), cmpSignals(p), m)
	return -uint32(cmpTruth[p&15] >> rel & 1), fl
}

// The legacy forms have eight predicates and ignore the immediate's other bits.
func cmppd(c *CPU, in *Inst) Exit {
	p := in.Imm & 7
	return c.packed64(in, func(a, b uint64, m mxcsr) (uint64, mxcsr) { return cmp64(a, b, p, m) })
}

func cmpps(c *CPU, in *Inst) Exit {
	p := in.Imm & 7
	return c.packed32(in, func(a, b uint32, m mxcsr) (uint32, mxcsr) { return cmp32(a, b, p, m) })
}

// cmpsdX is CMPSD of XMM registers (the string compare has the same name).
func cmpsdX(c *CPU, in *Inst) Exit {
	p := in.Imm & 7
	return c.scalar64(in, func(a, b uint64, m mxcsr) (uint64, mxcsr) { return cmp64(a, b, p, m) })
}

func cmpss(c *CPU, in *Inst) Exit {
	p := in.Imm & 7
	return c.scalar32(in, func(a, b uint32, m mxcsr) (uint32, mxcsr) { return cmp32(a, b, p, m) })
}

// relFlags are the arithmetic flags of COMISD and the like for each relation.
var relFlags = [4]uint64{FlagCF, FlagZF, 0, FlagZF | FlagPF | FlagCF}

func (c *CPU) comi64(in *Inst, signal bool) Exit {
	b, e := c.vecRM64(in)
	if e != ExitNone {
		return e
	}
	a := c.V[in.Reg&15][0]
	if plain64(a) && plain64(b) {
		c.setFlagsRaw(relFlags[relate(fpDouble.ordered(a), fpDouble.ordered(b))])
		return ExitNone
	}
	rel, fl := fpDouble.compare(a, b, signal, mxcsr(c.MXCSR))
	if e := c.raise(fl); e != ExitNone {
		return e
	}
	c.setFlagsRaw(relFlags[rel])
	return ExitNone
}

func (c *CPU) comi32(in *Inst, signal bool) Exit {
	b, e := c.vecRM32(in)
	if e != ExitNone {
		return e
	}
	a := c.V[in.Reg&15][0] & 0xffffffff
	rel, fl := fpSingle.compare(a, uint64(b), signal, mxcsr(c.MXCSR))
	if e := c.raise(fl); e != ExitNone {
		return e
	}
	c.setFlagsRaw(relFlags[rel])
	return ExitNone
}

func comisd(c *CPU, in *Inst) Exit  { return c.comi64(in, true) }
func ucomisd(c *CPU, in *Inst) Exit { return c.comi64(in, false) }
func comiss(c *CPU, in *Inst) Exit  { return c.comi32(in, true) }
func ucomiss(c *CPU, in *Inst) Exit { return c.comi32(in, false) }
