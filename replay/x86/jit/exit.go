//go:build linux && amd64

package jit

import "vplay/replay/x86"

// What happens between Go and generated code.

// The layout of wordFlags.
const (
	flagsShift = 8 // of what LAHF has
	flagsLAHF  = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF
)

// flagsIn has generated code find the processor's flags.
func flagsIn(c *x86.CPU) {
	f := c.ArithFlags()
	c.Host[wordFlags] = f&flagsLAHF<<flagsShift | f&x86.FlagOF>>11
}

// flagsOut sets the processor's flags from generated code's.
func flagsOut(c *x86.CPU) {
	f := c.Host[wordFlags]
	c.SetArithFlags(f>>flagsShift&flagsLAHF | f&1<<11)
}

// execute enters u and stays in generated code, but for what its handlers execute, until
// CPU.Run must look, or goesOn, the unit at RIP has yet to be found.
func (e *Engine) execute(c *x86.CPU, u *unit, limit uint64) (x x86.Exit, goesOn bool) {
	end := limit - maxUnit
	began := c.Retired
	c.Host[wordBudget] = end - began
	c.Host[wordSeen] = uint64(e.pool.writable(e.chunk + 16*cacheEntries))
	c.Host[wordCache] = uint64(e.pool.address(e.chunk))
	flagsIn(c)
	next := u.body
	c.Host[wordLive], c.Host[wordWant] = 0, 0
	for {
		c.Host[wordTarget] = uint64(e.pool.address(next))
		enter(e.pool.address(e.pool.enter), c)
		retired := end - c.Host[wordBudget] // as the units before this one have it
		why := uint32(c.Host[wordExit])
		switch why & 3 {
		case exitSite:
			e.Stats.Handled++
			s := &e.sites[why>>2]
			next = s.after
			c.Retired = retired + uint64(s.index)
			c.RIP = s.unit.pc + uint64(s.unit.at[s.index])
			flagsOut(c)
			in := &s.unit.insts[s.index]
			if x, goesOn = c.Execute(in); !goesOn || e.stale || !e.fits(c) {
				return x, x == x86.ExitNone && goesOn
			}
			if next == 0 {
				e.arrived(c)
				return x86.ExitNone, true
			}
			flagsIn(c)
			c.Host[wordWant] = 0
			if s.unit.vectors {
				c.Host[wordWant] = 1
			}
		case exitEdge:
			c.Host[wordWant] = 0
			e.Stats.Edges++
			id := why >> 2
			c.Retired, c.RIP = retired, e.edges[id].target
			if u = e.units[c.RIP]; u == nil || int64(c.Host[wordBudget]) < 0 {
				flagsOut(c)
				return x86.ExitNone, true
			}
			e.link(id, u)
			next = u.head
		case exitElse:
			e.Stats.Others++
			c.Retired, c.RIP = retired, c.Host[wordTarget]
			flagsOut(c)
			return x86.ExitNone, true
		default:
			return e.faulted(c, retired)
		}
	}
}

// arrived is called behind an indirect branch that the jump cache did not know.
func (e *Engine) arrived(c *x86.CPU) {
	if u := e.units[c.RIP]; u != nil {
		e.remember(u)
	}
}

// faulted deals with a fault in generated code. Before an access the flags are saved and registers
// are as they were, so the instruction can be executed by its handler. Its unit is
// interpreted from now on.
func (e *Engine) faulted(c *x86.CPU, retired uint64) (x86.Exit, bool) {
	at := int(c.Host[wordFault] - uint64(e.pool.address(0)))
	for _, u := range e.units {
		if at < u.body || at >= u.host[len(u.host)-1] {
			continue
		}
		i := len(u.insts) - 1
		for u.host[i] > at {
			i--
		}
		c.Retired = retired + uint64(i)
		c.RIP = u.pc + uint64(u.at[i])
		flagsOut(c)
		e.Faults = append(e.Faults, Fault{PC: c.RIP, Bytes: e.bytesAt(c)})
		e.forget(u)
		e.refused[u.pc] = true
		return x86.ExitNone, true
	}
	panic("jit: a fault outside of the code of any unit")
}

// bytesAt returns the bytes of the instruction at RIP.
func (e *Engine) bytesAt(c *x86.CPU) []byte {
	b := make([]byte, 15)
	n, _ := c.Bus.Fetch(c.RIP, b)
	if in, err := x86.DecodeInst(b[:n], c.RIP, c.ID); err == nil {
		n = int(in.Len)
	}
	return b[:n]
}
