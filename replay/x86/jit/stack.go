//go:build linux && amd64

package jit

import "vplay/replay/x86"

// The stack. Its pointer is a register of the host like others, and moves without a
// change of flags, when the access is done.
//
// Where accesses are not checked, the base of GS is what is added to addresses in the part that the stack pointer is in, so an access
// from the stack pointer is the instruction with gs:[r13+disp]. Go sets it whenever it enters. Instructions that move the stack pointer
// by little are executed as they are: until Go looks again it is in that part, or beside it by less than the guard of the part's
// window. Before all others it is looked whether the pointer stays in the part; where it does not, the handler executes the instruction.
//
// Where the host does not keep the base of GS, the stack pointer is a base register like others (direct.go).

// stackPointer is the guest's.
const stackPointer = r13

// maxStackStep is by how many bytes an instruction moves the stack pointer at most without a look.
const maxStackStep = 1 << 12

// The stack pointer and what is accessed from there stay in the guard until Go looks.
const _ = uint(windowGuard - maxSlice*maxStackStep - 2*maxDisp)

// hasStack reports whether generated code may be entered: the stack pointer is an address that a program can have, or all accesses are checked.
func (e *Engine) hasStack(c *x86.CPU) bool {
	return !e.direct || e.NoGS || c.R[x86.RSP] < maxUser
}

// isBeside reports whether what is accessed from guest register base is found by the base of GS, where accesses are not checked.
func (t *translator) isBeside(base uint8) bool { return base == x86.RSP && !t.e.NoGS }

// setGS emits what sets the base of GS. rax is lost.
func (t *translator) setGS() {
	t.mem(opMov, scratch, t.word(wordStackAdded))
	t.bytes(0xf3, 0x48, 0x0f, 0xae, 0xd8) // wrgsbase rax
}

// keepsStack emits, where the instruction may move the stack pointer to another part, what looks whether it does. It returns false, with
// nothing emitted, for an instruction that the handler must execute.
func (t *translator) keepsStack() bool {
	if !t.mayLeavePart(t.in, t.f) {
		return true
	}
	r, ok := t.nextStack()
	if !ok {
		return false
	}
	t.part(r)
	t.mem(opCmp8, scratch, t.word(wordStackPart))
	t.lost()
	t.miss(ifNotEqual)
	return true
}

// mayLeavePart reports whether in may move the stack pointer by so much that it is in another part, and somebody relies on that it is not.
func (t *translator) mayLeavePart(in *x86.Inst, f *fact) bool {
	isHigh := in.Size == 1 && in.Flags&x86.InstREX == 0 // ah and not spl
	if !t.e.direct || t.e.NoGS || f.written(in)>>x86.RSP&1 == 0 || isHigh {
		return false
	}
	n, ok := stackStep(in, f)
	return !ok || n > maxStackStep
}

// stackStep returns by how many bytes in moves the stack pointer at most, where that is known.
func stackStep(in *x86.Inst, f *fact) (n int64, ok bool) {
	if d, ok := stackMove(in, f); ok {
		return max(int64(d), -int64(d)), true
	}
	switch h := x86.Rows()[in.Row].Handler; h {
	case "intPushRM", "intCallRM":
		return 8, in.Size == 8
	case "intRet":
		return 8 + int64(in.Imm&0xffff), in.Size == 8
	case "intAnd": // to a multiple of something
		d := -int64(in.Imm)
		return d, d > 0 && in.Size == 8 && f.reg.dir == 0 && in.Flags&x86.InstMem == 0
	}
	return 0, false
}

// nextStack returns a register of the host that has what the stack pointer will be, or an address near it. The flags may be lost.
func (t *translator) nextStack() (r uint8, ok bool) {
	in, h := t.in, x86.Rows()[t.in.Row].Handler
	isMem := in.Flags&x86.InstMem != 0
	other := in.RM
	if t.f.op.op&2 == 0 {
		other = in.Reg
	}
	d, isKnown := stackMove(in, t.f)
	switch {
	case in.Size != 8:
		return 0, false
	case isKnown:
		t.save()
		t.overwrites(address)
		t.mem(opLea, address, at(stackPointer, d))
		return address, true
	case h == "intLeave":
		t.save()
		return rbp, true
	case h == "intLea" && inMemory(in):
		t.save()
		t.effective(address)
		t.isComputed = true
		return address, true
	case isMem || t.f.reg.dir == 0:
		return 0, false
	case h == "intMovStore" || h == "intMovLoad":
		t.save()
		return t.operand(other, address), true
	case h == "intSub" || h == "intAdd":
		t.save()
		t.overwrites(address)
		t.move(address, stackPointer)
		o := opAdd
		if h == "intSub" {
			o = opSub
		}
		t.withGuest(o, address, other)
		return address, true
	}
	return 0, false
}

// withGuest emits o for register r of the host and guest register n.
func (t *translator) withGuest(o opcode, r, n uint8) {
	if h := hostOf[n]; h != none {
		t.reg(o, r, h)
	} else {
		t.mem(o, r, t.guest(n))
	}
}

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
	if t.isDirect() && !t.e.NoGS { // keepsStack has looked
		t.directSite()
		t.place = memory{base: rbp, index: none, segment: true}
	} else {
		t.top(x86.RBP)
	}
	t.mem(opMov, scratch, t.place)
	t.mem(opLea, stackPointer, at(rbp, 8))
	t.move(rbp, scratch)
	return true
}
