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
	for g, h := range hostOf {
		if h != none {
			t.mem(opMov, h, t.guest(uint8(g)))
		}
	}
	t.mem(opMov, budget, t.word(wordBudget))
	t.mem(opJmpMem, 4, t.word(wordTarget))

	// The way out of code that faulted; wordFault says where.
	p.fault = t.n
	t.mem(opMovIm32, 0, t.word(wordExit))
	t.imm32(exitFault)

	p.exit = t.n
	for g, h := range hostOf {
		if h != none {
			t.mem(opMovTo, h, t.guest(uint8(g)))
		}
	}
	t.mem(opMovTo, budget, t.word(wordBudget))
	t.mem(opMov, rsp, t.word(wordStack))
	t.bytes(0xc3)
}
