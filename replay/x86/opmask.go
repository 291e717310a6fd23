package x86

// Instructions on the mask registers K0 to K7 (SDM vol. 2A, KADDW and following).
// Their operand size is in VEX.W and VEX.pp: it is the last letter of the name.

// kTwo applies f to two mask registers, of width bits.
//
//go:noinline
func kTwo(width uint, f func(a, b uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		k := &c.Wide.K
		k[in.Reg&7] = f(k[in.VVVV&7], k[in.RM&7]) & allOf(int(width))
		return ExitNone
	}
}

func kNot(_, b uint64) uint64      { return ^b }
func kXnor(a, b uint64) uint64     { return ^(a ^ b) }
func kUnpack8(a, b uint64) uint64  { return a<<8 | b&0xff }
func kUnpack16(a, b uint64) uint64 { return a<<16 | b&0xffff }
func kUnpack32(a, b uint64) uint64 { return a<<32 | b&0xffffffff }

// kShift shifts by the immediate.
//
//go:noinline
func kShift(width uint, f func(a, n uint64) uint64) Handler {
	return func(c *CPU, in *Inst) Exit {
		m := allOf(int(width))
		c.Wide.K[in.Reg&7] = f(c.Wide.K[in.RM&7]&m, in.Imm&0xff) & m
		return ExitNone
	}
}

// kTest sets ZF and CF by width bits of what f makes.
//
//go:noinline
func kTest(width uint, f func(a, b uint64) (zero, carry uint64)) Handler {
	return func(c *CPU, in *Inst) Exit {
		z, cf := f(c.Wide.K[in.Reg&7], c.Wide.K[in.RM&7])
		m := allOf(int(width))
		c.setFlagsRaw(b2u(z&m == 0)*FlagZF | b2u(cf&m == 0)*FlagCF)
		return ExitNone
	}
}

func kOrTest(a, b uint64) (zero, carry uint64)  { return a | b, ^(a | b) }
func kAndTest(a, b uint64) (zero, carry uint64) { return a & b, ^a & b }

// kLoad, kStore, kFrom and kTo are KMOV: from a mask register or memory, to memory, from and
// to a general register.
//
//go:noinline
func kLoad(width uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		if !isMem(in) {
			c.Wide.K[in.Reg&7] = c.Wide.K[in.RM&7] & allOf(int(width))
			return ExitNone
		}
		v, e := c.loadN(c.ea(in), uint8(width/8))
		if e == ExitNone {
			c.Wide.K[in.Reg&7] = v
		}
		return e
	}
}

//go:noinline
func kStore(width uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		return c.storeN(c.ea(in), uint8(width/8), c.Wide.K[in.Reg&7])
	}
}

//go:noinline
func kFrom(width uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		c.Wide.K[in.Reg&7] = c.R[in.RM&15] & allOf(int(width))
		return ExitNone
	}
}

//go:noinline
func kTo(width uint) Handler {
	return func(c *CPU, in *Inst) Exit {
		c.R[in.Reg&15] = c.Wide.K[in.RM&7] & allOf(int(width))
		return ExitNone
	}
}
