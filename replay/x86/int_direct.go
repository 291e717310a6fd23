package x86

// Instructions that not every CPU has: direct stores, cache lines, waiting, and
// transactional memory outside of a transaction. XBEGIN itself is refused: whether
// a transaction commits is not the program's to compute.

func intMovdiri(c *CPU, in *Inst) Exit {
	return c.setRM(in, in.Size, c.reg(in))
}

// intMovdir64b copies 64 bytes to the address in the register operand, which
// is aligned, in ES (SDM vol. 2B). The load comes first (measured).
func intMovdir64b(c *CPU, in *Inst) Exit {
	to := c.R[in.Reg&15]
	if in.Flags&InstAddr32 != 0 {
		to = uint64(uint32(to))
	}
	var b [64]byte
	if e := c.loadBytes(c.ea(in), b[:]); e != ExitNone {
		return e
	}
	if to&63 != 0 || !canonical(to) {
		return c.gp() // never #SS
	}
	return c.storeBytes(to, b[:])
}

// implicitAddr is the address in RAX of CLZERO and MONITORX.
func (c *CPU) implicitAddr(in *Inst) uint64 {
	return c.registerAddr(in, c.R[RAX])
}

// registerAddr is the linear address of an operand whose offset is a in a register.
func (c *CPU) registerAddr(in *Inst, a uint64) uint64 {
	if in.Flags&InstAddr32 != 0 {
		a = uint64(uint32(a))
	}
	switch in.Seg {
	case FS:
		a += c.FSBase
	case GS:
		a += c.GSBase
	}
	return a
}

// intClzero clears the cache line that RAX points into (APM vol. 3). Zen 5 takes no F2 and F3 before it (family 26 model 2),
// which those before ignore.
func intClzero(c *CPU, in *Inst) Exit {
	if in.Flags&(InstRep|InstRepne) != 0 && c.ID.isZen5() {
		return c.ud()
	}
	var b [64]byte
	return c.storeBytes(c.implicitAddr(in)&^63, b[:])
}

// intMonitorx is a load as far as faults go; MWAITX only waits. Extensions in
// RCX that do not exist raise #GP (APM vol. 3).
func intMonitorx(c *CPU, in *Inst) Exit {
	if uint32(c.R[RCX]) != 0 {
		return c.gp()
	}
	_, e := c.load8(c.implicitAddr(in))
	return e
}

func intMwaitx(c *CPU, in *Inst) Exit {
	if uint32(c.R[RCX])&^3 != 0 {
		return c.gp()
	}
	return ExitNone
}

// intUmonitor is a load as far as faults go.
func intUmonitor(c *CPU, in *Inst) Exit {
	_, e := c.load8(c.registerAddr(in, c.R[in.RM&15]))
	return e
}

// intPtwrite only loads. Hypervisors deny leaf 14H to CPUs that execute it, so
// that it is refused where the leaf does not tell of it.
func intPtwrite(c *CPU, in *Inst) Exit {
	if c.ID.Vendor == VendorAMD {
		return c.ud()
	}
	if has, _ := c.ID.Has("PTWRITE"); !has {
		return c.refuse(in)
	}
	_, e := c.rm(in, in.Size)
	return e
}

// intInvpcid is privileged where the CPU has it.
func intInvpcid(c *CPU, in *Inst) Exit {
	return c.gp()
}

func intXend(c *CPU, in *Inst) Exit {
	return c.gp()
}

func intXtest(c *CPU, in *Inst) Exit {
	c.setFlagsRaw(FlagZF)
	return ExitNone
}

// intSysenter is the 32-bit system call on Intel, undefined in long mode on
// AMD (APM vol. 3).
func intSysenter(c *CPU, in *Inst) Exit {
	if c.ID.Vendor == VendorAMD {
		return c.ud()
	}
	return c.refuse(in)
}
