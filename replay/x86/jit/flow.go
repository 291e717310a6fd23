//go:build linux && amd64

package jit

import "vplay/replay/x86"

// Branches: ways to known addresses are edges, which are joined to the unit there once it is
// known (link.go). The others ask the jump cache, a table of guest addresses and the
// host's of their units.

// The jump cache: an entry is two words. The entry of an address is that of its low bits. An entry that another one takes its
// place of goes to that of other bits among secondEntries others, where code looks before it leaves: else two targets of a loop
// with the same low bits would take turns to make it leave.
const (
	cacheEntries  = 1 << 16
	secondEntries = 1 << 14
	secondShift   = 8 // the bits of an address that do not count there
	secondAt      = 16 * cacheEntries
	jumpTables    = 16 * (cacheEntries + secondEntries)
)

// newEdge returns the number of a new edge of this unit to target.
func (t *translator) newEdge(target uint64) uint32 {
	id := t.e.edges.add(edge{unit: t.u, target: target})
	t.u.edges = append(t.u.edges, id)
	return id
}

// charge takes n instructions off the budget; SF says that it is spent.
func (t *translator) charge(n int) {
	t.reg(opGroup1By8, 5, budget) // n is maxUnit at most
	t.bytes(byte(n))
}

// spend takes n instructions off the budget, and returns the jump for when it is spent.
func (t *translator) spend(n int) int {
	t.charge(n)
	return t.jcc(ifSign)
}

// edgeTo emits edge id behind n instructions, where the flags are as s says. While it is not linked it
// leaves, as it does when the budget is spent.
func (t *translator) edgeTo(id uint32, n int, s flagState) {
	if s.entry {
		t.u.sees, t.u.needs = true, true
	}
	t.logRun(n)
	if !s.saved && s.recipe.kind == noRecipe {
		t.saveFlags()
		s.saved = true
	}
	x := t.e.edges.at(id)
	if x.passed = !s.saved && s.recipe.passable() && t.wanted(x.target); x.passed {
		t.pass(s.recipe)
	}
	t.charge(n)
	x.jump = t.jcc(ifNotSign)
	out := t.jmp()
	t.toCold()
	x.cold = t.n
	t.patch(out, t.n)
	t.patch(x.jump, t.n)
	if !s.saved {
		x.recipe = s.recipe
	}
	t.leaveFlags(s)
	t.exit(exitEdge, id)
	t.toHot()
}

// wanted reports whether a recipe is left to the unit at target: units that overwrite the flags before they
// may leave do not look, and those at the head of a loop are translated for the recipe (version).
func (t *translator) wanted(target uint64) bool {
	if target <= t.u.pc {
		return false
	}
	u := t.e.entries.unit(target)
	return u == nil || u.sees && !u.needs
}

// lastEdge emits the way on to target behind n instructions.
func (t *translator) lastEdge(target uint64, n int) {
	t.observe()
	t.edgeTo(t.newEdge(target), n, t.flags)
	t.ended = true
}

// target returns where a direct branch leads.
func (t *translator) target() uint64 { return t.next() + t.in.Imm }

// next returns the address behind the instruction.
func (t *translator) next() uint64 { return t.u.pc + uint64(t.at[t.i]) + uint64(t.in.Len) }

// jumpIf emits a conditional branch.
func jumpIf(t *translator) bool {
	if !goesOn(t.in, t.next()) {
		return false
	}
	t.load()
	t.ways = append(t.ways, coldEdge{t.newEdge(t.target()), t.jcc(t.in.Opc & 15), t.i + 1, t.flags})
	return true
}

// loop emits JRCXZ and LOOP with a counter of 64 bits. Both are the host's JRCXZ, which leaves the flags alone, over a jump.
func loop(t *translator) bool {
	const opLOOP, opJRCXZ = 0xe2, 0xe3
	in := t.in
	if in.Size != 8 || in.Flags&x86.InstAddr32 != 0 || in.Opc < opLOOP || !canonical(t.target()) || !canonical(t.next()) {
		return false
	}
	if in.Opc == opLOOP {
		lost := t.loses()
		t.mem(opLea, rcx, at(rcx, -1))
		t.afterwards(lost)  // before the edges, which would have a recipe of RCX
		t.bytes(opJRCXZ, 5) // over the jump
	} else {
		t.bytes(opJRCXZ, 2, 0xeb, 5) // to the jump, and over it
	}
	t.ways = append(t.ways, coldEdge{t.newEdge(t.target()), t.jmp(), t.i + 1, t.flags})
	t.lastEdge(t.next(), t.i+1)
	return true
}

