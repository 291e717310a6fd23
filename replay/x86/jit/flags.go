//go:build linux && amd64

package jit

import "vplay/replay/x86"

// The arithmetic flags. Nearly nobody looks at them between the instruction that sets them and the
// next that does, but whoever leaves generated code must find them exact. So they are saved late: an
// address check changes the host's flags, and what a way out needs to have the guest's back is a
// recipe, the comparison that is done again there. Only where there is no recipe, or a register of it
// changes too early, are they saved at once (LAHF and SETO).
//
// Between units the flags are in wordFlags, or a recipe is: its number there and its operands
// in two more words (pass). Units that read the flags they are entered with get them saved (link.go).

// recipe says how to set the host's flags to the guest's again, with rax alone, while the guest
// registers in regs keep their values.
type recipe struct {
	kind  recipeKind
	digit uint8 // of a comparison or shift: the number of the operation
	size  uint8
	reg   uint8 // guest register: the result, or what is compared
	other uint8 // the other operand; x86.NoReg: imm
	regs  uint16
	delta int32 // has been added to reg since; it is the stack pointer then
	imm   uint64
}

type recipeKind uint8

// The kinds of recipe: what the instruction did.
const (
	noRecipe   recipeKind = iota
	compared              // CMP of reg and other
	tested                // TEST of reg and other
	logical               // AND, OR or XOR: reg is the result
	sum                   // ADD of other: reg is the result
	difference            // SUB of other: reg is the result
	negated               // NEG: reg is the result
	zeroed                // XOR or SUB of a register and itself
	shifted               // shift by an immediate: wordLeft has what was shifted
)

// recipeOf are the recipes of instructions, by the name of the row's handler.
var recipeOf = map[string]recipeKind{
	"intCmp": compared, "intTest": tested, "intAnd": logical, "intOr": logical, "intXor": logical,
	"intAdd": sum, "intSub": difference, "intNeg": negated, "intShiftImm": shifted, "intShift1": shifted,
}

// recipe returns the recipe of the flags behind t.in, whose operands are registers.
func (t *translator) recipe() recipe {
	in, f := t.in, t.f
	r := recipe{kind: f.recipe, size: in.Size, reg: in.RM, other: in.Reg, imm: in.Imm}
	byteForm := f.rm.byte || f.reg.byte
	switch {
	case r.kind == noRecipe, byteForm && in.Flags&x86.InstREX == 0 && (in.RM >= 4 || in.Reg >= 4):
		return recipe{}
	case f.reg.dir == 0:
		r.other = x86.NoReg
	case r.kind != tested && f.op.op&2 != 0:
		r.reg, r.other = in.Reg, in.RM
	}
	r.regs = 1 << r.reg
	if r.other == x86.NoReg || r.kind == negated {
		return r
	}
	if r.reg == r.other {
		switch {
		case r.kind == sum:
			return recipe{}
		case r.kind == difference, r.kind == logical && f.op.op&^7 == 0x30:
			return recipe{kind: zeroed}
		}
	}
	if r.kind != logical {
		r.regs |= 1 << r.other
	}
	return r
}

// memoryRecipe is recipe for an instruction whose source is in memory.
func (t *translator) memoryRecipe() recipe {
	in, f := t.in, t.f
	if f.recipe != logical || f.op.op&2 == 0 || f.reg.dir&x86.DirWrite == 0 || f.reg.byte && t.highByte(in.Reg) {
		return recipe{}
	}
	return recipe{kind: logical, size: in.Size, reg: in.Reg, regs: 1 << in.Reg}
}

// cook emits r: the host's flags become those that it stands for. rax is lost.
func (t *translator) cook(r recipe) {
	switch r.kind {
	case zeroed:
		t.reg(opcode{op: 0x3b}, rax, rax)
		return
	case shifted:
		t.mem(opMov, rax, t.word(wordLeft))
		t.reg(sized(opcode{op: 0xc1}, r.size), r.digit, rax)
		t.bytes(byte(r.imm))
		return
	case noRecipe, compared, tested, logical, sum, difference, negated:
	}
	left := t.operand(r.reg, rax)
	if r.kind > logical {
		if t.move(rax, left); r.delta != 0 {
			t.mem(opLea, rax, at(left, -r.delta))
		}
		left = rax
	}
	const add, sub = 0, 5
	switch r.kind {
	case compared:
		t.operate(7, left, r)
	case tested:
		t.test(left, r)
	case logical:
		t.reg(sized(opcode{op: 0x85}, r.size), left, left)
	case sum:
		t.operate(sub, left, r)
		t.operate(add, left, r)
	case difference:
		t.operate(add, left, r)
		t.operate(sub, left, r)
	case negated:
		t.reg(sized(opcode{op: 0xf7}, r.size), 3, rax)
		t.reg(sized(opcode{op: 0xf7}, r.size), 3, rax)
	case noRecipe, zeroed, shifted:
	}
}

