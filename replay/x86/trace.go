package x86

// Execution that tells of each instruction, for owners who observe a program. It is several
// times slower than the loop of run_gen.go, and executes the same handlers.

// TraceEngine executes every instruction by its handler, from decoded blocks. It calls Before in front of each, with
// a word of the owner's that is kept with the instruction as long as the code is the same, and is 0 at first. It calls After behind each
// where *Pending is set, and behind each that did not come to ExitNone, with what it came to, as CPU.AfterInst has it. The
// state is up to date in both. Instructions that Step
// executes, and all in states that engines do not know (CPU.runOn), are told by CPU.OnInst and CPU.AfterInst instead.
type TraceEngine struct {
	BlockEngine
	Before  func(c *CPU, in *Inst, tag *uint32)
	Pending *bool // not nil with After
	After   func(c *CPU, in *Inst, e Exit)
}

// Run implements Engine.
func (t *TraceEngine) Run(c *CPU, limit uint64) Exit {
	end := min(limit, c.Retired+runSlice)
	for {
		b := c.enter(c.RIP)
		if b == nil || b.n > limit-c.Retired {
			return c.execOne()
		}
		if e, goesOn := t.block(c, b); e != ExitNone || !goesOn || c.MustLook(end) {
			return e
		}
	}
}

// block executes b until it is left. It does what exec does, without what each instruction need not be asked.
func (t *TraceEngine) block(c *CPU, b *block) (e Exit, goesOn bool) {
	if b.tags == nil {
		b.tags = make([]uint32, len(b.insts))
	}
	for i := range b.insts {
		d := &b.insts[i]
		next := c.RIP + uint64(d.Len)
		if t.Before != nil {
			t.Before(c, &d.Inst, &b.tags[i])
		}
		if e = d.fn(c, &d.Inst); e != ExitNone {
			return t.leave(c, &d.Inst, e), false
		}
		if d.Flags&InstEnd == 0 {
			c.RIP = next
		}
		c.Retired++
		if t.After != nil && *t.Pending {
			t.After(c, &d.Inst, ExitNone)
		}
		c.tell(ExitNone)
		if c.stop != 0 || c.apart() || c.interrupt.Load() {
			if c.stop&stopOwner != 0 {
				e = ExitAttention
			}
			c.stop = 0
			return e, false
		}
		if c.RIP != next {
			break
		}
	}
	return ExitNone, true
}

// leave is block for an instruction whose handler has left with e.
func (t *TraceEngine) leave(c *CPU, in *Inst, e Exit) Exit {
	switch e {
	case ExitSyscall:
		c.Retired++
	case ExitFault:
		c.refineFault(in)
	default: // The owner executes it, or stops there.
	}
	if t.After != nil {
		t.After(c, in, e)
	}
	c.tell(e)
	return e
}

// SetBus has c access memory through b, which is another way to the memory that it had.
// Its translations are forgotten.
func (c *CPU) SetBus(b Bus) {
	c.Bus = b
	_, c.flushesCode = b.(CodeFlusher)
	if c.partialBus = nil; c.log == nil {
		c.partialBus, _ = b.(PartialBus)
	}
	c.FlushTLB()
}
