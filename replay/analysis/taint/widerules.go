package taint

import (
	"strings"

	"vplay/replay/x86"
)

// Rules of instructions of AVX-512, as if there were no mask: see wide.go.

// wideMoves are those of EVEX forms, beside moves, whose results are bits of their operands; by how their names begin.
var wideMoves = [...]string{
	"MOVDQU", "MOVDQA", "MOVUP", "MOVAP", "MOVNT", "MOVS", "ALIGN", "SHUFF", "SHUFI", "INSERTF", "INSERTI", "EXTRACTF", "EXTRACTI",
	"BROADCASTI", "BROADCASTF", "PBROADCASTM", "PMOVM2", "PBLENDM", "BLENDM", "PERM", "PCOMPRESS", "PEXPAND", "PROL", "PROR",
	"KMOV", "KSHIFT", "KUNPCK",
}

// wideMasks move the top bit of each element to a mask, and truncate elements.
var wideMasks = map[string]bool{
	"PMOVB2M": true, "PMOVW2M": true, "PMOVD2M": true, "PMOVQ2M": true,
	"PMOVWB": true, "PMOVDB": true, "PMOVQB": true, "PMOVDW": true, "PMOVQW": true, "PMOVQD": true,
}

// wideRuleOf returns the rule of an instruction of AVX-512, nil where there is none.
func wideRuleOf(m string) wideRule {
	name := m[:len(m)-1] // without the letter of the size
	switch {
	case strings.HasPrefix(m, "PROLV"), strings.HasPrefix(m, "PRORV"):
		return nil
	case m[0] == 'K' && !strings.HasPrefix(m, "KMOV") && !strings.HasPrefix(m, "KSHIFT") && !strings.HasPrefix(m, "KUNPCK"):
		return opmaskRule(name)
	case moves[m] || wideMasks[m]:
		return wideMoveRule
	case (strings.HasPrefix(m, "PSLL") || strings.HasPrefix(m, "PSRL") || strings.HasPrefix(m, "PSRA")) && m[4] != 'V':
		return wideShiftRule
	case strings.HasPrefix(m, "PTESTNM"), strings.HasPrefix(m, "PTESTM"):
		return wideCompare(laneSize(m), noneIsKnown)
	case strings.HasPrefix(m, "PCMPU"):
		return wideCompare(laneSize(m), comparison(false))
	case strings.HasPrefix(m, "PCMPEQ"), strings.HasPrefix(m, "PCMPGT"), strings.HasPrefix(m, "PCMP") && len(m) == 5:
		return wideCompare(laneSize(m), comparison(true))
	case strings.HasPrefix(m, "PTERNLOG"):
		return ternaryRule
	}
	if f := bitsRules[name]; f != nil {
		return wideBits(f)
	}
	if f := bitsRules[m]; f != nil {
		return wideBits(f)
	}
	if f, ok := laneRules[name]; ok && laneSize(m) > 0 {
		return wideLanes(laneSize(m), f)
	}
	if size, ok := floatLane(m); ok && m[len(m)-2] == 'P' {
		return wideLanes(size, whole)
	}
	for _, p := range wideMoves {
		if strings.HasPrefix(m, p) {
			return wideMoveRule
		}
	}
	return nil
}

// isSameWide reports whether arguments i and j are the same register.
func (w *wide) isSameWide(i, j int) bool {
	return w.args[i].kind != wideMemory && w.args[i].kind == w.args[j].kind && w.args[i].reg == w.args[j].reg
}

// wideBits is the rule of bitwise operations.
func wideBits(f bitsRule) wideRule {
	return func(s *step, w *wide) bool {
		a, _ := s.wideMarks(1)
		b, _ := s.wideMarks(2)
		if strings.Contains(s.k.mnemonic, "XOR") && w.isSameWide(1, 2) {
			a, b = vector{}, vector{}
		}
		x, y := s.wideValue(1), s.wideValue(2)
		var m vector
		for i := range m {
			m[i] = f(a[i], b[i], x[i], y[i])
		}
		return s.wideResult(w, m)
	}
}

// ternaryRule is that of VPTERNLOG: a bit depends on marks if it is not the same for all values of
// its marked sources.
func ternaryRule(s *step, w *wide) bool {
	var marks, values [3]vector
	for i := range marks {
		marks[i], _ = s.wideMarks(i)
		values[i] = s.wideValue(i)
	}
	var m vector
	for i := range m {
		always, ever := ^uint64(0), uint64(0)
		for flip := range uint64(8) {
			v := [3]uint64{}
			for n := range v {
				v[n] = values[n][i] ^ marks[n][i]&-(flip>>n&1)
			}
			r := ternary(v, s.in.Imm)
			always, ever = always&r, ever|r
		}
		m[i] = ever &^ always
	}
	return s.wideResult(w, m)
}

// ternary looks each bit up in a table of eight: the first source's is the most significant of the
// index (SDM vol. 2C, VPTERNLOGD).
func ternary(v [3]uint64, table uint64) (r uint64) {
	for i := range uint64(8) {
		if table>>i&1 == 0 {
			continue
		}
		is := ^uint64(0)
		for n := range v {
			is &= v[n] ^ (i>>(2-n)&1 - 1) // inverted where the bit of the index is 0
		}
		r |= is
	}
	return r
}

