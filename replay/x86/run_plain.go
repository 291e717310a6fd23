//go:build plainloop

package x86

// runsCases says that kinds choose how an instruction is executed.
const runsCases = false

// runBlocks is the run loop (run_gen.go) without its cases: every instruction
// goes to its handler. It is for tools that cannot take the generated one (see
// isagen, writeLoop), and says what that does.
func (c *CPU) runBlocks(b *block, limit uint64) Exit {
	for c.Retired+b.n <= limit {
		in, e := c.runPlain(b)
		if e != ExitNone || in == nil {
			return e
		}
		next := c.nextBlock(b, in)
		if next == nil {
			return ExitNone
		}
		b = next
	}
	c.RIP = b.pc
	return ExitNone
}

// runPlain executes b to one of its ends, and returns the instruction it left
// at, nil where the block was left in the middle.
func (c *CPU) runPlain(b *block) (*Inst, Exit) {
	for in := firstInst(b); ; in = nextInst(in) {
		if in.Kind == kEnd {
			return in, ExitNone
		}
		if in.exit&(maxExits-1) != 0 && in.isJcc() {
			if c.cond(in.Opc & 15) {
				return in, ExitNone
			}
			continue
		}
		c.RIP = b.pc + uint64(in.off)
		if e := in.fn(c, in); e != ExitNone || c.stop != 0 {
			return nil, c.leave(b, in, e)
		}
		if in.Flags&InstEnd != 0 || in.Flags&instFused != 0 && c.cond(in.Imm2) {
			return in, ExitNone
		}
	}
}

// nextBlock retires what was executed of b, which was left at in, and returns
// the block behind it, nil when the outer loop must have a look.
func (c *CPU) nextBlock(b *block, in *Inst) *block {
	if in.Flags&InstEnd != 0 && !in.isJcc() {
		c.Retired += b.n
		if next := c.code.hash[codeHash(c.RIP)]; next != nil && next.pc == c.RIP && next.epoch == c.code.epoch {
			return next
		}
		return nil
	}
	x := &b.exits[in.exit&(maxExits-1)]
	c.Retired += x.n
	c.RIP = x.target
	if next := x.next; next != nil && next.epoch == c.code.epoch {
		return next
	}
	return c.link(x)
}
