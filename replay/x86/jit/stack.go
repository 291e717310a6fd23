//go:build linux && amd64

package jit

import "vplay/replay/x86"

// The stack. Its pointer is a register of the host like others, and moves without a
// change of flags, when the access is done.

// stackPointer is the guest's.
const stackPointer = r13

// below makes place the 8 bytes below the stack's top, for a store.
func (t *translator) below() {
	if t.isDirect() {
		t.directFrom(x86.RSP, -8)
		return
	}
	if t.anchored(8, true) {
		return
	}
	t.save()
	t.mem(opLea, address, at(stackPointer, -8))
	t.check(8, true)
	t.placed(true)
}

// top makes place the 8 bytes at guest register n, for a load.
func (t *translator) top(n uint8) {
	if t.isDirect() {
		t.directFrom(n, 0)
		return
	}
	base := hostOf[n]
	if t.anchored(8, false) {
		return
	}
	t.save()
	t.move(address, base)
	t.check(8, false)
	t.placed(true)
}

// moveStack adds n to the stack pointer.
func (t *translator) moveStack(n int32) {
	t.mem(opLea, stackPointer, at(stackPointer, n))
	if t.flags.recipe.reg == x86.RSP {
		t.flags.recipe.delta += n
	}
}

// push emits PUSH of a register.
func push(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.below()
	t.mem(opMovTo, t.operand(t.in.Reg, scratch), t.place)
	t.moveStack(-8)
	return true
}

// pushMemory emits PUSH from memory. What it has loaded waits in a word while the stack is checked.
func pushMemory(t *translator) bool {
	if t.in.Size != 8 || t.in.Flags&x86.InstMem == 0 || !inMemory(t.in) {
		return false
	}
	t.access(8, false)
	t.mem(opMov, scratch, t.place)
	t.mem(opMovTo, scratch, t.word(wordTarget))
	t.below()
	t.mem(opMov, scratch, t.word(wordTarget))
	t.mem(opMovTo, scratch, t.place)
	t.moveStack(-8)
	return true
}

// pushImmediate emits PUSH of an immediate.
func pushImmediate(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.below()
	t.mem(opMovImm, 0, t.place)
	t.imm32(uint32(t.in.Imm))
	t.moveStack(-8)
	return true
}

// pop emits POP of a register. That of the stack pointer leaves what was popped.
func pop(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.top(x86.RSP)
	r := hostOf[t.in.Reg]
	if r == none {
		r = scratch
	}
	t.mem(opMov, scratch, t.place)
	t.moveStack(8)
	t.move(r, scratch)
	t.store(t.in.Reg, r)
	return true
}

// leave emits LEAVE.
func leave(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.top(x86.RBP)
	t.mem(opMov, scratch, t.place)
	t.mem(opLea, stackPointer, at(rbp, 8))
	t.move(rbp, scratch)
	return true
}
