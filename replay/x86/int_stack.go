package x86

// The stack. A push that faults leaves RSP alone.

// push stores v of size bytes below the stack pointer and moves it.
func (c *CPU) push(v uint64, size uint8) Exit {
	a := c.R[RSP] - uint64(size)
	e := c.storeN(a, size, v)
	if e == ExitNone {
		c.R[RSP] = a
	}
	return c.onStack(e)
}

// top loads size bytes from the stack; it does not move the pointer.
func (c *CPU) top(size uint8) (uint64, Exit) {
	v, e := c.loadN(c.R[RSP], size)
	return v, c.onStack(e)
}

func intPush(c *CPU, in *Inst) Exit    { return c.push(c.reg(in), in.Size) }
func intPushImm(c *CPU, in *Inst) Exit { return c.push(in.Imm, in.Size) }

func intPushRM(c *CPU, in *Inst) Exit {
	v, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	return c.push(v, in.Size)
}

// intPop: POP RSP gets the value, not the moved pointer.
func intPop(c *CPU, in *Inst) Exit {
	v, e := c.top(in.Size)
	if e == ExitNone {
		c.R[RSP] += uint64(in.Size)
		c.setReg(in, v)
	}
	return e
}

// intPopRM computes its address with the stack pointer already moved.
func intPopRM(c *CPU, in *Inst) Exit {
	v, e := c.top(in.Size)
	if e != ExitNone {
		return e
	}
	c.R[RSP] += uint64(in.Size)
	if e = c.setRM(in, in.Size, v); e != ExitNone {
		c.R[RSP] -= uint64(in.Size)
	}
	return e
}

// segOf is the segment of PUSH and POP FS and GS: 0F A0, A1, A8, A9.
func segOf(in *Inst) uint8 { return FS + in.Opc>>3&1 }

func intPushSeg(c *CPU, in *Inst) Exit { return c.push(uint64(c.Seg[segOf(in)]), in.Size) }

// intPopSeg: Intel reads no more of the stack than the selector.
func intPopSeg(c *CPU, in *Inst) Exit {
	size := in.Size
	if c.ID.Vendor == VendorIntel {
		size = 2
	}
	v, e := c.top(size)
	if e != ExitNone {
		return e
	}
	if e = c.loadSeg(segOf(in), uint16(v)); e == ExitNone {
		c.R[RSP] += uint64(in.Size)
	}
	return e
}

// popfMask are the flags that POPF changes in user mode; RF is cleared.
const popfMask = flagsArith | FlagTF | FlagDF | FlagNT | FlagAC | FlagID

func intPushf(c *CPU, in *Inst) Exit { return c.push(c.Flags()&^FlagRF, in.Size) }

func intPopf(c *CPU, in *Inst) Exit {
	v, e := c.top(in.Size)
	if e != ExitNone {
		return e
	}
	c.R[RSP] += uint64(in.Size)
	m := uint64(popfMask)
	if in.Size == 2 {
		m &= 0xffff
	}
	c.popFlags((c.Flags()&^m | v&m) &^ FlagRF)
	return ExitNone
}

// popFlags is SetFlags of an instruction. With TF Run must go on step by step:
// a #DB follows the next instruction.
func (c *CPU) popFlags(v uint64) {
	c.SetFlags(v)
	if v&FlagTF != 0 {
		c.stop |= stopTrap
	}
}

// intEnter builds a frame. Registers change only when all of it succeeded, but
// memory below the stack pointer has been written up to the access that faults.
func intEnter(c *CPU, in *Inst) Exit {
	size := uint64(in.Size)
	level := uint64(in.Imm2 & 31)
	bp := c.R[RBP]
	frame := c.R[RSP] - size
	at := frame
	if e := c.storeN(at, in.Size, bp); e != ExitNone {
		return e
	}
	for i := uint64(1); i < level; i++ {
		v, e := c.loadN(bp-i*size, in.Size)
		if e != ExitNone {
			return e
		}
		at -= size
		if e = c.storeN(at, in.Size, v); e != ExitNone {
			return e
		}
	}
	if level > 0 {
		at -= size
		if e := c.storeN(at, in.Size, frame); e != ExitNone {
			return e
		}
	}
	// The processor checks that the new top of the stack can be written.
	at -= in.Imm
	if e := c.probe(at, 1, Store); e != ExitNone {
		return e
	}
	c.setIntReg(RBP, in.Size, true, frame)
	c.R[RSP] = at
	return ExitNone
}

// intLeave moves RBP to RSP and pops RBP; the stack address is 64 bits wide
// also with operand size 16.
func intLeave(c *CPU, in *Inst) Exit {
	v, e := c.loadN(c.R[RBP], in.Size)
	if e == ExitNone {
		c.R[RSP] = c.R[RBP] + uint64(in.Size)
		c.setIntReg(RBP, in.Size, true, v)
	}
	return e
}

const lahfMask = FlagSF | FlagZF | FlagAF | FlagPF | FlagCF

func intLahf(c *CPU, _ *Inst) Exit {
	c.setIntReg(4, 1, false, c.arithFlags()&lahfMask|2)
	return ExitNone
}

func intSahf(c *CPU, _ *Inst) Exit {
	c.setFlagsRaw(c.arithFlags()&^lahfMask | c.intReg(4, 1, false)&lahfMask)
	return ExitNone
}
