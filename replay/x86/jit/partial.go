//go:build linux && amd64

package jit

import (
	"math/bits"

	"vplay/replay/x86"
)

// Pages that may be accessed directly in part (x86.PartialBus). What misses the translation cache looks there before it leaves: a few
// stack pages of most programs are not all known for long, behind XSAVE, and a watched variable has others beside it.

// addressCheck is a check whose way out is still to be emitted.
type addressCheck struct {
	jump  int // the jump that leads there
	back  int // where address is the host's
	size  uint8
	store bool
}

// partialSizes is how many sizes of access there is code for, each twice as large as the one before.
const partialSizes = 6

// partialStub returns the code that looks for the pages, 0 where there is none.
func (p *Pool) partialStub(size uint8, store bool) int {
	i := bits.TrailingZeros8(size)
	if size&(size-1) != 0 || i >= partialSizes {
		return 0
	}
	if store {
		i += partialSizes
	}
	return p.partial[i]
}

// lookPartial emits what follows on a check that fails, where address is what it left: the distance from the page in the entry
// that scratch leads to. Behind it, the page is none of these.
func (t *translator) lookPartial(c *addressCheck) {
	t.patch(c.jump, t.n)
	stub := t.e.pool.partialStub(c.size, c.store)
	if stub == 0 {
		return
	}
	cache := t.layout.LoadTLB
	if c.store {
		cache = t.layout.StoreTLB
	}
	t.mem(opAdd, address, memory{base: rsp, index: scratch, disp: cache})
	t.bytes(0x48, 0x8d, 0x05) // lea rax, [rip+5]: behind the jump
	t.imm32(5)
	t.jmpTo(stub)
	t.patch(t.jcc(ifZero), c.back)
}

// makePartialStubs writes the code for all sizes. It gets the guest's address in address, and where to go on in scratch. There
// ZF says that address is the host's; else it is lost.
func (p *Pool) makePartialStubs(t *translator) {
	for _, store := range []bool{false, true} {
		for i := range partialSizes {
			n := i
			if store {
				n += partialSizes
			}
			p.partial[n] = t.n
			t.partialStub(1<<i, store)
		}
	}
}

func (t *translator) partialStub(size uint8, store bool) {
	table := t.layout.LoadPartial
	if store {
		table = t.layout.StorePartial
	}
	t.mem(opMovTo, scratch, t.word(wordBack))
	t.mem(opMovTo, rcx, t.word(wordSpill1))
	t.mem(opMovTo, rdx, t.word(wordSpill2))
	t.rotated(12 - 5)
	t.bytes(0x25) // and eax, imm32
	t.imm32(32 * (x86.PartialEntries - 1))
	entry := func(n int32) memory { return memory{base: rsp, index: scratch, disp: table + n} }
	t.mem(opSub, address, entry(0))
	t.reg(opGroup1, 7, address)
	t.imm32(pageSize - uint32(size))
	isOther := t.jcc(ifAbove)

	// rcx := the bits of what is accessed and more, from 8 bytes of the mask, the last 8 at most; rdx := where they begin.
	const last = pageSize/8 - 8
	t.reg(opMov32, rdx, address)
	t.reg(opShift32, 5, rdx) // shr edx, 3
	t.bytes(3)
	t.reg(opGroup32, 7, rdx)
	t.imm32(last)
	isBefore := t.jcc(ifNotAbove)
	t.load64(rdx, last)
	t.patch(isBefore, t.n)
	t.mem(opMov, rcx, entry(16))
	t.mem(opMov, rcx, memory{base: rcx, index: rdx})
	t.reg(opShift32, 4, rdx) // shl edx, 3
	t.bytes(3)
	t.reg(opcode{op: 0xf7}, 3, rdx) // neg edx
	t.reg(opcode{op: 0x03}, rdx, address)
	t.bytes(0x48, 0x87, 0xd1)                // xchg rcx, rdx
	t.reg(opcode{op: 0xd3, w: true}, 5, rdx) // shr rdx, cl
	all := uint32(uint64(1)<<size - 1)
	t.reg(opGroup32, 4, rdx)
	t.imm32(all)
	t.reg(opGroup32, 7, rdx)
	t.imm32(all)
	isNotPlain := t.jcc(ifNotEqual)

	t.mem(opMov, rdx, entry(24))
	t.mem(opMov, rcx, t.word(wordPartial))
	t.mem(opLea, rcx, memory{base: rcx, index: rdx}) // an addition that keeps ZF
	t.mem(opMovTo, rcx, t.word(wordPartial))
	t.mem(opMov, rcx, entry(8))
	t.mem(opLea, address, memory{base: address, index: rcx})
	t.patch(isOther, t.n)
	t.patch(isNotPlain, t.n)
	t.mem(opMov, rcx, t.word(wordSpill1))
	t.mem(opMov, rdx, t.word(wordSpill2))
	t.mem(opJmpMem, 4, t.word(wordBack))
}