// sized makes the form of o for operands of size bytes. o is the form of 32 bits.
func sized(o opcode, size uint8) opcode {
	switch size {
	case 1:
		o.op--
		o.rex = true
	case 2:
		o.size16 = true
	case 8:
		o.w = true
	}
	return o
}

// operate emits operation digit of the arithmetic group on left and the other operand of r.
func (t *translator) operate(digit, left uint8, r recipe) {
	switch {
	case r.other == x86.NoReg:
		t.reg(sized(opcode{op: 0x81}, r.size), digit, left)
		t.immediate(r.imm, min(r.size, 4))
	case hostOf[r.other] == none:
		t.mem(sized(opcode{op: digit<<3 | 3}, r.size), left, t.guest(r.other))
	default:
		t.reg(sized(opcode{op: digit<<3 | 3}, r.size), left, hostOf[r.other])
	}
}

// test emits TEST of left and the other operand of r.
func (t *translator) test(left uint8, r recipe) {
	switch {
	case r.other == x86.NoReg:
		t.reg(sized(opcode{op: 0xf7}, r.size), 0, left)
		t.immediate(r.imm, min(r.size, 4))
	case hostOf[r.other] == none:
		t.mem(sized(opcode{op: 0x85}, r.size), left, t.guest(r.other))
	default:
		t.reg(sized(opcode{op: 0x85}, r.size), left, hostOf[r.other])
	}
}

// flagState says where the guest's flags are.
type flagState struct {
	native bool   // in the host's
	saved  bool   // in wordFlags
	recipe recipe // or this makes them
	entry  bool   // saved, and as they were when the unit was entered
	dead   bool   // nowhere: nobody looks before they are overwritten
}

// observe notes that somebody may see the flags: generated code may leave here.
func (t *translator) observe() {
	if t.flags.dead {
		t.bad = true
	}
	if t.flags.entry {
		t.u.sees = true
	}
}

// save makes sure that a way out has the flags: the next thing may leave, or changes the host's.
func (t *translator) save() {
	s := &t.flags
	if s.saved || s.recipe.kind != noRecipe && (!s.native || t.keeps()) {
		return
	}
	t.mustSave()
}

// mustSave saves the flags now.
func (t *translator) mustSave() {
	t.observe()
	s := &t.flags
	if s.entry {
		t.u.needs = true
	}
	if s.saved {
		return
	}
	t.load()
	t.saveFlags()
	s.saved = true
}

// load makes sure that the host's flags are the guest's.
func (t *translator) load() {
	t.observe()
	s := &t.flags
	switch {
	case s.native:
		return
	case s.recipe.kind != noRecipe:
		t.cook(s.recipe)
	default:
		if s.entry {
			t.u.needs = true
		}
		t.loadFlags()
	}
	s.native = true
}

// lost says that the host's flags were overwritten.
func (t *translator) lost() { t.flags.native = false }

// flagsBefore does what the instruction needs of the flags before it executes. reads says
// whether it reads some.
func (t *translator) flagsBefore(reads bool) {
	if reads || t.f.writes && t.f.partly {
		t.load()
	}
}

// flagsBehind notes where the flags are behind the instruction, which has recipe r for them.
func (t *translator) flagsBehind(r recipe) {
	if t.f.writes {
		t.flags = flagState{native: true, recipe: r}
	}
}

// handled notes that the handler has executed the instruction.
func (t *translator) handled() { t.flags = flagState{saved: true} }

// loses reports whether the instruction changes a register of the recipe.
func (t *translator) loses() bool {
	r := &t.flags.recipe
	return r.kind != noRecipe && t.changes(t.in, t.f)&r.regs != 0
}

