//go:build linux && amd64

package jit

import (
	"math"
	"sync"

	"vplay/replay/x86"
)

// Memory operands. The guest's address goes to a register, the translation cache makes a host's
// address of it, or the handler does the access.

// inMemory reports whether the memory operand can be emitted.
func inMemory(in *x86.Inst) bool {
	return isAbsolute(in) ||
		in.Disp >= math.MinInt32 && in.Disp <= math.MaxInt32
}

// effective sets register to to the effective address of the memory operand, without
// the base of its segment. Flags stay.
func (t *translator) effective(to uint8) {
	in := t.in
	t.overwrites(to)
	if isAbsolute(in) {
		t.load64(to, uint64(in.Disp))
		return
	}
	m := memory{base: none, index: none, scale: in.Scale, disp: int32(in.Disp)}
	if in.Base != x86.NoReg {
		m.base = t.operand(in.Base, address)
	}
	if in.Index != x86.NoReg {
		m.index = t.operand(in.Index, scratch)
	}
	t.mem(opLea, to, m)
}

// operand returns the host's register that holds guest register n: its own, or via.
func (t *translator) operand(n, via uint8) uint8 {
	if h := hostOf[n]; h != none {
		return h
	}
	t.overwrites(via)
	t.mem(opMov, via, t.guest(n))
	return via
}

// overwrites says that register r gets another value.
func (t *translator) overwrites(r uint8) {
	if r == address {
		t.holds, t.isPlaced, t.within = noAnchor, false, noBase
	}
}

// access makes place the memory operand, of size bytes. Behind it the host's flags may be lost.
func (t *translator) access(size uint8, store bool) {
	if t.isDirect() {
		t.directOperand()
		return
	}
	if t.anchored(size, store) {
		return
	}
	t.save()
	t.effective(address)
	switch t.in.Seg {
	case x86.FS:
		t.mem(opAdd, address, at(rsp, t.layout.FSBase))
	case x86.GS:
		t.mem(opAdd, address, at(rsp, t.layout.GSBase))
	}
	t.check(size, store)
	t.placed(false)
}

// hasRORX says that the host has RORX.
var hasRORX = sync.OnceValue(func() bool { return hostHas("BMI2") })

// rotated sets scratch to the low half of address, rotated to the right by n bits; flags are lost.
func (t *translator) rotated(n uint8) {
	if hasRORX() {
		t.bytes(0xc4, 0xc3, 0x7b, 0xf0, 0xc7, n) // rorx eax, r15d, n
		return
	}
	t.reg(opMov32, scratch, address)
	t.reg(opShift32, 1, scratch)
	t.bytes(n)
}

// check makes place what is at the guest's address in address. Flags must have been saved.
func (t *translator) check(size uint8, store bool) {
	jump := t.checkRange(uint32(size), store)
	s := t.site()
	t.bad = t.bad || t.e.sites.at(s.id).native // the way out takes them from where a fault leaves them
	s.checks[s.m] = addressCheck{jump: jump, back: t.n, size: size, store: store}
	s.m++
	t.place = at(address, 0)
	t.lost()
}

// checkRange makes address the host's address of size bytes at the guest's in address, and returns the jump for when they are
// not on one page of the translation cache.
//
//	rorx eax, r15d, 8; and eax, 16*(entries-1)
//	sub r15, [rsp+rax+cache]; cmp r15, 4096-size; ja miss; add r15, [rsp+rax+cache+8]
func (t *translator) checkRange(size uint32, store bool) (jump int) {
	cache := t.layout.LoadTLB
	if store {
		cache = t.layout.StoreTLB
	}
	t.holds, t.within = noAnchor, noBase
	t.rotated(8)
	t.bytes(0x25) // and eax, imm32
	t.imm32(16 * (x86.TLBEntries - 1))
	entry := memory{base: rsp, index: scratch, disp: cache}
	t.mem(opSub, address, entry)
	t.reg(opGroup1, 7, address)
	t.imm32(pageSize - size)
	jump = t.jcc(ifAbove)
	entry.disp += 8
	t.mem(opAdd, address, entry)
	return jump
}
