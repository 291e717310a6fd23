//go:build linux && amd64

package jit

import (
	"slices"
	"strings"

	"vplay/replay/x86"
)

// Vector instructions, and those with a VEX prefix: vector registers are the host's own, so one
// function emits nearly all rows. They are loaded when the first unit that uses them is entered and
// stored on the way out (stubs.go); units of integer code pay nothing.
//
// MXCSR is the guest's meanwhile. So generated code runs only while it has no bit that the host may not have. Where the
// guest does not mask all floating-point exceptions (programs of Free Pascal and SBCL, and those that called feenableexcept(3)), the host
// raises them: they are faults, with nothing of the instruction done (SDM volume 1, 11.5.3), so that the interpreter executes it
// (Engine.faulted). Such a guest has code of its own, which has the flags saved before each instruction that may fault so.

// vectorFiles are the tables whose rows may be emitted.
var vectorFiles = []string{"sse", "sse2", "sse3", "sse4", "avx", "fma", "crypto", "bmi"}

// vectorImplied are the operands that need no code of their own.
var vectorImplied = []string{"xmm0", "vec", "mxcsr"}

// vendorOnly are the handlers of instructions whose results are a model's own.
var vendorOnly = []string{"rsqrtps", "rsqrtss", "rcpps", "rcpss", "vrsqrtps", "vrsqrtss", "vrcpps", "vrcpss"}

// Bits of MXCSR: those that may be set in the host's, the masks of exceptions, and the exceptions, of which each has its
// mask so many bits above it (SDM volume 1, 10.2.3).
const (
	mxcsrAllowed   = 0xffff
	mxcsrMasks     = 0x1f80
	mxcsrFlags     = 0x3f
	mxcsrMaskShift = 7
)

// vectorFact completes the fact of row i, number of r, when the row can be emitted by the rule here.
func (f *fact) vectorFact(r *x86.Row, i int) {
	e := &r.Encoding
	if !slices.Contains(vectorFiles, r.File) || e.EVEX || e.XOP || e.Second >= 0 || e.PlusR || !hostHas(r.CPUID) || !hostHas("AVX2") ||
		r.Attr("refuse") || strings.HasSuffix(r.Mnemonic, "MXCSR") || slices.Contains(vendorOnly, r.Handler) || r.Attr("end") || r.Attr("stop") || strings.HasPrefix(r.Handler, "pcmp") && strings.Contains(r.Handler, "str") {
		return
	}
	for _, m := range r.Implied {
		if !slices.Contains(vectorImplied, m.Name) && m.Name != "rdx" {
			return
		}
	}
	if !f.vectorOperands(r, i) {
		return
	}
	f.vector, f.isVectors = r.File != "bmi", true
	f.raises = slices.ContainsFunc(r.Implied, func(o x86.Implied) bool { return o.Name == "mxcsr" })
	f.emit = vectors
	switch {
	case r.Attr("align16"):
		f.align = 16
	case r.Attr("align32"):
		f.align = 32
	}
}

// vectorOperands finds out where the operands of r stand, from an instruction whose registers are
// all different. It returns false when there are some of another kind.
func (f *fact) vectorOperands(r *x86.Row, i int) bool {
	const reg, rm, vvvv = 1, 2, 3
	probe := x86.Inst{Row: uint16(i), Reg: reg, RM: rm, VVVV: vvvv, Base: x86.NoReg, Index: x86.NoReg, Seg: x86.NoSeg, Flags: x86.InstREX}
	if r.Encoding.Imm == x86.ImmIs4 {
		probe.Imm = 4 << 4
	}
	for j, o := range probe.Operands() {
		if j >= len(r.Operands) {
			break
		}
		name := r.Operands[j]
		if strings.HasPrefix(name, "mm") || strings.HasPrefix(name, "vm") || o.Uses.X87 != 0 {
			return false
		}
		switch o.Uses.R {
		case 1 << reg:
			f.reg = operand{dir: o.Dir}
		case 1 << vvvv:
			f.general = o.Dir
		}
		if strings.Contains(name, "m") && name != "imm8" && !isVector(name) {
			f.rm = operand{dir: o.Dir, size: memoryOf(name)}
			f.rmGeneral = o.Uses.R == 1<<rm && name[0] == 'r'
		}
		if o.Uses.R == 1<<rm && name[0] == 'r' && f.rm.dir == 0 {
			f.rm, f.rmGeneral = operand{dir: o.Dir}, true
		}
	}
	return true
}

