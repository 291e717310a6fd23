//go:build linux && amd64

package jit

import (
	"cmp"
	"slices"

	"vplay/replay/x86"
)

// What happens between Go and generated code.

// The layout of wordFlags.
const (
	flagsShift = 8 // of what LAHF has
	flagsLAHF  = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF
)

// flagsIn has generated code find the processor's flags, and which components of the state are in use.
func flagsIn(c *x86.CPU) {
	f := c.ArithFlags()
	c.Host[wordFlags] = f&flagsLAHF<<flagsShift | f&x86.FlagOF>>11
	c.Host[wordUpper] = uint64(^c.NotInUse & x86.ComponentAVX)
}

// flagsOut sets the processor's flags, and which components are in use, from generated code's.
func flagsOut(c *x86.CPU) {
	c.NotInUse = c.NotInUse&^x86.ComponentAVX | uint8(^c.Host[wordUpper])&x86.ComponentAVX
	f := c.Host[wordFlags]
	if which := f >> passShift & 0xffff; which != 0 {
		passed(c, which)
		return
	}
	c.SetArithFlags(f>>flagsShift&flagsLAHF | f&1<<11)
}

// execute enters u and stays in generated code, but for what its handlers execute, until
// CPU.Run must look, or goesOn, the unit at RIP has yet to be found.
func (e *Engine) execute(c *x86.CPU, u *unit, limit uint64) (x x86.Exit, goesOn bool) {
	end := limit - maxUnit
	began := c.Retired
	if e.log != nil && int64(end-began) > logRun { // end may be less than 0
		end = began + logRun
	}
	c.Host[wordBudget] = end - began
	c.Host[wordCache] = uint64(e.pool.address(e.chunk))
	flagsIn(c)
	next := u.body
	c.Host[wordLive], c.Host[wordWant] = 0, 0
	for {
		e.enter(c, next)
		retired := end - c.Host[wordBudget] // as the units before this one have it
		why := uint32(c.Host[wordExit])
		switch why & 3 {
		case exitSite:
			e.Stats.Handled++
			s := e.sites.at(why >> 2)
			next = s.after
			c.Retired = retired + uint64(s.index)
			c.RIP = s.unit.pc + uint64(s.unit.at[s.index])
			flagsOut(c)
			x, goesOn = e.executeIn(c, s.unit, s.index)
			fits := goesOn && !e.stale.any() && e.refused == nil && !e.retries && e.fits(c) && e.hasStack(c)
			if !fits || next == 0 || !anchored(c, s.anchors) {
				e.leaveIn(c, s.unit, s.index, retired)
				if fits && next == 0 {
					e.arrived(c)
				}
				return x, x == x86.ExitNone && goesOn
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
			x := e.edges.at(id)
			c.Retired, c.RIP = retired, x.target
			if x.single {
				if u = e.single(c, id); u == nil {
					flagsOut(c)
					return e.executePart(c, x.unit, x.index, limit)
				}
			} else if u = e.entries.unit(c.RIP); u == nil || int64(c.Host[wordBudget]) < 0 || c.Interrupting() { // to link may be to translate
				flagsOut(c)
				return x86.ExitNone, true
			}
			if !e.link(id, u) {
				flagsOut(c)
				e.drop()
				return x86.ExitNone, true
			}
			next = u.head
		case exitElse:
			e.Stats.Others++
			c.Retired, c.RIP = retired, c.Host[wordTarget]
			flagsOut(c)
			if a := c.Host[wordTested]; a != 0 { // for the next time
				c.Touch(a)
				c.Host[wordTested] = 0
			}
			return x86.ExitNone, true
		default:
			u, i := e.placeOf(c)
			if id, ok := e.directSite(c, u, i); ok {
				e.missed(c, e.sites.at(id))
				next, c.Host[wordWant] = e.leavesBy(id), 0
				continue
			}
			return e.faulted(c, u, i, retired)
		}
	}
}

// enter executes the code at an offset of the pool until it leaves.
func (e *Engine) enter(c *x86.CPU, at int) {
	e.windows.giveTo(c)
	c.Host[wordTarget] = uint64(e.pool.address(at))
	enter(e.pool.address(e.pool.enter), c)
}

// arrived is called behind an indirect branch that the jump cache did not know.
func (e *Engine) arrived(c *x86.CPU) {
	if u := e.entries.unit(c.RIP); u != nil {
		e.remember(u)
	}
}

// placeOf returns the unit and the instruction at which generated code faulted.
func (e *Engine) placeOf(c *x86.CPU) (*unit, int) {
	at := int(c.Host[wordFault] - uint64(e.pool.address(0)))
	n, _ := slices.BinarySearchFunc(e.placed, at+1, func(u *unit, at int) int { return cmp.Compare(u.body, at) })
	if n == 0 || !e.placed[n-1].has(at) {
		panic("jit: a fault outside of the code of any unit")
	}
	u := e.placed[n-1]
	i := len(u.insts) - 1
	for u.host[i] > at {
		i--
	}
	return u, i
}

// faulted deals with a fault at instruction i of u that is not because of a page. Registers are as they were before, and the way
// to the handler saves the flags, so the instruction can be executed by the interpreter. A floating-point exception that the
// guest does not mask is raised by it anew. All else is a mistake of the translator, and the unit the interpreter's from now on.
func (e *Engine) faulted(c *x86.CPU, u *unit, i int, retired uint64) (x86.Exit, bool) {
	c.Retired = retired + uint64(i)
	c.RIP = u.pc + uint64(u.at[i])
	if id, ok := e.siteOf(u, i); ok {
		e.flagsAtFault(c, e.sites.at(id))
		c.Host[wordWant] = 0
		e.enter(c, e.leavesBy(id))
	}
	flagsOut(c)
	if e.traps && e.t.rows[u.insts[i].Row].raises && c.MXCSR&^(c.MXCSR>>mxcsrMaskShift)&mxcsrFlags != 0 {
		e.Stats.Raised++
		x, goesOn := e.executeIn(c, u, i)
		e.leaveIn(c, u, i, retired)
		return x, x == x86.ExitNone && goesOn
	}
	e.leaveIn(c, u, i, retired)
	e.Faults = append(e.Faults, Fault{PC: c.RIP, Bytes: e.bytesAt(c)})
	e.forget(u)
	if u := e.entries.unit(u.pc); u != nil { // that one was a version
		e.forget(u)
	}
	*e.entries.at(u.key) = entry{key: u.key, used: true, refused: true}
	return x86.ExitNone, true
}

// siteOf returns the number of the site of instruction i of u, if it has one.
func (e *Engine) siteOf(u *unit, i int) (id uint32, ok bool) {
	for id := u.sites[0]; id < u.sites[1]; id++ {
		if e.sites.at(id).index == i {
			return id, true
		}
	}
	return 0, false
}

// has reports whether offset at is in u's code.
func (u *unit) has(at int) bool { return at >= u.body && at < u.host[len(u.host)-1] }

// bytesAt returns the bytes of the instruction at RIP.
func (e *Engine) bytesAt(c *x86.CPU) []byte {
	b := make([]byte, maxInst)
	n, _ := c.Bus.Fetch(c.RIP, b)
	if in, err := x86.DecodeInst(b[:n], c.RIP, c.ID); err == nil {
		n = int(in.Len)
	}
	return b[:n]
}
