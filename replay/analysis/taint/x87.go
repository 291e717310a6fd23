package taint

import (
	"strings"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// The x87 unit, register by register, and the MMX registers, which are parts of them. The stack's top is
// known before each instruction. A number is marked as a whole, but where it is only copied: then it is the bits.
//
// Exception flags are not followed, as those of MXCSR are not; nor the tag word, which says of a number whether it
// is zero. The condition codes are.

// x87Marks is the shadow of the unit.
type x87Marks struct {
	r      [8]x87Bits // by physical number
	tag    [8]Tag
	sw, cw uint16 // bits of the status and control words
	swTag  Tag
	cwTag  Tag
}

// x87Bits are the marks of a register: of the significand, and of sign and exponent.
type x87Bits struct {
	m uint64
	e uint16
}

var x87Whole = x87Bits{^uint64(0), 0xffff}

func (b x87Bits) isMarked() bool { return b != x87Bits{} }

// whole is what a result computed from b is.
func (b x87Bits) whole() x87Bits {
	if b.isMarked() {
		return x87Whole
	}
	return b
}

// all marks everything.
func (x *x87Marks) all(tag Tag) {
	for i := range x.r {
		x.r[i], x.tag[i] = x87Whole, tag
	}
	x.sw, x.cw, x.swTag, x.cwTag = x87Codes, 0xffff, tag, tag
}

// any reports whether something is marked, and by what.
func (x *x87Marks) any() (tag Tag, has bool) {
	for i := range x.r {
		if x.r[i].isMarked() {
			return x.tag[i], true
		}
	}
	switch {
	case x.sw != 0:
		return x.swTag, true
	case x.cw != 0:
		return x.cwTag, true
	}
	return 0, false
}

// Bits of the status word (SDM vol. 1, 8.1.3): the condition codes.
const (
	x87C1    = 1 << 9
	x87Codes = 1<<8 | x87C1 | 1<<10 | 1<<14
)

// x87Step is an instruction on its way.
type x87Step struct {
	*step
	x   x87Marks
	top uint8
	tag Tag // of what was looked at
}

// number is the physical number of st(i).
func (p *x87Step) number(i uint8) uint8 { return (p.top + i) & 7 }

// st returns the marks of st(i).
func (p *x87Step) st(i uint8) x87Bits {
	n := p.number(i)
	if p.x.r[n].isMarked() && p.tag == 0 {
		p.tag = p.x.tag[n]
	}
	return p.x.r[n]
}

func (p *x87Step) set(i uint8, b x87Bits) {
	n := p.number(i)
	if p.x.r[n] = b; b.isMarked() {
		p.x.tag[n] = p.tag
	}
}

func (p *x87Step) push(b x87Bits) {
	p.top--
	p.set(0, b)
}

// codes marks condition codes, or takes their marks away.
func (p *x87Step) codes(which uint16, marked bool) {
	if p.x.sw &^= which; marked {
		p.x.sw |= which
		p.x.swTag = p.tag
	}
}

// load returns the marks of the memory operand.
func (p *x87Step) load() (v vector) {
	var b [64]byte
	n := int(p.k.Ops[0].Size)
	if tag := p.t.Mem.Load(p.at[0], b[:n]); p.tag == 0 {
		p.tag = tag
	}
	return vectorOf(b[:n])
}

// storeAll stores a number to the memory operand.
func (p *x87Step) storeAll(b x87Bits) {
	var v vector
	switch n := int(p.k.Ops[0].Size); {
	case n == 10 && p.k.mnemonic == "FSTP":
		v[0], v[1] = b.m, uint64(b.e)
	case b.isMarked():
		v = *laneMask(0xff)
	}
	p.step.store(0, &v)
}

// x87Rule is the rule of one instruction, of st(i) where it has an operand of that kind.
type x87Rule func(p *x87Step, i uint8)

// x87RuleOf returns the rule of an instruction of the x87 unit or of MMX, nil where there is none.
func x87RuleOf(k *instruction, row *x86.Row) rule {
	if row.CPUID != "x87" {
		return mmxRuleOf(k, row)
	}
	f := x87Rules[k.mnemonic]
	switch {
	case f == nil, k.Inst.Flags&x86.InstMem != 0 && len(k.Ops) == 0:
		return nil
	}
	return func(s *step) bool {
		p := x87Step{step: s, x: s.t.cur.x87, top: s.c.FPU.Top}
		f(&p, uint8(s.in.Imm)&7)
		s.t.todo.x87 = &p.x
		if p.tag != 0 {
			s.tag = p.tag
		}
		return true
	}
}

var x87Rules map[string]x87Rule

func init() {
	x87Rules = map[string]x87Rule{
		"FLD": x87Load, "FILD": x87Load, "FBLD": x87Load,
		"FST": x87Store, "FSTP": x87Store, "FIST": x87Store, "FISTP": x87Store, "FISTTP": x87Store, "FBSTP": x87Store,
		"FXCH":   x87Exchange,
		"FXAM":   func(p *x87Step, _ uint8) { p.codes(x87Codes, p.st(0).isMarked()) },
		"FTST":   func(p *x87Step, _ uint8) { p.codes(x87Codes&^x87C1, p.st(0).isMarked()); p.codes(x87C1, false) },
		"FCHS":   func(p *x87Step, _ uint8) { p.set(0, p.st(0)); p.codes(x87C1, false) },
		"FABS":   func(p *x87Step, _ uint8) { b := p.st(0); b.e &= 0x7fff; p.set(0, b); p.codes(x87C1, false) },
		"FNSTSW": func(p *x87Step, _ uint8) { p.word(p.x.sw, p.x.swTag) }, "FNSTCW": func(p *x87Step, _ uint8) { p.word(p.x.cw, p.x.cwTag) },
		"FLDCW":  func(p *x87Step, _ uint8) { v := p.load(); p.x.cw, p.x.cwTag = uint16(v[0]), p.tag },
		"FNINIT": func(p *x87Step, _ uint8) { p.x.sw, p.x.cw = 0, 0 },
	}
	for _, m := range []string{"FNOP", "FWAIT", "FNCLEX", "FFREE", "FFREEP", "FINCSTP", "FDECSTP"} {
		x87Rules[m] = func(*x87Step, uint8) {}
	}
	for _, m := range []string{"FLD1", "FLDL2T", "FLDL2E", "FLDPI", "FLDLG2", "FLDLN2", "FLDZ"} {
		x87Rules[m] = func(p *x87Step, _ uint8) { p.push(x87Bits{}); p.codes(x87C1, false) }
	}
	for _, m := range []string{"FADD", "FMUL", "FSUB", "FSUBR", "FDIV", "FDIVR"} {
		x87Rules[m], x87Rules["FI"+m[1:]], x87Rules[m+"P"] = x87Arithmetic, x87Arithmetic, x87Arithmetic
	}
	for _, m := range []string{"FSQRT", "FRNDINT", "F2XM1"} {
		x87Rules[m] = func(p *x87Step, _ uint8) { p.compute(0, p.st(0)) }
	}
	for _, m := range []string{"FSIN", "FCOS"} {
		x87Rules[m] = func(p *x87Step, _ uint8) { p.compute(0, p.st(0)); p.codes(1<<10, p.st(0).isMarked()) }
	}
	x87Rules["FSCALE"] = func(p *x87Step, _ uint8) { p.compute(0, p.st(0).or(p.st(1))) }
	for _, m := range []string{"FPREM", "FPREM1"} {
		x87Rules[m] = func(p *x87Step, _ uint8) {
			b := p.st(0).or(p.st(1))
			if p.compute(0, b); b.isMarked() { // else they may stay what they were
				p.codes(x87Codes, true)
			}
		}
	}
	for _, m := range []string{"FYL2X", "FPATAN", "FYL2XP1"} {
		x87Rules[m] = func(p *x87Step, _ uint8) { p.compute(1, p.st(0).or(p.st(1))) }
	}
	x87Rules["FXTRACT"] = func(p *x87Step, _ uint8) {
		b := p.st(0).whole()
		p.set(0, b)
		p.push(b)
	}
	for _, m := range []string{"FCOM", "FCOMP", "FUCOM", "FUCOMP", "FICOM", "FICOMP", "FCOMPP", "FUCOMPP", "FCOMI", "FCOMIP", "FUCOMI", "FUCOMIP"} {
		x87Rules[m] = x87Compare
	}
	for m, cc := range map[string]uint8{"B": 2, "E": 4, "BE": 6, "U": 0xa} {
		x87Rules["FCMOV"+m], x87Rules["FCMOVN"+m] = x87Select(cc), x87Select(cc|1)
	}
}

func (b x87Bits) or(c x87Bits) x87Bits { return x87Bits{b.m | c.m, b.e | c.e} }

// compute sets st(i) to a result made of b. C1 says how it was rounded.
func (p *x87Step) compute(i uint8, b x87Bits) {
	p.set(i, b.whole())
	p.codes(x87C1, b.isMarked())
}

// word stores a word's marks to memory or AX.
func (p *x87Step) word(marks uint16, tag Tag) {
	if p.tag = tag; p.in.Flags&x86.InstMem != 0 {
		p.step.store(0, &vector{uint64(marks)})
		return
	}
	p.t.todo.general = append(p.t.todo.general, generalWrite{x86.RAX, 0xffff, uint64(marks)})
}

func (p *x87Step) isMem() bool { return p.in.Flags&x86.InstMem != 0 }

func x87Load(p *x87Step, i uint8) {
	b := x87Bits{}
	switch {
	case !p.isMem():
		b = p.st(i)
	default:
		v := p.load()
		if b = (x87Bits{v[0], uint16(v[1])}); p.k.Ops[0].Size != 10 || p.k.mnemonic != "FLD" {
			b = b.whole()
		}
	}
	p.push(b)
	p.codes(x87C1, false)
}

func x87Store(p *x87Step, i uint8) {
	if b := p.st(0); p.isMem() {
		p.storeAll(b)
		p.codes(x87C1, b.isMarked())
	} else {
		p.set(i, b)
		p.codes(x87C1, false)
	}
}

func x87Exchange(p *x87Step, i uint8) {
	a, b := p.number(0), p.number(i)
	if p.x.r[a].isMarked() {
		p.tag = p.x.tag[a]
	}
	p.x.r[a], p.x.r[b] = p.x.r[b], p.x.r[a]
	p.x.tag[a], p.x.tag[b] = p.x.tag[b], p.x.tag[a]
	p.codes(x87C1, false)
}

// x87Arithmetic is that of two operands: st(0) and memory or st(i), of which the first is the result.
func x87Arithmetic(p *x87Step, i uint8) {
	if p.isMem() {
		v := p.load()
		p.compute(0, p.st(0).or(x87Bits{v[0], uint16(v[1])}))
		return
	}
	to := uint8(0)
	if p.in.Opc == 0xdc || p.in.Opc == 0xde {
		to = i
	}
	p.compute(to, p.st(0).or(p.st(i)))
}

// x87Compare is that of comparisons, whose result are the condition codes, or flags.
func x87Compare(p *x87Step, i uint8) {
	m := p.k.mnemonic
	b := p.st(0)
	switch {
	case p.isMem():
		v := p.load()
		b = b.or(x87Bits{v[0], uint16(v[1])})
	case strings.HasSuffix(m, "PP"):
		b = b.or(p.st(1))
	default:
		b = b.or(p.st(i))
	}
	if strings.HasSuffix(strings.TrimSuffix(m, "P"), "I") {
		p.setFlags(x86.FlagZF|x86.FlagPF|x86.FlagCF, b.isMarked())
		p.setFlags(x86.FlagOF|x86.FlagSF|x86.FlagAF, false)
		return
	}
	p.codes(x87Codes&^x87C1, b.isMarked())
	p.codes(x87C1, false)
}

// x87Select is that of FCMOVcc.
func x87Select(cc uint8) x87Rule {
	return func(p *x87Step, i uint8) {
		f, marked := p.c.Flags(), p.t.cur.flag
		switch b := p.st(i); {
		case isOpen(cc, f, marked):
			if p.tag == 0 {
				p.tag = p.t.cur.flagTag
			}
			p.set(0, x87Whole)
		case isTaken(cc, f):
			p.set(0, b)
		}
	}
}

// mmxRuleOf returns the rule of an instruction on MMX registers: copies and bitwise operations by the bit, others as a
// whole. Sign and exponent of what it writes become ones.
func mmxRuleOf(k *instruction, row *x86.Row) rule {
	n := len(row.Operands)
	if k.mnemonic == "EMMS" { // the registers are empty, and hold what they held
		return func(*step) bool { return true }
	}
	if n == 0 || !k.isPlain || k.mnemonic == "MASKMOVQ" {
		return nil
	}
	args := make([]mmxArgument, n)
	for i, o := range k.Inst.Operands()[:n] {
		a := &args[i]
		a.reads, a.writes = o.Dir&x86.DirRead != 0, o.Dir&x86.DirWrite != 0
		switch {
		case o.Uses.V != 0:
			return nil
		case o.Uses.X87 != 0:
			a.kind, a.reg = mmxRegister, lowestBit(uint32(o.Uses.X87))
		case o.Uses.Parts&x86.PartMemory != 0:
			a.kind = mmxMemory
		case o.Uses.R != 0:
			a.kind, a.reg = mmxGeneral, lowestBit(uint32(o.Uses.R))
		}
	}
	return func(s *step) bool { return s.mmx(args) }
}

// mmxArgument is an operand of an instruction on MMX registers.
type mmxArgument struct {
	kind          mmxKind
	reg           uint8
	reads, writes bool
}

type mmxKind uint8

const (
	mmxImmediate mmxKind = iota
	mmxRegister
	mmxMemory
	mmxGeneral
)

// mmx is the rule of an instruction on MMX registers.
func (s *step) mmx(args []mmxArgument) bool {
	x := s.t.cur.x87
	var marks, values []uint64
	for i := range args {
		if m, v := s.mmxOperand(&args[i]); args[i].reads {
			marks, values = append(marks, m), append(values, v)
		}
	}
	result := uint64(0)
	for _, m := range marks {
		result |= m
	}
	switch m := s.k.mnemonic; {
	case m == "MOVQ" || m == "MOVD" || m == "MOVNTQ":
	case len(marks) == 2 && bitsRules[m] != nil:
		if result = bitsRules[m](marks[0], marks[1], values[0], values[1]); m == "PXOR" && args[0] == args[1].as(args[0]) {
			result = 0
		}
	case result != 0:
		result = ^uint64(0)
	}
	for _, a := range args {
		switch {
		case !a.writes:
		case a.kind == mmxRegister:
			x.r[a.reg], x.tag[a.reg] = x87Bits{m: result}, s.tag
		case a.kind == mmxMemory:
			s.store(0, &vector{result})
		case a.kind == mmxGeneral:
			s.t.todo.general = append(s.t.todo.general, generalWrite{a.reg, ^uint64(0), result & s.width()})
		}
	}
	s.t.todo.x87 = &x
	return true
}

// as is the argument with the directions of another.
func (a mmxArgument) as(b mmxArgument) mmxArgument {
	a.reads, a.writes = b.reads, b.writes
	return a
}

// mmxOperand returns the marks and the value of an operand of at most eight bytes.
func (s *step) mmxOperand(a *mmxArgument) (marks, value uint64) {
	g := &s.t.cur.regs
	switch a.kind {
	case mmxRegister:
		return g.x87.r[a.reg].m, s.c.FPU.MMX(a.reg)
	case mmxMemory:
		var b [64]byte
		n := min(int(s.k.Ops[0].Size), 8)
		s.t.Mem.Load(s.at[0], b[:n])
		v := vectorOf(b[:n])
		s.c.Bus.Read(s.c.Address(s.in), b[:n])
		w := vectorOf(b[:n])
		return v[0], w[0]
	case mmxGeneral:
		n := dataflow.BytesOf(a.reg, 0, 8)
		if s.in.Flags&x86.InstW == 0 {
			n = dataflow.BytesOf(a.reg, 0, 4)
		}
		mask := generalOf(&n, int(a.reg))
		return g.r[a.reg] & mask, s.c.R[a.reg] & mask
	default:
		return 0, 0
	}
}
