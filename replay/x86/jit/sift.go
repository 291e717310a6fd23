//go:build linux && amd64

package jit

import "vplay/replay/x86"

// Searches by state. Where the end of an interval is known by its registers alone, each passage through its instruction must be looked at, and that is
// often in the middle of the hottest loop. One register that differs is enough to go on, whatever Pass would say, so the registers are
// compared in generated code: before a unit that begins there, or in the middle of one. All else leaves.

// noSieve is sieveAt where no instruction of the unit is looked at.
const noSieve = -1

// passBreakpoint emits what stands before a unit with a breakpoint.
func (t *translator) passBreakpoint() {
	var body []int
	if s := t.c.Sieve; s != nil && s.PC == t.u.pc {
		if !isRep(&t.insts[0]) {
			body = t.compareState(s)
		}
	} else if codes := t.c.Conditions.Of(t.u.pc); codes != nil {
		body, _ = t.passConditions(codes)
	}
	t.u.sees = true
	t.leaveAt(t.u.pc)
	for _, j := range body {
		t.patch(j, t.n)
	}
}

// compareState emits the comparison of all registers with those of s, and returns the jumps of those that differ. The ones that
// differ now come first, as they will for the most part.
func (t *translator) compareState(s *x86.Sieve) (differs []int) {
	for _, now := range []bool{true, false} {
		for i := range s.R {
			if (t.c.R[i] != s.R[i]) != now {
				continue
			}
			t.load64(scratch, s.R[i])
			if h := hostOf[i]; h != none {
				t.reg(opCmp, scratch, h)
			} else {
				t.mem(opCmp, scratch, t.guest(uint8(i)))
			}
			differs = append(differs, t.jcc(ifNotEqual))
		}
	}
	return differs
}

// leaveAt leaves for the breakpoint at pc.
func (t *translator) leaveAt(pc uint64) {
	t.load64(scratch, pc)
	t.mem(opMovTo, scratch, t.word(wordTarget))
	t.exit(exitElse, 0)
}

// sifts reports whether the unit that is decoded may go on with in, at pc, where there is a breakpoint. Where somebody wants to know exactly
// which code is executed (CPU.OnCode), a unit ends where the interpreter's block does.
func (t *translator) sifts(pc uint64, in *x86.Inst) bool {
	if s := t.c.Sieve; s == nil || s.PC != pc || isRep(in) || t.c.OnCode != nil || t.e.log != nil || t.sieveAt != noSieve {
		return false
	}
	t.sieveAt = len(t.insts)
	return true
}

// coldStop is a way out in front of an instruction, whose flags are as flags says.
type coldStop struct {
	jump, index int
	flags       flagState
}

// sift emits the look at the state in front of the instruction.
func (t *translator) sift() {
	t.save()
	t.lost()
	t.observe()
	differs := t.compareState(t.c.Sieve)
	t.stops = append(t.stops, coldStop{t.jmp(), t.i, t.flags})
	for _, j := range differs {
		t.patch(j, t.n)
	}
}

// coldStops emits the ways out.
func (t *translator) coldStops() {
	for _, s := range t.stops {
		t.patch(s.jump, t.n)
		t.leaveFlags(s.flags)
		t.charge(s.index) // what is left of the unit fits, as all of it did
		t.leaveAt(t.u.pc + uint64(t.at[s.index]))
	}
	t.stops = t.stops[:0]
}

// isRep reports whether in is a string instruction with REP.
func isRep(in *x86.Inst) bool {
	return in.Flags&(x86.InstRep|x86.InstRepne) != 0 && x86.Rows()[in.Row].Attr("rep")
}

// followSieve drops the units that look for another state than c's search does, and those in front of its instruction.
func (e *Engine) followSieve(c *x86.CPU) {
	s, exact := c.Sieve, c.OnCode != nil
	if s == e.sieve && (s == nil || s.R == e.want && exact == e.exact) {
		return
	}
	for _, old := range []*x86.Sieve{e.sieve, s} {
		if old != nil {
			e.forgetAt(old.PC)
		}
	}
	e.exact = exact
	if e.sieve = s; s != nil {
		e.want = s.R
	}
}
