package x86

// REP instructions as the owner of the CPU sees them, who may stop between two
// iterations. What an iteration does is in int_string.go.

// AtRep reports whether the instruction at RIP is a string instruction with a
// REP prefix, which may be left and re-entered between its iterations.
func (c *CPU) AtRep() bool {
	in := &c.step
	return c.decodeAt(c.RIP, in) == ExitNone && in.isRep()
}

// isRep reports whether in is a string instruction with a REP prefix.
func (in *Inst) isRep() bool {
	return in.Flags&(InstRep|InstRepne) != 0 && getTables().rows[in.Row].Attr("rep")
}

// StepRep takes up to n iterations of the MOVS or STOS with a REP prefix at RIP,
// of which more must be left, and returns how many it took: all in one go, where
// Step decodes the instruction for each. It is 0 for other instructions and when
// an iteration would fault. Nothing retires. OnInst and AfterInst are called once.
func (c *CPU) StepRep(n uint64) uint64 {
	in := &c.step
	if !c.AtRep() || in.Flags&InstAddr32 != 0 || c.R[RCX] <= n || n == 0 {
		return 0
	}
	one, bulk := movs1, movsBulk
	switch in.Opc {
	case 0xa4, 0xa5:
	case 0xaa, 0xab:
		one, bulk = stos1, stosBulk
	default:
		return 0
	}
	if c.OnInst != nil {
		c.OnInst(in)
	}
	left, iter := c.R[RCX], c.RepIter
	c.R[RCX] = n
	e := c.repeat(in, false, one, bulk)
	done := n - c.R[RCX]
	c.R[RCX] = left - done
	c.RepIter = iter + done
	c.tell(e) // of one that faults, what was done
	if c.AfterInst != nil {
		c.AfterInst(in, exitRepeat)
	}
	return done
}
