package x86

// Tracing: execution of which somebody sees every instruction. The generated loop and
// compiled code tell nobody what they do; a CPU with a Tracer executes by TraceEngine,
// which calls the handler of each decoded instruction.

// Tracer is told of each instruction that a CPU executes one by one: by TraceEngine, by
// Step, and in the states that engines do not know.
type Tracer interface {
	// Before is called ahead of in, which stands at c.RIP. The state is as it was. The
	// tracer may keep in only as a copy.
	Before(c *CPU, in *Inst)
	// After is called behind it. With ExitNone, ExitSyscall and, for the owner who then
	// completes it, ExitRDTSC, ExitRDTSCP, ExitCPUID and ExitRandom it was executed. With
	// ExitAttention, and where c.RepIter is not 0, some iterations of a REP were. Otherwise
	// nothing was done.
	After(c *CPU, in *Inst, e Exit)
}

// TraceEngine executes decoded blocks, each instruction by its handler and past the
// CPU's Tracer. It is some ten times slower than BlockEngine.
type TraceEngine struct{ BlockEngine }

// Run implements Engine.
func (TraceEngine) Run(c *CPU, limit uint64) Exit {
	end := min(limit, c.Retired+runSlice)
	for first := true; ; first = false {
		b := c.enter(c.RIP)
		switch {
		case b == nil || b.n > limit-c.Retired:
			if !first {
				return ExitNone
			}
			return c.execOne()
		case b.brk && !first:
			return ExitNone
		}
		if e, left := c.traceBlock(b); left || c.Retired >= end {
			return e
		}
	}
}

// traceBlock executes b up to its end or a taken branch. left says that Run is to return.
func (c *CPU) traceBlock(b *block) (e Exit, left bool) {
	for i := range b.insts {
		in := &b.insts[i].Inst
		next := c.RIP + uint64(in.Len)
		e := c.exec(in)
		if e == ExitNone && c.stop&stopOwner != 0 {
			e = ExitAttention
		}
		if e != ExitNone || c.stop != 0 || c.apart() {
			c.stop = 0
			return e, true
		}
		if c.RIP != next {
			break
		}
	}
	return ExitNone, false
}

// SwapBus gives c another way to memory and returns the one it had, so that a Tracer can
// see what an instruction accesses: it may be called from Before and After.
func (c *CPU) SwapBus(b Bus) Bus {
	old := c.Bus
	c.Bus = b
	_, c.flushesCode = b.(CodeFlusher)
	c.partialBus, _ = b.(PartialBus)
	c.hasPartial = true
	c.FlushTLB()
	return old
}

// Address returns the linear address of in's memory operand, or what LEA makes of it.
// Preconditions: in has one, not a vector of addresses.
func (c *CPU) Address(in *Inst) uint64 { return c.ea(in) }
