package taint

import (
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Rules of instructions that convert, round, compare and pack elements of vector registers: an element of the
// result is made of the one or the few in its place, and of no others. What scalar instructions leave of a register
// is not looked at.

// conversion says what an instruction makes of each element: its size before and behind it, in bytes.
type conversion struct {
	from, to int
	scalar   bool
}

var conversions = map[string]conversion{
	"CVTSI2SS": {0, 4, true}, "CVTSI2SD": {0, 8, true}, "CVTSS2SD": {4, 8, true}, "CVTSD2SS": {8, 4, true},
	"CVTSS2SI": {4, 8, true}, "CVTTSS2SI": {4, 8, true}, "CVTSD2SI": {8, 8, true}, "CVTTSD2SI": {8, 8, true},
	"CVTDQ2PS": {4, 4, false}, "CVTPS2DQ": {4, 4, false}, "CVTTPS2DQ": {4, 4, false}, "CVTPS2PD": {4, 8, false}, "CVTDQ2PD": {4, 8, false},
	"CVTPD2PS": {8, 4, false}, "CVTPD2DQ": {8, 4, false}, "CVTTPD2DQ": {8, 4, false},
	"ROUNDSS": {4, 4, true}, "ROUNDSD": {8, 8, true}, "ROUNDPS": {4, 4, false}, "ROUNDPD": {8, 8, false},
	"RCPSS": {4, 4, true}, "RSQRTSS": {4, 4, true}, "RCPPS": {4, 4, false}, "RSQRTPS": {4, 4, false},
}

// compared are the sizes of the numbers that are compared, with flags as the result.
var compared = map[string]int{"COMISS": 4, "UCOMISS": 4, "COMISD": 8, "UCOMISD": 8}

// packed are the sizes of elements that are made half as large.
var packed = map[string]int{"PACKSSWB": 2, "PACKUSWB": 2, "PACKSSDW": 4, "PACKUSDW": 4}

// convertRuleOf returns the rule of such an instruction, nil where it is none.
func convertRuleOf(m string) rule {
	if c, ok := conversions[m]; ok {
		return c.rule
	}
	if n, ok := compared[m]; ok {
		return func(s *step) bool {
			a, _ := s.operand(0)
			b, _ := s.operand(1)
			s.setFlags(x86.FlagZF|x86.FlagPF|x86.FlagCF, a.lane(0, n)|b.lane(0, n) != 0)
			s.setFlags(x86.FlagOF|x86.FlagSF|x86.FlagAF, false)
			return true
		}
	}
	if n, ok := packed[m]; ok {
		return func(s *step) bool { return s.pack(n) }
	}
	switch m {
	case "PMADDWD":
		return lanes(4, whole)
	case "PMADDUBSW":
		return lanes(2, whole)
	case "PSADBW":
		return lanes(8, func(a, b, x, y, all uint64) uint64 { return whole(a, b, x, y, all) & 0xffff })
	case "PMULUDQ", "PMULDQ":
		return lanes(8, func(a, b, x, y, all uint64) uint64 { return whole(a&0xffffffff, b&0xffffffff, x, y, all) })
	}
	return nil
}

// source is the last argument that is no immediate.
func (s *step) source() int {
	i := len(s.k.args) - 1
	for s.k.args[i].IsImmediate {
		i--
	}
	return i
}

// rule is the rule of a conversion.
func (c conversion) rule(s *step) bool {
	i := s.source()
	from, n := c.from, 1
	if from == 0 { // a general register, or memory
		from = int(s.k.args[i].Size)
	}
	if !c.scalar {
		n = int(min(s.k.args[0].Size, 32)) / c.to
		if c.from > c.to {
			n = int(s.k.args[i].Size) / c.from
		}
	}
	a, _ := s.operand(i)
	var m vector
	if c.scalar && s.k.args[0].Kind == dataflow.InVector {
		m, _ = s.operand(s.keeps())
		m = m.low(16)
	}
	all := ^uint64(0) >> (64 - 8*c.to)
	for l := range n {
		m.setLane(l, c.to, whole(a.lane(l, from), 0, 0, 0, all))
	}
	if s.k.args[0].Kind != dataflow.InVector {
		s.result(m[0])
		return true
	}
	mask := *laneMask(0xff)
	if !s.k.isVEX {
		mask = *laneMask(3)
	}
	s.t.todo.vectors = append(s.t.todo.vectors, vectorWrite{s.k.args[0].Reg, mask, m})
	return true
}

// pack is the rule of instructions that make elements of n bytes half as large: in each 16 bytes those of the first
// source come first.
func (s *step) pack(n int) bool {
	i, j := s.two()
	a, _ := s.operand(i)
	b, _ := s.operand(j)
	var m vector
	half := n / 2
	all := ^uint64(0) >> (64 - 8*half)
	for at := 0; at < int(s.k.args[0].Size); at += 16 {
		for l := range 8 / half {
			m.setLane(at/half+l, half, whole(a.lane(at/n+l, n), 0, 0, 0, all))
			m.setLane(at/half+8/half+l, half, whole(b.lane(at/n+l, n), 0, 0, 0, all))
		}
	}
	s.vectorResult(m)
	return true
}