// isVector reports whether an operand is a vector register and never memory.
func isVector(name string) bool { return name == "xmm" || name == "ymm" }

// memoryOf returns the size of the memory operand by its name; 0 where it is the instruction's.
func memoryOf(name string) uint8 {
	for _, s := range []struct {
		end  string
		size uint8
	}{{"m256", 32}, {"m128", 16}, {"m64", 8}, {"m32", 4}, {"m16", 2}, {"m8", 1}} {
		if strings.HasSuffix(name, s.end) {
			return s.size
		}
	}
	return 0
}

// vectors emits the instruction as it is.
func vectors(t *translator) bool {
	in, f := t.in, t.f
	isVEX, isMem := in.Flags&x86.InstVEX != 0, in.Flags&x86.InstMem != 0
	if f.vector && !t.e.vectors || t.keepsUse() && t.handlerIs("vzeroall") {
		return false
	}
	rm, reg := in.RM, in.Reg
	if isMem {
		if !inMemory(in) || f.rm.dir == 0 {
			return false
		}
		t.access(t.vectorSize(), f.rm.dir&x86.DirWrite != 0)
		if !t.isDirect() { // else the host looks at that
			t.aligned()
		}
	}
	if f.raises && t.e.traps {
		t.save()
		t.site()
	}
	t.flagsBefore(f.reads)
	if !isMem && f.rmGeneral {
		rm = t.take(rm, f.rm, address)
	}
	if f.reg.dir != 0 {
		reg = t.take(reg, f.reg, scratch)
	} else if t.digits() {
		reg = f.digit
	}
	if isVEX {
		v := in.VVVV
		if f.general != 0 {
			v = t.takeThird(reg, isMem)
		}
		t.vex(reg, v, rm, isMem)
		t.putThird(v) // before reg: MULX may have one register twice, which is the upper half then
	} else {
		o := f.op
		o.w = in.Flags&x86.InstW != 0
		t.legacy(o, reg, rm, isMem)
	}
	if f.imm != x86.ImmNone {
		t.bytes(byte(in.Imm))
	}
	t.noteUse()
	t.flagsBehind(recipe{})
	if f.reg.dir != 0 {
		t.put(in.Reg, f.reg, scratch)
	}
	if !isMem && f.rmGeneral {
		t.put(in.RM, f.rm, address)
	}
	return true
}

// takeThird returns the host's register for the general register that VEX.vvvv names. One that the host does not have
// goes through a register that the other operands do not need, or through RCX, which is kept meanwhile.
func (t *translator) takeThird(reg uint8, isMem bool) uint8 {
	n := t.in.VVVV & 15
	if h := hostOf[n]; h != none {
		return h
	}
	via := uint8(scratch)
	if reg == scratch {
		if via = rcx; !isMem && (!t.f.rmGeneral || hostOf[t.in.RM] != none) {
			via = address
			t.overwrites(address)
		} else {
			t.mem(opMovTo, rcx, t.word(wordSpill1))
		}
	}
	if t.f.general&x86.DirRead != 0 {
		t.mem(opMov, via, t.guest(n))
	}
	return via
}

// spillsRCX reports whether takeThird keeps RCX elsewhere while memory is accessed.
func (t *translator) spillsRCX() bool {
	f := t.f
	return f.isVectors && f.general != 0 && hostOf[t.in.VVVV&15] == none && f.reg.dir != 0 && hostOf[t.in.Reg] == none
}

// putThird undoes takeThird, and stores what was written.
func (t *translator) putThird(via uint8) {
	n := t.in.VVVV & 15
	if t.f.general == 0 || hostOf[n] != none {
		return
	}
	if t.f.general&x86.DirWrite != 0 {
		t.mem(opMovTo, via, t.guest(n))
	}
	if via == rcx {
		t.mem(opMov, rcx, t.word(wordSpill1))
	}
}

