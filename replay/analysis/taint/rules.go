package taint

import (
	"math/bits"
	"strings"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// What is known of an instruction beyond which operands it reads: which bits of its result depend
// on which bits of its operands. They are the rules of memcheck (Seward and Nethercote, Using
// Valgrind to detect undefined value errors with bit-precision, USENIX 2005): a bit is marked when
// a change of marked bits can change it, as far as that is cheap to know. A rule errs towards
// marks.

// rule finds out what the instruction makes of marks. It returns false where it does not know.
type rule func(s *step) bool

// ruleOf returns the rule of an instruction, nil where there is none.
func ruleOf(k *instruction, row *x86.Row) rule {
	if len(k.args) == 0 {
		return nil
	}
	for _, a := range k.args {
		if a.IsOther && !a.IsImmediate && k.mnemonic != "LEA" { // whose address is no operand in memory
			return nil
		}
	}
	if k.args[0].Kind != dataflow.InVector && !hasVector(k) {
		return integerRule(k, row)
	}
	return vectorRule(k)
}

func hasVector(k *instruction) bool {
	for _, a := range k.args {
		if !a.IsOther && a.Kind == dataflow.InVector {
			return true
		}
	}
	return false
}

// integerRules are those of instructions that compute in general registers.
var integerRules = map[string]rule{
	"ADD": addRule, "SUB": subRule, "CMP": subRule, "ADC": carryRule, "SBB": carryRule, "AND": bitwise(andMarks), "TEST": bitwise(andMarks),
	"OR": bitwise(orMarks), "XOR": bitwise(xorMarks), "INC": stepRule, "DEC": stepRule, "NOT": notRule, "NEG": negRule,
	"SHL": shiftRule, "SHR": shiftRule, "SAR": shiftRule, "SHLX": shiftRule, "SHRX": shiftRule, "SARX": shiftRule,
	"IMUL": productRule, "LEA": leaRule, "BSF": scanRule, "TZCNT": scanRule, "BSR": scanRule, "LZCNT": scanRule, "BT": bitRule,
	"BZHI": lowRule, "ANDN": andnRule, "BLSI": lowestRule, "BLSR": lowestRule, "BLSMSK": lowestRule,
	"BSWAP": moveRule, "MOVBE": moveRule, "CBW": extendRule, "CWD": signRule, "ROL": rotateRule, "ROR": rotateRule, "RORX": rotateRule,
}

func integerRule(k *instruction, row *x86.Row) rule {
	switch m := k.mnemonic; {
	case strings.HasPrefix(m, "CMOV"):
		return selectRule
	case strings.HasPrefix(m, "SET"):
		return setRule
	case m == "IMUL" && len(row.Operands) < 2:
		return nil
	default:
		return integerRules[m]
	}
}

// operand is an operand of an integer instruction.
type operandBits struct{ marks, value uint64 }

// bits returns argument i: its marks and its value.
func (s *step) bits(i int) (o operandBits) {
	a := &s.k.args[i]
	m, v := s.operand(i)
	if a.IsImmediate {
		return operandBits{0, s.in.Imm}
	}
	return operandBits{m[0], v[0]}
}

// operand returns the marks and the value of argument i.
func (s *step) operand(i int) (marks, value vector) {
	a := &s.k.args[i]
	switch {
	case a.IsImmediate:
		return vector{}, vector{s.in.Imm}
	case a.Kind == dataflow.InGeneral:
		shift := 8 * a.Off
		marks[0], value[0] = s.t.cur.r[a.Reg]>>shift, s.c.R[a.Reg]>>shift
	case a.Kind == dataflow.InVector:
		marks = s.t.cur.v[a.Reg]
		copy(value[:], s.c.V[a.Reg&15][:])
	default:
		var b [64]byte
		n := min(int(a.Size), len(b))
		s.t.Mem.Load(s.at[0], b[:n])
		marks = vectorOf(b[:n])
		s.c.Bus.Read(s.c.Address(s.in), b[:n])
		value = vectorOf(b[:n])
	}
	return marks.low(int(a.Size)), value.low(int(a.Size))
}

// mask is the bits of the destination.
func (s *step) mask() uint64 { return ^uint64(0) >> (64 - 8*uint(s.k.args[0].Size)) }

// result marks the destination, argument 0.
func (s *step) result(marks uint64) {
	a := &s.k.args[0]
	marks &= s.mask()
	if a.Kind == dataflow.InMemory {
		s.store(0, &vector{marks})
		return
	}
	mask := s.mask()
	if a.Size == 4 {
		mask = ^uint64(0)
	}
	s.t.todo.general = append(s.t.todo.general, generalWrite{a.Reg, mask << (8 * a.Off), marks << (8 * a.Off)})
}

// logic marks the flags of a result: ZF, SF and PF by its bits, CF and OF as given, AF where
// anything is marked.
func (s *step) logic(marks, value uint64, carry, overflow bool) {
	m := s.mask()
	marks, value = marks&m, value&m
	s.setFlags(x86.FlagZF, marks != 0 && value&^marks == 0)
	s.setFlags(x86.FlagSF, marks&(m^m>>1) != 0)
	s.setFlags(x86.FlagPF, marks&0xff != 0)
	s.setFlags(x86.FlagCF, carry)
	s.setFlags(x86.FlagOF, overflow)
	s.setFlags(x86.FlagAF, marks&0x1f != 0)
}

// left has all bits from the lowest marked one on: what a carry may reach.
func left(m uint64) uint64 { return m | -m }

func andMarks(a, b operandBits) uint64 {
	return a.marks&b.marks | a.marks&b.value | b.marks&a.value
}

func orMarks(a, b operandBits) uint64 {
	return a.marks&b.marks | a.marks&^b.value | b.marks&^a.value
}

func xorMarks(a, b operandBits) uint64 { return a.marks | b.marks }

// bitwise is the rule of AND, OR and XOR.
func bitwise(f func(a, b operandBits) uint64) rule {
	return func(s *step) bool {
		a, b := s.bits(0), s.bits(1)
		if s.k.mnemonic == "XOR" && s.isSame() {
			a, b = operandBits{}, operandBits{}
		}
		m := f(a, b) & s.mask()
		v := a.value & b.value
		switch s.k.mnemonic {
		case "OR":
			v = a.value | b.value
		case "XOR":
			v = a.value ^ b.value
		}
		if s.k.mnemonic != "TEST" {
			s.result(m)
		}
		s.logic(m, v, false, false)
		return true
	}
}

// isSame reports whether both operands are the same register.
func (s *step) isSame() bool {
	a, b := &s.k.args[0], &s.k.args[1]
	return !b.IsImmediate && a.Kind == b.Kind && a.Kind != dataflow.InMemory && a.Reg == b.Reg && a.Off == b.Off
}

// bounds are the smallest and the largest value of an operand of which the marked bits may be
// anything.
func (o operandBits) bounds(m uint64) (low, high uint64) {
	return o.value &^ o.marks & m, (o.value | o.marks) & m
}

// addRule: what can differ between the smallest and the largest sum.
func addRule(s *step) bool {
	a, b, m := s.bits(0), s.bits(1), s.mask()
	a.marks, b.marks = a.marks&m, b.marks&m
	al, ah := a.bounds(m)
	bl, bh := b.bounds(m)
	marks := ((al + bl) ^ (ah + bh) | a.marks | b.marks) & m
	s.result(marks)
	_, c1 := bits.Add64(al<<s.top(), bl<<s.top(), 0)
	_, c2 := bits.Add64(ah<<s.top(), bh<<s.top(), 0)
	s.logic(marks, a.value+b.value, c1 != c2, marks&(m^m>>1) != 0)
	return true
}

// top is how far left the operand must be moved for its top bit to be bit 63.
func (s *step) top() uint { return 64 - 8*uint(s.k.args[0].Size) }

// subRule: a comparison is known where the ranges of the operands do not overlap, or bits differ
// that are not marked.
func subRule(s *step) bool {
	a, b, m := s.bits(0), s.bits(1), s.mask()
	if s.isSame() {
		a, b = operandBits{}, operandBits{}
	}
	a.marks, b.marks = a.marks&m, b.marks&m
	al, ah := a.bounds(m)
	bl, bh := b.bounds(m)
	marks := ((al - bh) ^ (ah - bl) | a.marks | b.marks) & m
	if s.k.mnemonic == "SUB" {
		s.result(marks)
	}
	any := a.marks|b.marks != 0
	differs := (a.value^b.value)&m&^(a.marks|b.marks) != 0
	s.logic(marks, a.value-b.value, any && ah >= bl && al < bh, false)
	s.setFlags(x86.FlagZF, any && !differs)
	less := any && isLessOpen(a, b, m) // jumps of signed comparisons ask for both flags
	s.setFlags(x86.FlagSF, less)
	s.setFlags(x86.FlagOF, less)
	return true
}

// isLessOpen reports whether it depends on marked bits if a is less than b, as signed numbers.
func isLessOpen(a, b operandBits, m uint64) bool {
	top := m ^ m>>1
	a.value, b.value = a.value^top, b.value^top // the order of signed numbers is that of unsigned ones then
	al, ah := a.bounds(m)
	bl, bh := b.bounds(m)
	return ah >= bl && al < bh
}

// carryRule is that of ADC and SBB.
func carryRule(s *step) bool {
	a, b, m := s.bits(0), s.bits(1), s.mask()
	carry := uint64(0)
	if s.t.cur.flag&x86.FlagCF != 0 {
		carry = 1
	}
	if s.k.mnemonic == "SBB" && s.isSame() { // 0 or -1, by the carry alone
		s.result(-carry)
		s.logic(-carry, 0, carry != 0, false)
		return true
	}
	marks := left(a.marks|b.marks|carry) & m
	s.result(marks)
	s.logic(marks, 0, marks != 0, marks != 0)
	return true
}

// stepRule is that of INC and DEC, which leave CF.
func stepRule(s *step) bool {
	a, m := s.bits(0), s.mask()
	marks := left(a.marks) & m
	s.result(marks)
	had := s.t.cur.flag&x86.FlagCF != 0
	v := a.value + 1
	if s.k.mnemonic == "DEC" {
		v = a.value - 1
	}
	s.logic(marks, v, had, marks != 0)
	return true
}

func notRule(s *step) bool {
	s.result(s.bits(0).marks)
	return true
}

func negRule(s *step) bool {
	a := s.bits(0)
	marks := left(a.marks) & s.mask()
	s.result(marks)
	s.logic(marks, -a.value, marks != 0 && a.value&^a.marks&s.mask() == 0, marks != 0)
	return true
}

// shiftRule moves the marks as the bits. A marked count marks all.
func shiftRule(s *step) bool {
	src, count := 0, 1
	flags := true
	if strings.HasSuffix(s.k.mnemonic, "X") {
		src, count, flags = 1, 2, false
	}
	a, n, m := s.bits(src), s.bits(count), s.mask()
	limit := uint64(31)
	if s.k.args[0].Size == 8 {
		limit = 63
	}
	shift := n.value & limit
	if s.k.args[count].IsImmediate && len(x86.Rows()[s.in.Row].Operands) > 1 && x86.Rows()[s.in.Row].Operands[1] == "one" {
		shift = 1
	}
	if n.marks&limit != 0 {
		return false
	}
	if shift == 0 {
		s.result(a.marks)
		if flags {
			s.t.todo.flags = [2]uint64{}
		}
		return true
	}
	marks, value, out := a.marks&m, a.value&m, uint64(0)
	switch s.k.mnemonic[:3] {
	case "SHL":
		out = marks << (shift - 1) & (m ^ m>>1)
		marks, value = marks<<shift, value<<shift
	case "SHR":
		out = marks >> (shift - 1) & 1
		marks, value = marks>>shift, value>>shift
	default:
		t := s.top()
		out = uint64(int64(marks<<t)>>t>>(shift-1)) & 1
		marks, value = uint64(int64(marks<<t)>>t>>shift), uint64(int64(value<<t)>>t>>shift)
	}
	s.result(marks)
	if flags {
		s.logic(marks, value, out != 0, a.marks&m != 0)
	}
	return true
}

// productRule: a product's bits depend on the lower bits of the factors.
func productRule(s *step) bool {
	i, j := 0, 1
	if len(s.k.args) == 3 {
		i, j = 1, 2
	}
	a, b := s.bits(i), s.bits(j)
	m := left(a.marks|b.marks) & s.mask()
	s.result(m)
	s.logic(m, 0, m != 0, m != 0)
	return true
}

// leaRule is an addition of the base and the index.
func leaRule(s *step) bool {
	m := uint64(0)
	if s.in.Base < x86.NoReg && !s.k.isFrame() {
		m |= s.t.cur.r[s.in.Base]
	}
	if s.in.Index < x86.NoReg {
		m |= s.t.cur.r[s.in.Index] << s.in.Scale
	}
	s.result(left(m))
	return true
}

// isFrame reports whether the base register is not followed.
func (k *instruction) isFrame() bool {
	base := dataflow.BytesOf(k.Inst.Base, 0, 8)
	base = base.And(k.Flows[0].Src)
	return base.IsEmpty()
}

// scanRule: the number of the first set bit is known when no marked bit is in front of it.
func scanRule(s *step) bool {
	a := s.bits(1)
	m := ^uint64(0) >> (64 - 8*uint(s.k.args[1].Size))
	a.marks, a.value = a.marks&m, a.value&m
	set := a.value &^ a.marks
	open := a.marks != 0
	switch s.k.mnemonic {
	case "BSF", "TZCNT":
		if set != 0 && a.marks&(set&-set-1) == 0 {
			open = false
		}
	default:
		if set != 0 && bits.LeadingZeros64(set) < bits.LeadingZeros64(a.marks) {
			open = false
		}
	}
	marks := uint64(0)
	if open {
		marks = 0x7f
	}
	if a.value == 0 && (s.k.mnemonic == "BSF" || s.k.mnemonic == "BSR") { // the destination stays
		return false
	}
	s.result(marks)
	zero := a.marks != 0 && set == 0
	s.logic(marks, 0, zero || open, open)
	s.setFlags(x86.FlagZF, zero || open && s.k.mnemonic != "BSF" && s.k.mnemonic != "BSR")
	return true
}

// bitRule is that of BT with a bit number that has no mark.
func bitRule(s *step) bool {
	a, n := s.bits(0), s.bits(1)
	size := 8 * uint64(s.k.args[0].Size)
	if n.marks&(size-1) != 0 {
		return false
	}
	s.setFlags(x86.FlagCF, a.marks>>(n.value&(size-1))&1 != 0)
	return true
}

// lowRule is that of BZHI: bits from a number on become zero.
func lowRule(s *step) bool {
	a, n := s.bits(1), s.bits(2)
	if n.marks&0xff != 0 {
		return false
	}
	marks, value := a.marks, a.value
	if k := n.value & 0xff; k < 64 {
		marks, value = marks&(1<<k-1), value&(1<<k-1)
	}
	s.result(marks)
	s.logic(marks, value, false, false)
	return true
}

func andnRule(s *step) bool {
	a, b := s.bits(1), s.bits(2)
	a.value = ^a.value
	m := andMarks(a, b) & s.mask()
	s.result(m)
	s.logic(m, a.value&b.value, false, false)
	return true
}

// lowestRule is that of BLSI, BLSR and BLSMSK: they are known up to the lowest set bit when no
// marked bit is below it.
func lowestRule(s *step) bool {
	a, m := s.bits(1), s.mask()
	a.marks, a.value = a.marks&m, a.value&m
	set := a.value &^ a.marks
	if a.marks == 0 || set == 0 || a.marks&(set&-set-1) != 0 {
		return false
	}
	marks, value := uint64(0), a.value&(a.value-1)
	if s.k.mnemonic == "BLSR" {
		marks = a.marks
	} else {
		value = 1
	}
	s.result(marks)
	s.logic(marks, value, false, false)
	return true
}

// selectRule is that of CMOV: where the condition depends on marks, so does what differs.
func selectRule(s *step) bool {
	a, b := s.bits(0), s.bits(1)
	cc, f := s.in.Opc&15, s.c.Flags()
	var marks uint64
	switch {
	case isOpen(cc, f, s.t.cur.flag):
		marks = a.marks | b.marks | (a.value ^ b.value)
	case isTaken(cc, f):
		marks = b.marks
	default:
		marks = a.marks
	}
	s.result(marks)
	return true
}

func setRule(s *step) bool {
	marks := uint64(0)
	if isOpen(s.in.Opc&15, s.c.Flags(), s.t.cur.flag) {
		marks = 1
	}
	s.result(marks)
	return true
}

// extendRule is that of CBW, CWDE and CDQE: the lower half, and its sign.
func extendRule(s *step) bool {
	half := 4 * uint(s.k.args[0].Size)
	m := s.bits(0).marks & (1<<half - 1)
	if m>>(half-1)&1 != 0 {
		m |= ^uint64(0) << half
	}
	s.result(m)
	return true
}

// signRule is that of CWD, CDQ and CQO, which make RDX of the sign.
func signRule(s *step) bool {
	w := generalWrite{r: x86.RDX, mask: s.mask()}
	if s.bits(0).marks&(w.mask^w.mask>>1) != 0 {
		w.marks = w.mask
	}
	if s.k.args[0].Size == 4 {
		w.mask = ^uint64(0)
	}
	s.t.todo.general = append(s.t.todo.general, w)
	return true
}

// rotateRule moves the marks as the bits. A marked count marks all.
func rotateRule(s *step) bool {
	src, count := 0, 1
	if len(s.k.args) == 3 { // RORX
		src, count = 1, 2
	}
	a, m := s.bits(src), s.mask()
	limit, width := uint64(31), 8*uint64(s.k.args[0].Size)
	if width == 64 {
		limit = 63
	}
	n := operandBits{value: 1}
	if row := &x86.Rows()[s.in.Row]; row.Operands[count] != "one" {
		n = s.bits(count)
	}
	if n.marks&limit != 0 {
		return false
	}
	shift := n.value & limit
	isZero := shift == 0
	if shift %= width; s.k.mnemonic != "ROL" {
		shift = (width - shift) % width
	}
	marks := a.marks & m
	s.result((marks<<shift | marks>>(width-shift)) & m)
	if src == 0 && !isZero {
		s.setFlags(x86.FlagCF|x86.FlagOF, marks != 0)
	}
	return true
}
