package x86

// System instructions, as user mode sees them.

func intNop(*CPU, *Inst) Exit      { return ExitNone }
func intPriv(c *CPU, _ *Inst) Exit { return c.gp() }
func intUD(c *CPU, _ *Inst) Exit   { return c.ud() }

// intRefuse is an instruction that is not emulated on CPUs that have it.
func intRefuse(c *CPU, in *Inst) Exit {
	return c.refuse(in)
}

// refuse ends replay with the instruction's name.
func (c *CPU) refuse(in *Inst) Exit {
	c.undef.n = copy(c.undef.bytes[:], c.instBytes(in))
	c.undef.name = Rows()[in.Row].Mnemonic
	return ExitUnsupported
}

// instBytes fetches the bytes of the instruction at RIP.
func (c *CPU) instBytes(in *Inst) []byte {
	b := c.scratch[:in.Len]
	n, _ := c.Bus.Fetch(c.RIP, b)
	return b[:n]
}

// intControlReg is MOV to and from a control register, intDebugReg the same
// for debug registers: registers that do not exist are #UD.
func intControlReg(c *CPU, in *Inst) Exit {
	switch in.Reg {
	case 0, 2, 3, 4, 8:
		return c.gp()
	}
	return c.ud()
}

func intDebugReg(c *CPU, in *Inst) Exit {
	if in.Reg > 7 {
		return c.ud()
	}
	return c.gp()
}

// intPrefetchw with a register is an undefined instruction on AMD and a NOP
// on Intel.
func intPrefetchw(c *CPU, in *Inst) Exit {
	if in.Flags&InstMem == 0 && c.ID.Vendor == VendorAMD {
		return c.ud()
	}
	return ExitNone
}

// intCacheLine is CLFLUSH and its kin: a load as far as faults go.
func intCacheLine(c *CPU, in *Inst) Exit {
	_, e := c.load8(c.ea(in))
	return e
}

// intFSGSBase is RDFSBASE, RDGSBASE, WRFSBASE and WRGSBASE (/0 to /3). Only
// REX.W writes need a canonical address.
func intFSGSBase(c *CPU, in *Inst) Exit {
	base := &c.FSBase
	if in.Reg&1 != 0 {
		base = &c.GSBase
	}
	if in.Reg&2 == 0 {
		c.setIntReg(in.RM, in.Size, true, *base)
		return ExitNone
	}
	v := c.intReg(in.RM, in.Size, true)
	if !canonical(v) {
		return c.gp()
	}
	*base = v
	return ExitNone
}

// intSyscall retires; the system call is the owner's business.
func intSyscall(c *CPU, in *Inst) Exit {
	c.RIP += uint64(in.Len)
	c.R[RCX] = c.RIP
	c.R[R11] = c.Flags() &^ FlagRF
	return ExitSyscall
}

func intCPUID(*CPU, *Inst) Exit  { return ExitCPUID }
func intRDTSC(*CPU, *Inst) Exit  { return ExitRDTSC }
func intRDTSCP(*CPU, *Inst) Exit { return ExitRDTSCP }

// intRandom is RDRAND and RDSEED. An owner that has no number for it may refuse it: CPU.Undefined has its name.
func intRandom(c *CPU, in *Inst) Exit {
	_ = c.refuse(in)
	return ExitRandom
}

// SetRandom executes the RDRAND or RDSEED at RIP, which gives as many bits of value as its destination has. ok is the carry flag: the processor
// had a random number (Intel SDM volume 2, RDRAND). False says that there is no such instruction.
func (c *CPU) SetRandom(value uint64, ok bool) bool {
	if !c.SkipInstruction() {
		return false
	}
	in := &c.step
	c.setIntReg(in.RM, in.Size, true, value)
	if c.setFlagsRaw(0); ok {
		c.setFlagsRaw(FlagCF)
	}
	return true
}

// intInt3 and intInt1 are traps: RIP is behind the instruction when the signal
// arrives, but here they leave with RIP at it, as every fault does.
func intInt3(c *CPU, _ *Inst) Exit { return c.fault(FaultBP, c.RIP) }
func intInt1(c *CPU, _ *Inst) Exit { return c.fault(FaultDB, c.RIP) }

// intInt is INT n. Linux lets user mode have vectors 3 (#BP), 4 (#OF) and
// 0x80, the 32-bit system call; the others raise #GP.
func intInt(c *CPU, in *Inst) Exit {
	switch uint8(in.Imm) {
	case 3:
		return c.fault(FaultBP, c.RIP)
	case 4:
		return c.fault(FaultOF, c.RIP)
	case 0x80:
		return c.refuse(in)
	}
	return c.fault(FaultGP, 0)
}

func intCmc(c *CPU, _ *Inst) Exit {
	c.setCF(!c.cf())
	return ExitNone
}

func intClc(c *CPU, _ *Inst) Exit {
	c.setCF(false)
	return ExitNone
}

func intStc(c *CPU, _ *Inst) Exit {
	c.setCF(true)
	return ExitNone
}

func intCld(c *CPU, _ *Inst) Exit {
	c.eflags &^= FlagDF
	return ExitNone
}

func intStd(c *CPU, _ *Inst) Exit {
	c.eflags |= FlagDF
	return ExitNone
}
