package taint

import (
	"strings"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Rules of vector instructions. Those that only move bits are executed with the marks in the
// place of the data (mover). Most others work on lanes by themselves.

// vectorRule returns the rule of an instruction that has vector registers.
func vectorRule(k *instruction) rule {
	m := k.mnemonic
	if f := bitsRules[m]; f != nil {
		return vectorBits(f)
	}
	if m == "PTEST" {
		return testRule
	}
	if f := convertRuleOf(m); f != nil {
		return f
	}
	if moves[m] || (m == "MOVSS" || m == "MOVSD") && k.Inst.Flags&x86.InstMem == 0 {
		return moveRule
	}
	if isShift(k) {
		return moveRule
	}
	if n := laneSize(m); n > 0 {
		if f, ok := laneRules[m[:len(m)-1]]; ok {
			return lanes(n, f)
		}
	}
	if n, ok := floatLane(m); ok {
		return floats(n, m)
	}
	return nil
}

// laneSize is how many bytes a lane has by the last letter of a mnemonic.
func laneSize(m string) int {
	return map[byte]int{'B': 1, 'W': 2, 'D': 4, 'Q': 8}[m[len(m)-1]]
}

// moves are instructions whose results are bits of their operands, or copies of them, wherever
// they come from.
var moves = map[string]bool{
	"PSHUFD": true, "PSHUFHW": true, "PSHUFLW": true, "SHUFPS": true, "SHUFPD": true, "PALIGNR": true, "PSLLDQ": true, "PSRLDQ": true,
	"PUNPCKLBW": true, "PUNPCKLWD": true, "PUNPCKLDQ": true, "PUNPCKLQDQ": true, "PUNPCKHBW": true, "PUNPCKHWD": true, "PUNPCKHDQ": true,
	"PUNPCKHQDQ": true, "UNPCKLPS": true, "UNPCKLPD": true, "UNPCKHPS": true, "UNPCKHPD": true, "MOVHLPS": true, "MOVLHPS": true,
	"MOVHPS": true, "MOVHPD": true, "MOVLPS": true, "MOVLPD": true, "MOVDDUP": true, "MOVSHDUP": true, "MOVSLDUP": true,
	"PINSRB": true, "PINSRW": true, "PINSRD": true, "PINSRQ": true, "PEXTRB": true, "PEXTRW": true, "PEXTRD": true, "PEXTRQ": true,
	"EXTRACTPS": true, "INSERTPS": true, "INSERTI128": true, "INSERTF128": true, "EXTRACTI128": true, "EXTRACTF128": true,
	"PERM2I128": true, "PERM2F128": true, "PERMQ": true, "PERMPD": true, "BROADCASTSS": true, "BROADCASTSD": true, "BROADCASTI128": true,
	"BROADCASTF128": true, "PBROADCASTB": true, "PBROADCASTW": true, "PBROADCASTD": true, "PBROADCASTQ": true, "PBLENDW": true,
	"PBLENDD": true, "BLENDPS": true, "BLENDPD": true, "PMOVZXBW": true, "PMOVZXBD": true, "PMOVZXBQ": true, "PMOVZXWD": true,
	"PMOVZXWQ": true, "PMOVZXDQ": true, "PMOVSXBW": true, "PMOVSXBD": true, "PMOVSXBQ": true, "PMOVSXWD": true, "PMOVSXWQ": true,
	"PMOVSXDQ": true, "PMOVMSKB": true, "MOVMSKPS": true, "MOVMSKPD": true, "MOVQ": true, "MOVD": true, "PSHUFB": true, "PERMD": true,
}

// controlled are moves of which the last operand says what comes where.
var controlled = map[string]bool{"PSHUFB": true}

// controlledFirst are those of which the operand in VEX.vvvv does.
var controlledFirst = map[string]bool{"PERMD": true}

// isShift reports whether it is a shift of lanes by an immediate.
func isShift(k *instruction) bool {
	m := k.mnemonic
	return (strings.HasPrefix(m, "PSLL") || strings.HasPrefix(m, "PSRL") || strings.HasPrefix(m, "PSRA")) && k.args[len(k.args)-1].IsImmediate
}

// two returns which arguments are the two sources.
func (s *step) two() (a, b int) {
	if len(s.k.args) >= 3 && !s.k.args[2].IsImmediate {
		return 1, 2
	}
	return 0, 1
}

// vectorResult marks a vector register, argument 0. With VEX what is above the operand becomes
// zero, else it stays.
func (s *step) vectorResult(marks vector) {
	a := &s.k.args[0]
	mask := *laneMask(1<<((a.Size+7)/8) - 1)
	if a.Size < 8 || a.Size%8 != 0 {
		mask = mask.low(int(a.Size))
	}
	marks = marks.low(int(a.Size))
	if s.k.isVEX {
		mask = *laneMask(0xff)
	}
	s.t.todo.vectors = append(s.t.todo.vectors, vectorWrite{a.Reg, mask, marks})
}

// bitsRule says which bits of a bitwise operation depend on marks: a and b are the marks, x and y the values.
type bitsRule func(a, b, x, y uint64) uint64

func andBits(a, b, x, y uint64) uint64  { return a&b | a&y | b&x }
func andnBits(a, b, x, y uint64) uint64 { return a&b | a&y | b&^x }
func orBits(a, b, x, y uint64) uint64   { return a&b | a&^y | b&^x }
func xorBits(a, b, _, _ uint64) uint64  { return a | b }

// bitsRules are those of bitwise operations, without the letter of the size that EVEX forms have.
var bitsRules = map[string]bitsRule{
	"PAND": andBits, "ANDPS": andBits, "ANDPD": andBits, "PANDN": andnBits, "ANDNPS": andnBits, "ANDNPD": andnBits,
	"POR": orBits, "ORPS": orBits, "ORPD": orBits, "PXOR": xorBits, "XORPS": xorBits, "XORPD": xorBits,
}

// vectorBits is the rule of bitwise operations.
func vectorBits(f bitsRule) rule {
	return func(s *step) bool {
		i, j := s.two()
		a, x := s.operand(i)
		b, y := s.operand(j)
		var m vector
		for n := range m {
			m[n] = f(a[n], b[n], x[n], y[n])
		}
		s.vectorResult(m)
		return true
	}
}

// laneRule says which bits of a lane depend on marks: a and b are the marks, x and y the values,
// all the bits of the lane.
type laneRule func(a, b, x, y, all uint64) uint64

// laneRules are those of instructions that work on each lane by itself, without the letter of its size.
var laneRules = map[string]laneRule{
	"PADD": carried, "PSUB": carried, "PCMPEQ": equal, "PCMPGT": greater, "PMINU": smallest, "PMAXU": largest,
	"PADDS": whole, "PADDUS": whole, "PSUBS": whole, "PSUBUS": whole, "PMULL": carried, "PMULH": whole, "PMULHU": whole, "PMINS": whole,
	"PMAXS": whole, "PABS": whole, "PSIGN": whole, "PAVG": whole, "PSLLV": whole, "PSRLV": whole, "PSRAV": whole,
}

func whole(a, b, _, _, all uint64) uint64 {
	if a|b != 0 {
		return all
	}
	return 0
}

func carried(a, b, _, _, all uint64) uint64 { return left(a|b) & all }

// equal is known where bits differ that are not marked.
func equal(a, b, x, y, all uint64) uint64 {
	if a|b == 0 || (x^y)&^(a|b) != 0 {
		return 0
	}
	return all
}

// greater asks for the sign alone where the first operand is zero.
func greater(a, b, x, _, all uint64) uint64 {
	top := all ^ all>>1
	if a == 0 && x == 0 && b&top == 0 {
		return 0
	}
	return whole(a, b, 0, 0, all)
}

// smallest is zero where one of both is known to be.
func smallest(a, b, x, y, all uint64) uint64 {
	if a == 0 && x == 0 || b == 0 && y == 0 {
		return 0
	}
	return whole(a, b, 0, 0, all)
}

func largest(a, b, x, y, all uint64) uint64 {
	if a == 0 && x == all || b == 0 && y == all {
		return 0
	}
	return whole(a, b, 0, 0, all)
}

// lanes is the rule of lanes of n bytes.
func lanes(n int, f laneRule) rule {
	return func(s *step) bool {
		i, j := s.two()
		if len(s.k.args) == 2 && !s.k.args[0].Reads { // PABS has one source
			i = 1
		}
		a, x := s.operand(i)
		b, y := s.operand(j)
		if s.k.mnemonic[:4] == "PCMP" && s.k.args[i].Kind == dataflow.InVector && s.k.args[i].Place == s.k.args[j].Place {
			a, b = vector{}, vector{}
		}
		all := ^uint64(0) >> (64 - 8*n)
		var m vector
		for l := range int(s.k.args[0].Size) / n {
			m.setLane(l, n, f(a.lane(l, n), b.lane(l, n), x.lane(l, n), y.lane(l, n), all))
		}
		s.vectorResult(m)
		return true
	}
}

// testRule is that of PTEST.
func testRule(s *step) bool {
	a, x := s.operand(0)
	b, y := s.operand(1)
	var zero, carry [2]bool // something is marked, something is set for sure
	for i := range a {
		m, v := a[i]&b[i]|a[i]&y[i]|b[i]&x[i], x[i]&y[i]
		zero[0], zero[1] = zero[0] || m != 0, zero[1] || v&^m != 0
		m, v = a[i]&b[i]|a[i]&y[i]|b[i]&^x[i], y[i]&^x[i]
		carry[0], carry[1] = carry[0] || m != 0, carry[1] || v&^m != 0
	}
	s.setFlags(x86.FlagZF, zero[0] && !zero[1])
	s.setFlags(x86.FlagCF, carry[0] && !carry[1])
	s.setFlags(x86.FlagOF|x86.FlagSF|x86.FlagPF|x86.FlagAF, false)
	return true
}

// floatNames are the instructions of floating point with two sources of lanes each.
var floatNames = map[string]bool{"ADD": true, "SUB": true, "MUL": true, "DIV": true, "MIN": true, "MAX": true, "SQRT": true, "CMP": true}

// floatLane returns the size of the lanes of an arithmetic instruction of floating point.
func floatLane(m string) (n int, ok bool) {
	if len(m) < 4 || !floatNames[m[:len(m)-2]] {
		return 0, false
	}
	switch m[len(m)-1] {
	case 'S':
		return 4, true
	default:
		return 8, true
	}
}

// floats is the rule of floating point: of scalars the lowest lane alone is computed, and the
// others are those of the first source.
func floats(n int, m string) rule {
	scalar := m[len(m)-2] == 'S'
	return func(s *step) bool {
		i, j := s.two()
		if m[:4] == "SQRT" && (!scalar || len(s.k.args) == 2) {
			i = j
		}
		a, _ := s.operand(i)
		b, _ := s.operand(j)
		var r vector
		count := int(s.k.args[0].Size) / n
		if scalar {
			count = 1
			first, _ := s.operand(s.keeps())
			r = first.low(16)
		}
		all := ^uint64(0) >> (64 - 8*n)
		for l := range count {
			r.setLane(l, n, whole(a.lane(l, n), b.lane(l, n), 0, 0, all))
		}
		mask := *laneMask(0xff)
		if !s.k.isVEX {
			mask = *laneMask(3)
		} else if scalar || s.k.args[0].Size <= 16 {
			r = r.low(16)
		}
		s.t.todo.vectors = append(s.t.todo.vectors, vectorWrite{s.k.args[0].Reg, mask, r})
		return true
	}
}

// keeps is the argument whose upper lanes a scalar instruction keeps.
func (s *step) keeps() int {
	if s.k.isVEX {
		return 1
	}
	return 0
}
