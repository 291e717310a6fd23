//go:build linux && amd64

package jit

import "vplay/replay/x86"

// Instructions that are emitted again, as they are but for their operands.

// highByte reports whether byte register n is ah, ch, dh or bh.
func (t *translator) highByte(n uint8) bool { return n&^3 == 4 && t.in.Flags&x86.InstREX == 0 }

// opcodeOf returns the opcode with the prefixes of the instruction that matter.
func (t *translator) opcodeOf() opcode {
	o := t.f.op
	o.w = t.in.Flags&x86.InstW != 0
	if t.in.Flags&x86.InstOp16 != 0 && o.prefix != 0x66 {
		o.size16 = true
	}
	o.rex = t.f.rm.byte || t.f.reg.byte
	return o
}

// immediateOf writes the immediate, as wide as the row has it.
func (t *translator) immediateOf() {
	size := uint8(0)
	switch t.f.imm {
	case x86.ImmB:
		size = 1
	case x86.ImmZ:
		size = min(t.in.Size, 4)
	case x86.ImmW, x86.ImmD, x86.ImmV, x86.ImmNone, x86.ImmWB, x86.ImmMoffs, x86.ImmIs4:
	}
	t.immediate(t.in.Imm, size)
}

// again emits the instruction as it is.
func again(t *translator) bool { return t.again(t.f.reads) }

// again is the rule; reads says whether the instruction reads flags.
func (t *translator) again(reads bool) bool {
	in, f := t.in, t.f
	isMem := in.Flags&x86.InstMem != 0
	if f.rm.byte && !isMem && t.highByte(in.RM) {
		return t.againHigh(reads)
	}
	if f.rm.dir == 0 || f.reg.byte && t.highByte(in.Reg) {
		return isMem && t.storeHigh()
	}
	o, reg := t.opcodeOf(), f.digit
	if !isMem {
		t.flagsBefore(reads)
		rm := t.take(in.RM, f.rm, address)
		if f.reg.dir != 0 {
			reg = t.take(in.Reg, f.reg, scratch)
		}
		r := t.recipe()
		if f.recipe == shifted {
			r = t.shiftRecipe(rm)
		}
		t.reg(o, reg, rm)
		t.immediateOf()
		t.flagsBehind(r)
		t.put(in.Reg, f.reg, scratch)
		t.put(in.RM, f.rm, address)
		return true
	}
	if !inMemory(in) || f.rm.dir&x86.DirAddress != 0 {
		return false
	}
	t.access(t.memorySize(), f.rm.dir&x86.DirWrite != 0)
	t.flagsBefore(reads)
	if f.reg.dir != 0 {
		reg = t.take(in.Reg, f.reg, scratch)
	}
	t.mem(o, reg, t.place)
	t.immediateOf()
	t.flagsBehind(t.memoryRecipe())
	t.put(in.Reg, f.reg, scratch)
	return true
}

// againHigh is again where ModRM.rm is ah, ch, dh or bh and there is no other register, or for MOVZX. The guest's ah
// becomes the host's for the instruction.
func (t *translator) againHigh(reads bool) bool {
	in, f := t.in, t.f
	if f.reg.dir != 0 {
		return t.extendHigh()
	}
	t.flagsBefore(reads)
	isAH := in.RM == highAH
	if isAH {
		t.move(rax, hostOf[x86.RAX])
	}
	o := t.opcodeOf()
	o.rex = false // it would make another register of it
	t.reg(o, f.digit, in.RM)
	t.immediateOf()
	if isAH && f.rm.dir&x86.DirWrite != 0 {
		t.move(hostOf[x86.RAX], rax)
	}
	t.flagsBehind(recipe{})
	return true
}

// highAH is the number of ah.
const highAH = 4

// extendHigh emits MOVZX of ah, ch, dh or bh to 32 bits.
func (t *translator) extendHigh() bool {
	in := t.in
	if t.f.op.opmap != 1 || t.f.op.op != 0xb6 || in.Size != 4 {
		return false
	}
	t.move(rax, hostOf[in.RM-highAH])
	t.bytes(0x0f, 0xb6, 0xc4) // movzx eax, ah
	if h := hostOf[in.Reg]; h != none {
		t.reg(opMov32, h, rax)
	} else {
		t.mem(opMovTo, rax, t.guest(in.Reg))
	}
	return true
}

