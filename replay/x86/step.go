package x86

// One instruction at a time, without blocks: decoding, executing and retiring it. Every
// engine must do the same. Decoded blocks are in code.go, the loop over them is
// generated (run_gen.go).

// Step executes one instruction, or one iteration of a REP string
// instruction: then State.RepIter advances, and Retired only when the
// instruction is finished. It returns ExitNone when that was all, or the exit
// that Run would have returned. Breakpoints are not looked at.
func (c *CPU) Step() Exit {
	in := &c.step
	if e := c.decodeAt(c.RIP, in); e != ExitNone {
		return e
	}
	tf := c.eflags & FlagTF
	c.stepping = true
	e := c.exec(in)
	c.stepping = false
	if e == exitRepeat {
		e = ExitNone
	}
	if e == ExitNone && tf != 0 && !in.holdsTrap() {
		return c.fault(FaultDB, c.RIP)
	}
	return e
}

// holdsTrap reports whether no #DB for TF follows in: MOV SS holds it up to the
// end of the next instruction, LSS does not (SDM vol. 3A, 6.8.3; AMD family 25
// model 1, 2026-11-22).
func (in *Inst) holdsTrap() bool {
	return in.Reg&7 == SS && tablesVar.rows[in.Row].Handler == "intMovToSeg"
}

// exec executes in, which stands at RIP, and retires it, past OnInst and AfterInst.
func (c *CPU) exec(in *Inst) Exit {
	if c.OnInst != nil {
		c.OnInst(in)
	}
	e := c.perform(in)
	c.tell(e)
	if c.AfterInst != nil {
		c.AfterInst(in, e)
	}
	return e
}

// perform is exec without telling anybody.
func (c *CPU) perform(in *Inst) Exit {
	pc := c.RIP
	e := c.handler(in)(c, in)
	if e == ExitSyscall {
		c.Retired++
	}
	if e != ExitNone {
		if e == ExitFault {
			c.refineFault(in)
		}
		return e
	}
	if in.Flags&InstEnd == 0 {
		c.RIP = pc + uint64(in.Len)
	}
	if c.Wide.Upper != 0 && in.Flags&InstVEX != 0 {
		c.Wide.clearHigh(tablesVar.rows[in.Row].use.written(in))
	}
	if c.NotInUse&xfeatSSE != 0 {
		c.NotInUse &^= tablesVar.rows[in.Row].use.of(in) & xfeatSSE
	}
	c.Retired++
	return ExitNone
}

// refineFault makes #SS of a non-canonical data address that came from rsp or
// rbp as a base, or from a stack instruction. Nothing has been committed, so
// the address of the memory operand is still the one that was used.
func (c *CPU) refineFault(in *Inst) {
	if c.Fault.Kind != FaultNonCanon || c.Fault.Access == Exec {
		return
	}
	stack := in.Flags&(instDefault64|instForce64) != 0
	if in.Flags&InstMem != 0 && (!stack || c.Fault.Addr == c.ea(in)) {
		stack = in.Seg == NoSeg && (in.Base == RSP || in.Base == RBP)
	}
	if stack {
		c.Fault.Kind = FaultSS
	}
}

// SkipInstruction advances RIP over the instruction that stands there and
// retires it, as the owner does for RDTSC and CPUID after it has set the
// registers. It reports false, with nothing changed, when the bytes at RIP
// cannot be decoded.
func (c *CPU) SkipInstruction() bool {
	in := &c.step
	if c.decodeAt(c.RIP, in) != ExitNone {
		return false
	}
	c.RIP += uint64(in.Len)
	c.Retired++
	return true
}

// decodeAt fetches and decodes the instruction at pc.
func (c *CPU) decodeAt(pc uint64, in *Inst) Exit {
	if !canonical(pc) {
		c.Fault = Fault{Kind: FaultNonCanon, Access: Exec, Addr: pc}
		return ExitFault
	}
	b := c.scratch[:maxInst]
	n, f := c.Bus.Fetch(pc, b)
	why := decodeInst(b[:n], pc, c.ID, in)
	if c.OnCode != nil {
		size := uint64(maxInst) // all of it tells that there is no instruction
		if why == decodeOK {
			size = uint64(in.Len)
		}
		c.OnCode(pc, pc+size)
	}
	switch why {
	case decodeOK:
		return ExitNone
	case decodeShort:
		if f.Kind == FaultNone {
			f = Fault{Kind: FaultNotMapped, Access: Exec, Addr: pc + uint64(n)}
		}
		return c.memFault(f)
	case decodeTooLong:
		return c.gp()
	case decodeUD:
	}
	return c.fault(FaultUD, pc)
}
