package x86

// CPU.Run: what is looked at between two calls of the engine. Engines are in engine.go.

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
			if e := c.runTrapped(skip); e != ExitNone {
				return e
			}
			skip = false
			continue // behind MOV SS
		}
		if !skip && c.stops() {
			return ExitBreak
		}
		skip = false
		if e := c.runOn(limit); e != ExitNone {
			return e
		}
	}
}

// stops reports whether Run stops at a breakpoint at RIP.
func (c *CPU) stops() bool {
	if _, hit := c.breaks[c.RIP]; !hit {
		return false
	}
	b := c.enter(c.RIP) // nil when there is no instruction that can be executed
	return b == nil || !c.sifted(b)
}

// runOn executes at least one instruction, or leaves. Engines know nothing of the
// SSE bit of XINUSE (see xinuse.go), and of the upper halves of ZMM registers (wide.go).
func (c *CPU) runOn(limit uint64) Exit {
	c.stop = 0
	if c.apart() {
		return c.runApart(limit)
	}
	return c.engine.Run(c, limit)
}

// apart reports whether the state is one that engines do not know.
func (c *CPU) apart() bool { return c.NotInUse&xfeatSSE != 0 || c.Wide.Upper != 0 }

// runApart executes the block at RIP instruction by instruction, as long as the state
// is one that engines do not know.
func (c *CPU) runApart(limit uint64) Exit {
	b := c.enter(c.RIP)
	if b == nil || b.n > limit-c.Retired {
		return c.execOne()
	}
	for i := range b.insts {
		in := &b.insts[i].Inst
		next := c.RIP + uint64(in.Len)
		e := c.exec(in)
		if e == ExitNone && c.stop&stopOwner != 0 {
			e = ExitAttention
		}
		if e != ExitNone || c.stop != 0 || c.RIP != next || !c.apart() {
			c.stop = 0
			return e
		}
	}
	return ExitNone
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

// runTrapped executes one instruction while TF is set. A #DB follows, but behind
// MOV SS.
func (c *CPU) runTrapped(skip bool) Exit {
	if _, hit := c.breaks[c.RIP]; hit && !skip {
		return ExitBreak
	}
	return c.Step()
}