// storeHigh emits MOV of ah, ch, dh or bh to memory, whose address needs REX.
func (t *translator) storeHigh() bool {
	in := t.in
	if t.f.op.opmap != 0 || t.f.op.op != 0x88 || !inMemory(in) {
		return false
	}
	t.access(1, true)
	t.move(rax, hostOf[in.Reg-highAH])
	t.bytes(0x0f, 0xb6, 0xc4) // movzx eax, ah
	t.mem(opcode{op: 0x88}, rax, t.place)
	return true
}

// memorySize returns the size of the memory operand.
func (t *translator) memorySize() uint8 {
	if t.f.rm.size != 0 {
		return t.f.rm.size
	}
	return t.in.Size
}

// take returns the host's register for an operand in guest register n: its own, or via, which
// is loaded when the instruction keeps some of it.
func (t *translator) take(n uint8, o operand, via uint8) uint8 {
	if h := hostOf[n]; h != none {
		return h
	}
	t.overwrites(via)
	if o.dir&x86.DirRead != 0 || t.in.Size < 4 || o.byte {
		t.mem(opMov, via, t.guest(n))
	}
	return via
}

// put stores an operand that was written in via.
func (t *translator) put(n uint8, o operand, via uint8) {
	if o.dir&x86.DirWrite != 0 && hostOf[n] == none {
		t.mem(opMovTo, via, t.guest(n))
	}
}

// nothing is for instructions that do nothing.
func nothing(*translator) bool { return true }

// shiftImmediate emits shifts and rotates by an immediate. By zero they change nothing, which
// is left to the handler; else SHL, SHR and SAR read no flags.
func shiftImmediate(t *translator) bool {
	mask := uint64(31)
	if t.in.Size == 8 {
		mask = 63
	}
	if t.in.Imm&mask == 0 {
		return false
	}
	return t.again(t.f.reads && t.f.digit < 4)
}

// doubleShift emits SHLD and SHRD of more than 16 bits.
func doubleShift(t *translator) bool { return t.in.Size > 2 && again(t) }

// bitTest emits BT and its kin, but where a register has the offset from a memory operand.
func bitTest(t *translator) bool {
	return (t.in.Flags&x86.InstMem == 0 || t.f.reg.dir == 0) && again(t)
}

// extendDouble emits MOVSXD, but with operand size 16, where makers differ.
func extendDouble(t *translator) bool { return t.in.Size > 2 && again(t) }

// byteSwap emits BSWAP, whose register is in the opcode.
func byteSwap(t *translator) bool {
	if t.in.Size == 2 {
		return false
	}
	o := t.opcodeOf()
	r := t.operand(t.in.Reg, scratch)
	o.op = 0xc8 | r&7
	t.begin(o, 0, 0, r)
	t.store(t.in.Reg, r)
	return true
}

// store stores r to guest register n unless that is a register of the host.
func (t *translator) store(n, r uint8) {
	if hostOf[n] == none {
		t.mem(opMovTo, r, t.guest(n))
	}
}

// moveImmediate emits MOV of an immediate to the register in the opcode.
func moveImmediate(t *translator) bool {
	in := t.in
	if in.Size < 4 {
		if in.Size == 1 && t.highByte(in.Reg) {
			return false
		}
		o := opcode{op: 0xc7, size16: true}
		if in.Size == 1 {
			o = opcode{op: 0xc6, rex: true}
		}
		if h := hostOf[in.Reg]; h != none {
			t.reg(o, 0, h)
		} else {
			t.mem(o, 0, t.guest(in.Reg))
		}
		t.immediate(in.Imm, in.Size)
		return true
	}
	v, r := in.Imm, hostOf[in.Reg]
	if in.Size == 4 {
		v = uint64(uint32(v))
	}
	if r == none {
		r = scratch
	}
	t.load64(r, v)
	t.store(in.Reg, r)
	return true
}