// wideLanes is the rule of elements of n bytes.
func wideLanes(n int, f laneRule) wideRule {
	return func(s *step, w *wide) bool {
		i, j := 1, len(w.args)-1
		if w.args[j].kind == wideImmediate {
			return false
		}
		a, _ := s.wideMarks(i)
		b, _ := s.wideMarks(j)
		x, y := s.wideValue(i), s.wideValue(j)
		if strings.HasPrefix(s.k.mnemonic, "PSUB") && w.isSameWide(i, j) {
			a, b = vector{}, vector{}
		}
		all := ^uint64(0) >> (64 - 8*n)
		var m vector
		for l := range w.Length / n {
			m.setLane(l, n, f(a.lane(l, n), b.lane(l, n), x.lane(l, n), y.lane(l, n), all))
		}
		return s.wideResult(w, m)
	}
}

// wideShiftRule is that of shifts of elements: by an immediate they move marks, by a
// register's value they are not known where it is marked.
func wideShiftRule(s *step, w *wide) bool {
	if w.args[len(w.args)-1].kind == wideImmediate {
		return wideMoveRule(s, w)
	}
	return false
}

// openCompare reports whether a comparison of elements depends on marks, by the immediate.
type openCompare func(a, b operandBits, all, imm uint64, mnemonic string) bool

// wideCompare is the rule of comparisons of elements of n bytes, whose result is a mask.
func wideCompare(n int, isOpen openCompare) wideRule {
	return func(s *step, w *wide) bool {
		a, _ := s.wideMarks(1)
		b, _ := s.wideMarks(2)
		x, y := s.wideValue(1), s.wideValue(2)
		if w.isSameWide(1, 2) && s.k.mnemonic[:4] == "PCMP" {
			a, b = vector{}, vector{}
		}
		all := ^uint64(0) >> (64 - 8*n)
		m := uint64(0)
		for l := range w.Length / n {
			p, q := operandBits{a.lane(l, n), x.lane(l, n)}, operandBits{b.lane(l, n), y.lane(l, n)}
			if p.marks|q.marks != 0 && isOpen(p, q, all, s.in.Imm, s.k.mnemonic) {
				m |= 1 << l
			}
		}
		return s.maskResult(w, m)
	}
}

// noneIsKnown is openCompare of VPTESTM and VPTESTNM: whether there is a bit that both have.
func noneIsKnown(a, b operandBits, _, _ uint64, _ string) bool {
	m := andMarks(a, b)
	return m != 0 && a.value&b.value&^m == 0
}

// comparison is openCompare of numbers.
func comparison(signed bool) openCompare {
	return func(a, b operandBits, all, imm uint64, mnemonic string) bool {
		switch mnemonic[:5] {
		case "PCMPE":
			imm = 0
		case "PCMPG":
			imm = 6
		}
		if imm&3 == 3 { // never, or always
			return false
		}
		if imm&3 == 0 {
			return (a.value^b.value)&all&^(a.marks|b.marks) == 0
		}
		if signed {
			top := all ^ all>>1
			a.value, b.value = a.value^top, b.value^top // the order of signed numbers is that of unsigned ones then
		}
		al, ah := a.bounds(all)
		bl, bh := b.bounds(all)
		if imm&3 == 1 { // less, and its opposite
			return al < bh && ah >= bl
		}
		return al <= bh && ah > bl
	}
}

// opmaskRule returns the rule of instructions that compute with mask registers.
func opmaskRule(name string) wideRule {
	rules := map[string]bitsRule{
		"KAND": andBits, "KANDN": andnBits, "KOR": orBits, "KXOR": xorBits, "KXNOR": xorBits,
		"KADD": func(a, b, _, _ uint64) uint64 { return left(a | b) },
		"KNOT": func(a, _, _, _ uint64) uint64 { return a },
	}
	if f := rules[name]; f != nil {
		return func(s *step, w *wide) bool {
			i, j := 1, len(w.args)-1
			a, _ := s.wideMarks(i)
			b, _ := s.wideMarks(j)
			if name[1] == 'X' && w.isSameWide(i, j) {
				a, b = vector{}, vector{}
			}
			x, y := s.wideValue(i), s.wideValue(j)
			return s.maskResult(w, f(a[0], b[0], x[0], y[0])&w.bits())
		}
	}
	switch name {
	case "KORTEST":
		return func(s *step, w *wide) bool { return s.maskTest(w, orBits) }
	case "KTEST":
		return func(s *step, w *wide) bool { return s.maskTest(w, andBits) }
	}
	return nil
}

// bits are those of a mask that the instruction works on.
func (w *wide) bits() uint64 { return ^uint64(0) >> (64 - w.width) }

// maskTest marks the flags of KORTEST and KTEST: ZF says whether no bit is set, CF of KORTEST whether all
// are, and of KTEST whether the second has none that the first has not.
func (s *step) maskTest(w *wide, f bitsRule) bool {
	a, _ := s.wideMarks(0)
	b, _ := s.wideMarks(1)
	x, y := s.wideValue(0), s.wideValue(1)
	all := w.bits()
	s.setFlags(x86.FlagOF|x86.FlagSF|x86.FlagPF|x86.FlagAF, false)
	m := f(a[0], b[0], x[0], y[0]) & all
	if s.k.mnemonic[1] == 'O' {
		v := (x[0] | y[0]) & all
		s.setFlags(x86.FlagZF, m != 0 && v&^m == 0)
		s.setFlags(x86.FlagCF, m != 0 && v|m == all)
		return true
	}
	s.setFlags(x86.FlagZF, m != 0 && x[0]&y[0]&all&^m == 0)
	m = andnBits(a[0], b[0], x[0], y[0]) & all
	s.setFlags(x86.FlagCF, m != 0 && ^x[0]&y[0]&all&^m == 0)
	return true
}