// changes returns the guest registers that in writes, but for the stack pointer where the
// recipe can follow it (moveStack): not behind POP RSP.
func (t *translator) changes(in *x86.Inst, f *fact) uint16 {
	w := f.written(in)
	if r := &t.flags.recipe; f.moves && !(f.wReg && in.Reg == x86.RSP) && (r.kind == sum || r.kind == difference) && r.reg == x86.RSP &&
		r.size == 8 && r.other == x86.NoReg {
		w &^= f.implied & (1 << x86.RSP)
	}
	return w
}

// afterwards has the recipe forgotten when the instruction has changed a register of it.
func (t *translator) afterwards(lost bool) {
	s := &t.flags
	if lost && !t.f.writes {
		s.recipe = recipe{}
		s.dead = !s.native && !s.saved
	}
}

// keeps reports whether the recipe serves until the flags are overwritten or the unit ends.
func (t *translator) keeps() bool {
	for i := t.i; i < len(t.u.insts); i++ {
		in := &t.u.insts[i]
		f := &t.rows[in.Row]
		switch {
		case !t.emitted(in) || f.writes:
			return true
		case f.indirect:
			return false // it leads to code that may want them
		case t.changes(in, f)&t.flags.recipe.regs != 0:
			return t.deadFrom(i + 1)
		}
	}
	return true
}

// deadFrom reports whether the flags are overwritten before anybody may see them, from instruction i on.
func (t *translator) deadFrom(i int) bool {
	for ; i < len(t.u.insts); i++ {
		in := &t.u.insts[i]
		f := &t.rows[in.Row]
		if i == t.sieveAt || !t.emitted(in) || !isQuiet(in, f) || t.mayLeavePart(in, f) {
			return false
		}
		if f.writes {
			return true
		}
	}
	return false
}

// isQuiet reports whether in is emitted for certain, and can neither leave nor does it read flags.
func isQuiet(in *x86.Inst, f *fact) bool {
	isMem := in.Flags&x86.InstMem != 0
	switch {
	case !f.quiet, f.reads, f.writes && f.partly, in.Size < 4 || f.rm.byte || f.reg.byte:
		return false
	case isMem:
		return f.address && inMemory(in)
	}
	return f.rm.dir != 0 || f.plusR
}

// leaveFlags emits, on a way out that is taken where the flags are as s says, what stores them.
func (t *translator) leaveFlags(s flagState) {
	if s.saved {
		return
	}
	t.bad = t.bad || s.recipe.kind == noRecipe
	t.cook(s.recipe)
	t.saveFlags()
}

// pass says which recipe is in wordFlags, above the flags; its operands are in wordLeft and wordRight.
const passShift = 16

// passable reports whether r can be left to another unit.
func (r *recipe) passable() bool { return r.kind != noRecipe && r.kind != shifted }

// pass emits the stores that leave r to the next unit. Flags stay.
func (t *translator) pass(r recipe) {
	if r.kind == zeroed {
		t.mem(opMovIm32, 0, t.word(wordFlags))
		t.imm32((x86.FlagZF | x86.FlagPF) << flagsShift)
		return
	}
	left := t.operand(r.reg, rax)
	if r.delta != 0 {
		t.mem(opLea, rax, at(left, -r.delta))
		left = rax
	}
	t.mem(opMovTo, left, t.word(wordLeft))
	switch {
	case r.kind == logical || r.kind == negated:
	case r.other == x86.NoReg:
		t.mem(opMovImm, 0, t.word(wordRight))
		t.imm32(uint32(r.imm))
	default:
		t.mem(opMovTo, t.operand(r.other, rax), t.word(wordRight))
	}
	t.mem(opMovIm32, 0, t.word(wordFlags))
	t.imm32((uint32(r.kind)<<4 | uint32(r.size)) << passShift)
}

// passed sets the processor's flags from the recipe that one unit left to another.
func passed(c *x86.CPU, which uint64) {
	a, b, size := c.Host[wordLeft], c.Host[wordRight], uint8(which&15)
	switch recipeKind(which >> 4) {
	case compared:
		c.SubFlags(a, b, a-b, size)
	case tested:
		c.LogicFlags(a&b, size)
	case logical:
		c.LogicFlags(a, size)
	case sum:
		c.AddFlags(a-b, b, a, size)
	case difference:
		c.SubFlags(a+b, b, a, size)
	case negated:
		c.SubFlags(0, -a, a, size)
	case noRecipe, zeroed, shifted:
	}
}
