//go:build linux && amd64

package jit

import "encoding/binary"

// The assembler: one function for each shape of instruction that is emitted. It knows
// encodings (SDM vol. 2A, chapter 2), not guests.

// Host registers.
const (
	rax = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15

	none = 16 // no base, or no index
)

// opcode is an instruction without its operands.
type opcode struct {
	prefix byte  // 66, F2, F3 or 0: mandatory, or the operand size
	size16 bool  // 66 beside a mandatory prefix
	w      bool  // REX.W
	rex    bool  // a REX prefix is needed whatever the registers
	opmap  uint8 // 0 one-byte, 1 0F, 2 0F 38, 3 0F 3A
	op     byte
}

// memory is a memory operand of the host.
type memory struct {
	base, index uint8
	scale       uint8 // shift
	segment     bool  // GS is added
	disp        int32
}

// assembler writes code into buf at n. Code that does not fit sets full; the caller looks
// at it when the unit is finished.
type assembler struct {
	buf  []byte
	n    int
	full bool
}

// put writes the low n bytes of v, at most 8. What it writes behind them is written over.
func (a *assembler) put(v uint64, n int) {
	if a.n+8 > len(a.buf) {
		a.full = true
		return
	}
	binary.LittleEndian.PutUint64(a.buf[a.n:], v)
	a.n += n
}

// bytes writes at most 8 bytes.
func (a *assembler) bytes(b ...byte) {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	a.put(v, len(b))
}

func (a *assembler) imm32(v uint32) { a.put(uint64(v), 4) }

func (a *assembler) imm64(v uint64) { a.put(v, 8) }

// immediate writes the low size bytes of v.
func (a *assembler) immediate(v uint64, size uint8) { a.put(v, int(size)) }

// begin writes prefixes and opcode; r, x and b are the registers that REX extends.
func (a *assembler) begin(o opcode, r, x, b uint8) {
	v, n := uint64(0), 0
	if o.size16 {
		v, n = 0x66, 8
	}
	if o.prefix != 0 {
		v, n = v|uint64(o.prefix)<<n, n+8
	}
	rex := r>>3&1<<2 | x>>3&1<<1 | b>>3&1
	if o.w {
		rex |= 8
	}
	if rex != 0 || o.rex {
		v, n = v|uint64(0x40|rex)<<n, n+8
	}
	switch o.opmap {
	case 1:
		v, n = v|0x0f<<n, n+8
	case 2:
		v, n = v|0x380f<<n, n+16
	case 3:
		v, n = v|0x3a0f<<n, n+16
	}
	a.put(v|uint64(o.op)<<n, n/8+1)
}

// reg writes o with ModRM.reg r and register rm.
func (a *assembler) reg(o opcode, r, rm uint8) {
	a.begin(o, r, 0, rm)
	a.bytes(0xc0 | r&7<<3 | rm&7)
}

// mem writes o with ModRM.reg r and memory operand m.
func (a *assembler) mem(o opcode, r uint8, m memory) {
	x, b := m.index, m.base
	if x == none {
		x = 0
	}
	if b == none {
		b = 0
	}
	a.prefix(m)
	a.begin(o, r, x, b)
	a.operandBytes(r, m)
}

// prefix writes the prefix of m's segment, which stands before all others.
func (a *assembler) prefix(m memory) {
	if m.segment {
		a.bytes(0x65)
	}
}

// operandBytes writes ModRM and what follows it for register r and memory operand m.
func (a *assembler) operandBytes(r uint8, m memory) {
	r = r & 7 << 3
	index := uint64(4) // none
	if m.index != none {
		index = uint64(m.index & 7)
	}
	disp := uint64(uint32(m.disp))
	if m.base == none { // SIB without a base: a displacement of 32 bits
		a.put(uint64(4|r)|(uint64(m.scale)<<6|index<<3|5)<<8|disp<<16, 6)
		return
	}
	mod, size := uint8(0x80), 4
	switch {
	case m.disp == 0 && m.base&7 != rbp:
		mod, size = 0, 0
	case m.disp == int32(int8(m.disp)):
		mod, size = 0x40, 1
	}
	if m.index != none || m.base&7 == rsp {
		a.put(uint64(mod|r|4)|(uint64(m.scale)<<6|index<<3|uint64(m.base&7))<<8|disp<<16, 2+size)
	} else {
		a.put(uint64(mod|r|m.base&7)|disp<<8, 1+size)
	}
}

