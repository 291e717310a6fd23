package x86

// Execution that tells of each instruction, for owners who observe a program. It is several
// times slower than the loop of run_gen.go, and executes the same handlers.

// TraceEngine executes every instruction by its handler, from decoded blocks, and has
// CPU.OnInst called before each. With another engine those instructions alone are told that
// it leaves to handlers.
type TraceEngine struct{ BlockEngine }

// Run implements Engine.
func (TraceEngine) Run(c *CPU, limit uint64) Exit {
	end := min(limit, c.Retired+runSlice)
	for {
		b := c.enter(c.RIP)
		if b == nil || b.n > limit-c.Retired {
			return c.execOne()
		}
		for i := range b.insts {
			in := &b.insts[i].Inst
			next := c.RIP + uint64(in.Len)
			e, goesOn := c.Execute(in)
			if e != ExitNone || !goesOn {
				return e
			}
			if c.RIP != next {
				break
			}
		}
		if c.MustLook(end) {
			return ExitNone
		}
	}
}

// SetBus has c access memory through b, which is another way to the memory that it had.
// Its translations are forgotten.
func (c *CPU) SetBus(b Bus) {
	c.Bus = b
	_, c.flushesCode = b.(CodeFlusher)
	c.partialBus, _ = b.(PartialBus)
	c.FlushTLB()
}