// noteUse keeps wordUpper, without touching a flag: Intel's XINUSE has a bit for the upper halves of YMM registers, which what writes
// 256 bits sets, whatever it writes, and VZEROUPPER clears. VZEROALL, which clears another as well, is its handler's.
func (t *translator) noteUse() {
	inUse := uint32(x86.ComponentAVX)
	switch {
	case !t.keepsUse():
		return
	case t.handlerIs("vzeroupper"):
		inUse = 0
	case !t.in.UsesAVX():
		return
	}
	if t.upper == inUse+1 {
		return
	}
	t.upper = inUse + 1
	t.mem(opMovIm32, 0, t.word(wordUpper))
	t.imm32(inUse)
}

// keepsUse reports whether generated code keeps wordUpper.
func (t *translator) keepsUse() bool { return t.c.ID.Vendor == x86.VendorIntel }

// handlerIs reports whether the instruction's handler has that name.
func (t *translator) handlerIs(name string) bool { return x86.Rows()[t.in.Row].Handler == name }

// digits reports whether ModRM.reg belongs to the opcode.
func (t *translator) digits() bool { return x86.Rows()[t.in.Row].Encoding.Digit >= 0 }

// vectorSize returns how many bytes at the memory operand must be in one page: as many as
// are accessed, or more.
func (t *translator) vectorSize() uint8 {
	n := t.f.rm.size
	switch {
	case n == 0:
		n = 8
	case t.in.Flags&x86.InstVEX == 0 || !t.f.vector:
	case t.in.Flags&x86.InstL != 0:
		n = max(n, 32)
	default:
		n = max(n, 16)
	}
	return n
}

// aligned has a memory operand that is not aligned go to the handler, where it must be.
func (t *translator) aligned() {
	n := t.f.align
	if n == 0 {
		return
	}
	if n == 32 && t.in.Flags&x86.InstL == 0 {
		n = 16
	}
	t.save()
	if d := t.place.disp; d&int32(n-1) != 0 {
		t.mem(opLea, address, t.place)
		t.holds = noAnchor
		t.place = at(address, 0)
	}
	t.reg(opcode{op: 0xf6, rex: true}, 0, address) // test r15b, imm8
	t.bytes(n - 1)
	t.miss(ifNotEqual)
	t.lost()
}

// legacy writes an SSE instruction.
func (t *translator) legacy(o opcode, reg, rm uint8, isMem bool) {
	if isMem {
		t.mem(o, reg, t.place)
	} else {
		t.reg(o, reg, rm)
	}
}

// vex writes an instruction with a VEX prefix of three bytes.
func (t *translator) vex(reg, v, rm uint8, isMem bool) {
	in, o := t.in, t.f.op
	b, x := rm, uint8(0)
	if isMem {
		if b = t.place.base; t.place.index != none {
			x = t.place.index
		}
	}
	last := ^v & 15 << 3
	if in.Flags&x86.InstW != 0 {
		last |= 0x80
	}
	if in.Flags&x86.InstL != 0 {
		last |= 4
	}
	switch o.prefix {
	case 0x66:
		last |= 1
	case 0xf3:
		last |= 2
	case 0xf2:
		last |= 3
	}
	if isMem {
		t.prefix(t.place)
	}
	t.bytes(0xc4, ^reg>>3&1<<7|^x>>3&1<<6|^b>>3&1<<5|o.opmap, last, o.op)
	if !x86.Rows()[in.Row].Encoding.ModRM {
		return // VZEROUPPER
	}
	if isMem {
		t.operandBytes(reg, t.place)
		return
	}
	t.bytes(0xc0 | reg&7<<3 | rm&7)
}

// usesVectors reports whether code of this unit uses vector registers.
func (t *translator) usesVectors() bool {
	return t.e.vectors && slices.ContainsFunc(t.insts, func(in x86.Inst) bool {
		return t.rows[in.Row].vector && t.emitted(&in)
	})
}

// enterVectors emits what a unit that uses vector registers begins with.
func (t *translator) enterVectors() {
	t.mem(opCompare8, 7, t.word(wordLive))
	t.bytes(0)
	over := t.jcc(ifNotEqual)
	t.loadVectors()
	t.patch(over, t.n)
}

// loadVectors emits a call of the code that loads them: it comes back to the address in rax.
func (t *translator) loadVectors() {
	t.bytes(0x48, 0x8d, 0x05) // lea rax, [rip+5]: behind the jump
	t.imm32(5)
	t.jmpTo(t.e.pool.vectors)
}