// at is the memory at a register.
func at(base uint8, disp int32) memory { return memory{base: base, index: none, disp: disp} }

// The instructions that translations are held together with.
var (
	opMov     = opcode{op: 0x8b, w: true} // reg, r/m
	opMov32   = opcode{op: 0x8b}
	opMovTo   = opcode{op: 0x89, w: true} // r/m, reg
	opMovTo32 = opcode{op: 0x89}
	opMovImm  = opcode{op: 0xc7, w: true} // r/m, imm32
	opMovIm32 = opcode{op: 0xc7}
	opMovIm8  = opcode{op: 0xc6}
	opLea     = opcode{op: 0x8d, w: true}
	opAdd     = opcode{op: 0x03, w: true}
	opSub     = opcode{op: 0x2b, w: true}
	opCmp     = opcode{op: 0x3b, w: true}
	opCmp8    = opcode{op: 0x3a}
	opTest    = opcode{op: 0x85, w: true}
	opGroup1  = opcode{op: 0x81, w: true} // r/m, imm32; /0 ADD, /4 AND, /5 SUB, /7 CMP
	opGroup32 = opcode{op: 0x81}

	opGroup1By8 = opcode{op: 0x83, w: true} // r/m, imm8
	opShift32   = opcode{op: 0xc1}          // r/m, imm8; /1 ROR
	opJmpMem    = opcode{op: 0xff}          // /4

	opCompare8 = opcode{op: 0x83}           // r/m32, imm8; /7
	opLDMXCSR  = opcode{op: 0xae, opmap: 1} // /2
	opSTMXCSR  = opcode{op: 0xae, opmap: 1} // /3
)

// The opcodes of VMOVDQU.
const (
	opLoadVector  = 0x6f
	opStoreVector = 0x7f
)

// move copies a register.
func (a *assembler) move(to, from uint8) {
	if to != from {
		a.reg(opMov, to, from)
	}
}

// load64 sets a register to a number, in the shortest form. Flags stay.
func (a *assembler) load64(r uint8, v uint64) {
	switch {
	case v == uint64(uint32(v)):
		a.begin(opcode{op: 0xb8 | r&7}, 0, 0, r)
		a.imm32(uint32(v))
	case v == uint64(int32(v)):
		a.reg(opMovImm, 0, r)
		a.imm32(uint32(v))
	default:
		a.begin(opcode{op: 0xb8 | r&7, w: true}, 0, 0, r)
		a.imm64(v)
	}
}

// The conditions of jcc.
const (
	ifBelow    = 2
	ifAbove    = 7
	ifZero     = 4
	ifNotEqual = 5
	ifSign     = 8
	ifNotSign  = 9
	ifLess     = 12
)

// jcc writes a conditional jump to be patched, and returns where its displacement stands.
func (a *assembler) jcc(cond uint8) int {
	a.put(0x800f|uint64(cond)<<8, 6)
	return a.n - 4
}

// jmp writes a jump to be patched, and returns where its displacement stands.
func (a *assembler) jmp() int {
	a.put(0xe9, 5)
	return a.n - 4
}

// jmpTo writes a jump to an offset in buf.
func (a *assembler) jmpTo(to int) { a.patch(a.jmp(), to) }

// patch has the jump whose displacement stands at p lead to an offset in buf.
func (a *assembler) patch(p, to int) {
	if a.full {
		return
	}
	binary.LittleEndian.PutUint32(a.buf[p:], uint32(to-p-4))
}