// loadAddress emits LEA.
func loadAddress(t *translator) bool {
	in := t.in
	if in.Size < 4 || !inMemory(in) {
		return false
	}
	r := hostOf[in.Reg]
	if r == none {
		r = scratch
	}
	if !t.isComputed {
		t.effective(address)
	}
	t.isComputed = false
	if in.Size == 4 {
		t.reg(opMov32, r, address)
	} else {
		t.move(r, address)
	}
	t.store(in.Reg, r)
	return true
}

// exchangeAccumulator emits XCHG of rax and the register in the opcode. With rax itself it
// is NOP.
func exchangeAccumulator(t *translator) bool {
	n := t.in.Reg
	if n == x86.RAX {
		return true
	}
	if n&7 == x86.RAX && t.in.Flags&x86.InstRep != 0 {
		return false // PAUSE on Intel, whatever REX.B says
	}
	r := t.operand(n, address)
	o := t.opcodeOf()
	o.op, o.opmap = 0x87, 0
	t.reg(o, hostOf[x86.RAX], r)
	t.store(n, r)
	return true
}

// widen emits CBW, CWDE and CDQE.
func widen(t *translator) bool {
	r := hostOf[x86.RAX]
	switch t.in.Size {
	case 2:
		t.reg(opcode{op: 0xbe, opmap: 1, size16: true, rex: true}, r, r)
	case 4:
		t.reg(opcode{op: 0xbf, opmap: 1}, r, r)
	default:
		t.reg(opcode{op: 0x63, w: true}, r, r)
	}
	return true
}

// widenInto emits CWD, CDQ and CQO.
func widenInto(t *translator) bool {
	t.move(rax, hostOf[x86.RAX])
	t.begin(t.opcodeOf(), 0, 0, 0)
	return true
}

// multiply emits MUL and IMUL of rax, or al.
func multiply(t *translator) bool {
	in, f := t.in, t.f
	o := t.opcodeOf()
	if in.Flags&x86.InstMem != 0 {
		if !inMemory(in) {
			return false
		}
		t.access(t.memorySize(), false)
		t.flagsBefore(false)
		t.move(rax, hostOf[x86.RAX])
		t.mem(o, f.digit, t.place)
	} else {
		if f.rm.byte && t.highByte(in.RM) {
			return false
		}
		t.flagsBefore(false)
		r := t.operand(in.RM, address)
		t.move(rax, hostOf[x86.RAX])
		t.reg(o, f.digit, r)
	}
	t.move(hostOf[x86.RAX], rax)
	t.flagsBehind(recipe{})
	return true
}

// compareExchange emits CMPXCHG.
func compareExchange(t *translator) bool {
	in, f := t.in, t.f
	isMem := in.Flags&x86.InstMem != 0
	if hostOf[in.Reg] == none || f.reg.byte && t.highByte(in.Reg) || f.rm.byte && !isMem && t.highByte(in.RM) || !inMemory(in) {
		return false
	}
	o := t.opcodeOf()
	if isMem {
		t.access(t.memorySize(), true)
		t.move(rax, hostOf[x86.RAX])
		t.mem(o, hostOf[in.Reg], t.place)
	} else {
		if in.RM == x86.RAX { // it would have to be in two places
			return false
		}
		r := t.operand(in.RM, address)
		t.move(rax, hostOf[x86.RAX])
		t.reg(o, hostOf[in.Reg], r)
		t.store(in.RM, r)
	}
	t.move(hostOf[x86.RAX], rax)
	t.flagsBehind(recipe{})
	return true
}

// shiftRecipe keeps what is in register r of the host, which is about to be shifted, if anybody may
// want the flags.
func (t *translator) shiftRecipe(r uint8) recipe {
	if t.f.digit < 4 || t.f.partly || t.deadFrom(t.i+1) {
		return recipe{}
	}
	n := t.in.Imm
	if t.f.imm == x86.ImmNone {
		n = 1
	}
	t.mem(opMovTo, r, t.word(wordLeft))
	return recipe{kind: shifted, digit: t.f.digit, size: t.in.Size, imm: n}
}
