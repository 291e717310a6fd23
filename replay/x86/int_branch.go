package x86

// Branches. They set RIP themselves. A target that is not canonical faults at
// the branch, before anything is written. On AMD a 66 prefix makes near
// branches 16 bits wide; Intel ignores it (measured 2026-11-20, SDM vol. 2
// "JMP").

// next is the address behind the instruction.
func (c *CPU) next(in *Inst) uint64 { return c.RIP + uint64(in.Len) }

// jump goes to target, which is cut to the operand size: see instAMD16.
func (c *CPU) jump(in *Inst, target uint64) Exit {
	if in.Size == 2 {
		target &= 0xffff
	}
	if !canonical(target) {
		return c.badTarget(target)
	}
	c.RIP = target
	return ExitNone
}

func (c *CPU) badTarget(a uint64) Exit {
	c.Fault = Fault{Kind: FaultNonCanon, Access: Exec, Addr: a}
	return ExitFault
}

func intJcc(c *CPU, in *Inst) Exit {
	if c.cond(in.Opc & 15) {
		return c.jump(in, c.next(in)+in.Imm)
	}
	c.RIP = c.next(in)
	return ExitNone
}

func intJmp(c *CPU, in *Inst) Exit { return c.jump(in, c.next(in)+in.Imm) }

func intJmpRM(c *CPU, in *Inst) Exit {
	t, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	return c.jump(in, t)
}

// call pushes the return address and goes to target.
func (c *CPU) call(in *Inst, target uint64) Exit {
	if in.Size == 2 {
		target &= 0xffff
	}
	if !canonical(target) { // Intel has stored the return address by then, AMD has not
		if e := c.probe(c.R[RSP]-uint64(in.Size), int(in.Size), Store); e != ExitNone {
			return e
		}
		if !c.amd() {
			if e := c.storeN(c.R[RSP]-uint64(in.Size), in.Size, c.next(in)); e != ExitNone {
				return e
			}
		}
		return c.badTarget(target)
	}
	e := c.push(c.next(in), in.Size)
	if e == ExitNone {
		c.RIP = target
	}
	return e
}

func intCall(c *CPU, in *Inst) Exit { return c.call(in, c.next(in)+in.Imm) }

func intCallRM(c *CPU, in *Inst) Exit {
	t, e := c.rm(in, in.Size)
	if e != ExitNone {
		return e
	}
	return c.call(in, t)
}

func intRet(c *CPU, in *Inst) Exit {
	t, e := c.top(in.Size)
	if e != ExitNone {
		return e
	}
	if e = c.jump(in, t); e == ExitNone {
		c.R[RSP] += uint64(in.Size)
		if in.Opc == 0xc2 {
			c.R[RSP] += in.Imm
		}
	}
	return e
}

// loopKind is the opcode of a LOOP: on AMD F3 makes LOOPE and F2 LOOPNE of
// either of the two (measured 2026-11-20).
func (c *CPU) loopKind(in *Inst) uint8 {
	if in.Opc != 0xe2 && c.ID.Vendor == VendorAMD {
		switch {
		case in.Flags&InstRep != 0:
			return 0xe1
		case in.Flags&InstRepne != 0:
			return 0xe0
		}
	}
	return in.Opc
}

// intLoop is LOOPNE, LOOPE, LOOP and JRCXZ (E0 to E3); the counter is as wide
// as an address.
func intLoop(c *CPU, in *Inst) Exit {
	size := uint8(8)
	if in.Flags&InstAddr32 != 0 {
		size = 4
	}
	n := zeroExtend(c.R[RCX], size)
	t := c.next(in)
	if in.Opc == 0xe3 {
		if n == 0 {
			return c.jump(in, t+in.Imm)
		}
		c.RIP = t
		return ExitNone
	}
	n = zeroExtend(n-1, size)
	take := n != 0
	switch c.loopKind(in) {
	case 0xe0:
		take = take && !c.zf()
	case 0xe1:
		take = take && c.zf()
	}
	if take {
		if e := c.jump(in, t+in.Imm); e != ExitNone {
			return e
		}
	} else {
		c.RIP = t
	}
	c.R[RCX] = n
	return ExitNone
}
