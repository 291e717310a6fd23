//go:build linux && amd64

package jit

import "vplay/replay/x86"

// The code that all engines share: the ways in and out.

// makeStubs writes them to the beginning of the pool.
func (p *Pool) makeStubs() {
	t := translator{assembler: assembler{buf: p.rw[:stubSize]}, layout: x86.Layout()}
	t.bytes(0xcc) // nothing is at offset 0

	// The way in. rdi is the CPU, wordTarget where to go on.
	p.enter = t.n
	t.mem(opMovTo, rsp, at(rdi, t.layout.Host+8*wordStack))
	t.move(rsp, rdi)
	if p.setsGS {
		t.setGS()
	}
	t.guests(opMov)
	t.mem(opMov, budget, t.word(wordBudget))
	t.mem(opCompare8, 7, t.word(wordWant))
	t.bytes(0)
	want := t.jcc(ifNotEqual)
	t.mem(opJmpMem, 4, t.word(wordTarget))

	// Vector registers and MXCSR become the guest's, then on at rax.
	t.patch(want, t.n)
	t.mem(opMov, scratch, t.word(wordTarget))
	p.vectors = t.n
	t.mem(opSTMXCSR, 3, t.word(wordMXCSR))
	t.mem(opLDMXCSR, 2, at(rsp, t.layout.MXCSR))
	for i := range uint8(16) {
		t.vector(opLoadVector, i)
	}
	t.mem(opMovIm32, 0, t.word(wordLive))
	t.imm32(1)
	t.reg(opJmpMem, 4, scratch)

	// The way out of code that faulted; wordFault says where.
	p.fault = t.n
	t.load64(scratch, exitFault)

	p.exit = t.n // rax says why
	t.mem(opMovTo32, scratch, t.word(wordExit))
	t.guests(opMovTo)
	t.mem(opMovTo, budget, t.word(wordBudget))
	t.mem(opCompare8, 7, t.word(wordLive))
	t.bytes(0)
	live := t.jcc(ifNotEqual)
	leave := t.n
	t.mem(opMov, rsp, t.word(wordStack))
	t.bytes(0xc3)

	// Vector registers go back, and MXCSR is Go's again.
	t.patch(live, t.n)
	for i := range uint8(16) {
		t.vector(opStoreVector, i)
	}
	t.mem(opSTMXCSR, 3, at(rsp, t.layout.MXCSR))
	t.mem(opLDMXCSR, 2, t.word(wordMXCSR))
	t.mem(opMovIm32, 0, t.word(wordLive))
	t.imm32(0)
	t.bytes(0xc5, 0xf8, 0x77) // vzeroupper
	t.jmpTo(leave)

	p.makePartialStubs(&t)
}

// guests writes moves of the guest's registers that are in the host's, from or to their places in the State.
func (t *translator) guests(op opcode) {
	for g, h := range hostOf {
		if h != none {
			t.mem(op, h, t.guest(uint8(g)))
		}
	}
}

// vector writes a move of all of vector register i from or to its place in the State.
func (t *translator) vector(op byte, i uint8) {
	t.bytes(0xc5, ^i>>3&1<<7|0x7e, op, 0x84|i&7<<3, 0x24) // vmovdqu ymm, [rsp+disp32]
	t.imm32(uint32(t.layout.V + 32*int32(i)))
}
