package x86

// runSlice is how many instructions may pass between two looks at Interrupt:
// well below a millisecond.
const runSlice = 1 << 16

// Run executes until State.Retired equals limit or something else ends it. It
// returns ExitBreak before it executes an instruction with a breakpoint.
func (c *CPU) Run(limit uint64) Exit {
	skip := c.SkipBreak
	c.SkipBreak = false
	c.stop = 0
	for {
		switch {
		case c.Retired >= limit:
			return ExitLimit
		case c.interrupt.Load():
			return ExitAttention
		case c.eflags&FlagTF != 0:
			return c.runTrapped(skip)
		}
		if !skip && c.breaks != nil {
			if _, hit := c.breaks[c.RIP]; hit && (c.OnBreak == nil || c.OnBreak()) {
				return ExitBreak
			}
		}
		skip = false
		if e := c.runOn(limit); e != ExitNone {
			return e
		}
	}
}

// runOn executes at least one instruction, or leaves.
func (c *CPU) runOn(limit uint64) Exit {
	b := c.enter(c.RIP)
	c.stop = 0
	if b == nil || b.n > limit-c.Retired || c.NotInUse&xfeatSSE != 0 {
		return c.execOne()
	}
	return c.runBlocks(b, min(limit, c.Retired+runSlice))
}

// execOne executes the instruction at RIP outside any block.
func (c *CPU) execOne() Exit {
	e := c.decodeAt(c.RIP, &c.step)
	if e == ExitNone {
		e = c.exec(&c.step)
	}
	if e == ExitNone && c.stop&stopOwner != 0 {
		e = ExitAttention
	}
	c.stop = 0
	return e
}

// runTrapped is Run while TF is set: a #DB follows every instruction.
func (c *CPU) runTrapped(skip bool) Exit {
	if _, hit := c.breaks[c.RIP]; hit && !skip && (c.OnBreak == nil || c.OnBreak()) {
		return ExitBreak
	}
	return c.Step()
}
