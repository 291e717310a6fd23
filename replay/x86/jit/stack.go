//go:build linux && amd64

package jit

import "vplay/replay/x86"

// The stack. Its pointer is a register of the host like others, and moves without a
// change of flags, when the access is done.

// stackPointer is the guest's.
const stackPointer = r13

// below makes address the host's address of the 8 bytes below the stack's top, for a store.
func (t *translator) below() {
	t.save()
	t.mem(opLea, address, at(stackPointer, -8))
	t.check(8, true)
}

// top makes address the host's address of the 8 bytes at base, for a load.
func (t *translator) top(base uint8) {
	t.save()
	t.move(address, base)
	t.check(8, false)
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
	t.mem(opMovTo, t.operand(t.in.Reg, scratch), at(address, 0))
	t.moveStack(-8)
	return true
}

// pushImmediate emits PUSH of an immediate.
func pushImmediate(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.below()
	t.mem(opMovImm, 0, at(address, 0))
	t.imm32(uint32(t.in.Imm))
	t.moveStack(-8)
	return true
}

// pop emits POP of a register. That of the stack pointer leaves what was popped.
func pop(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.top(stackPointer)
	r := hostOf[t.in.Reg]
	if r == none {
		r = scratch
	}
	t.moveStack(8)
	t.mem(opMov, r, at(address, 0))
	t.store(t.in.Reg, r)
	return true
}

// leave emits LEAVE.
func leave(t *translator) bool {
	if t.in.Size != 8 {
		return false
	}
	t.top(rbp)
	t.mem(opLea, stackPointer, at(rbp, 8))
	t.mem(opMov, rbp, at(address, 0))
	return true
}