// jump emits a direct jump.
func jump(t *translator) bool {
	if t.in.Size != 8 || !canonical(t.target()) {
		return false
	}
	t.lastEdge(t.target(), t.i+1)
	return true
}

// call emits a direct call.
func call(t *translator) bool {
	if t.in.Size != 8 || !canonical(t.target()) {
		return false
	}
	t.below()
	t.pushReturn()
	t.lastEdge(t.target(), t.i+1)
	return true
}

// pushReturn stores the return address at place and moves the stack pointer.
func (t *translator) pushReturn() {
	if v := t.next(); v == uint64(int32(v)) {
		t.mem(opMovImm, 0, t.place)
		t.imm32(uint32(v))
	} else {
		t.load64(scratch, v)
		t.mem(opMovTo, scratch, t.place)
	}
	t.moveStack(-8)
}

// find looks for the guest's address in address in the jump cache, and goes to the handler
// when it is not there. Then scratch has the address of the entry.
func (t *translator) find() {
	t.rotated(32 - 4)
	t.bytes(0x25) // and eax, imm32
	t.imm32(16 * (cacheEntries - 1))
	t.mem(opAdd, scratch, t.word(wordCache))
	t.mem(opCmp, address, at(scratch, 0))
	jump := t.jcc(ifNotEqual)
	s := t.site()
	t.bad = t.bad || t.e.sites.at(s.id).native // as in miss
	s.find, s.found = jump, t.n
}

// findSecond looks for an address that is not in its entry of the jump cache among the second ones, and goes back with the address of that.
func (t *translator) findSecond(s *coldSite) {
	if s.found == 0 {
		return
	}
	t.patch(s.find, t.n)
	t.rotated(secondShift - 4)
	t.bytes(0x25) // and eax, imm32
	t.imm32(16 * (secondEntries - 1))
	t.mem(opAdd, scratch, t.word(wordCache))
	t.mem(opCmp, address, at(scratch, secondAt))
	s.jumps[s.n] = t.jcc(ifNotEqual)
	s.n++
	t.mem(opLea, scratch, at(scratch, secondAt))
	t.jmpTo(s.found)
}

// goIndirect goes to the code that scratch has the entry of, for the guest's address in address.
func (t *translator) goIndirect() {
	code := at(scratch, 8)
	if t.e.log != nil {
		t.mem(opMov, scratch, code)
		code = t.word(wordHost)
		t.mem(opMovTo, scratch, code)
		t.logRun(t.i + 1)
	}
	t.spendIndirect()
	t.mem(opJmpMem, 4, code)
}

// spendIndirect is spend for a branch whose target is in address.
func (t *translator) spendIndirect() {
	out := t.spend(t.i + 1)
	t.toCold()
	t.patch(out, t.n)
	t.mem(opMovTo, address, t.word(wordTarget))
	t.exit(exitElse, 0)
	t.toHot()
	t.ended = true
}

// ret emits RET.
func ret(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.mustSave()
	t.top(x86.RSP)
	t.mem(opMov, address, t.place)
	t.lost()
	t.find()
	t.moveStack(8 + int32(t.in.Imm&0xffff))
	t.goIndirect()
	return true
}

// indirectTarget has address hold the target of an indirect branch.
func (t *translator) indirectTarget() bool {
	in := t.in
	if in.Size != 8 || !inMemory(in) {
		return false
	}
	t.mustSave()
	if in.Flags&x86.InstMem != 0 {
		t.access(8, false)
		t.mem(opMov, address, t.place)
	} else {
		t.move(address, t.operand(in.RM, address))
	}
	t.overwrites(address)
	t.lost()
	return true
}

// jumpIndirect emits JMP to an address in a register or memory.
func jumpIndirect(t *translator) bool {
	if !t.indirectTarget() {
		return false
	}
	t.find()
	t.goIndirect()
	return true
}

// callIndirect emits CALL of an address in a register or memory. The target must be known to
// the jump cache before the return address is stored.
func callIndirect(t *translator) bool {
	if !t.indirectTarget() {
		return false
	}
	t.find()
	t.mem(opMovTo, address, t.word(wordTarget))
	t.mem(opMov, scratch, at(scratch, 8))
	t.mem(opMovTo, scratch, t.word(wordHost))
	t.below()
	t.pushReturn()
	t.logRun(t.i + 1)
	out := t.spend(t.i + 1)
	t.mem(opJmpMem, 4, t.word(wordHost))
	t.toCold()
	t.patch(out, t.n)
	t.exit(exitElse, 0)
	t.toHot()
	t.ended = true
	return true
}
