//go:build linux && amd64

package jit

import "vplay/replay/x86"

// Division. #DE would be the host's, so what can raise it goes to the handler: the tests before it
// prove that the quotient fits. They change flags, which the CPU then leaves as its maker
// does.

// Conditions of the jumps to the handler.
const (
	ifNotBelow = 3
	ifNotAbove = 6
)

// divide emits DIV of 32 and 64 bits where the high half is less than the divisor, and IDIV where it
// is the low half's sign, as behind CDQ and CQO, and the divisor is neither 0 nor -1.
func divide(t *translator) bool {
	in, f := t.in, t.f
	isMem := in.Flags&x86.InstMem != 0
	if in.Size < 4 || !inMemory(in) {
		return false
	}
	divisor := uint8(address)
	t.save()
	t.lost() // the tests below change them
	if isMem {
		t.access(in.Size, false)
	} else {
		divisor = t.operand(in.RM, address)
	}
	wide := in.Size == 8
	operate := func(o opcode, r uint8) {
		o.w = wide
		if isMem {
			t.mem(o, r, t.place)
		} else {
			t.reg(o, r, divisor)
		}
	}
	if f.digit == 6 {
		operate(opCmp, rdx)
		t.miss(ifNotBelow)
	} else {
		t.move(scratch, hostOf[x86.RAX])
		t.reg(opcode{op: 0xc1, w: wide}, 7, scratch) // sar, by the size less 1
		t.bytes(8*in.Size - 1)
		t.reg(opcode{op: 0x3b, w: wide}, scratch, rdx)
		t.miss(ifNotEqual)
		operate(opMov, scratch)
		t.mem(opcode{op: 0x8d, w: wide}, scratch, at(scratch, 1))
		t.reg(opcode{op: 0x83, w: wide}, 7, scratch) // cmp, 1: 0 and 1 were -1 and 0
		t.bytes(1)
		t.miss(ifNotAbove)
	}
	t.lost()
	t.load()
	t.move(rax, hostOf[x86.RAX])
	operate(f.op, f.digit)
	t.move(hostOf[x86.RAX], rax)
	t.flagsBehind(recipe{})
	return true
}
