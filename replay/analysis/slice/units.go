package slice

import (
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// The part of a trace that generated code makes (x86.UnitTracer): of code that is executed again and again the tracer is told by the unit.

// unit is instructions that are executed one behind the other.
type unit struct {
	ids []uint32
	// of is nil where no instruction is one whose operand may be addressed by the frame pointer.
	of []unitInstruction
}

// unitInstruction is an instruction of a unit.
type unitInstruction struct {
	framed   uint32 // its number where RBP is the frame pointer
	words    uint8  // that it has in traces
	mayFrame bool   // the values of RBP and RSP come behind them
}

// Words implements x86.UnitTracer.
func (t *tracer) Words(pc uint64, in *x86.Inst) (list []x86.Word, ok bool) {
	k, _ := t.p.instruction(pc, in, false)
	if !k.plain || len(k.Ops) > x86.MaxWords-2 {
		return nil, false
	}
	for _, o := range k.Ops {
		list = append(list, o.Word())
	}
	if dataflow.ByFrame(in) {
		if f, _ := t.p.instruction(pc, in, true); !f.plain || len(f.Ops) != len(k.Ops) {
			return nil, false
		}
		list = append(list, x86.Word{Reg: x86.RBP}, x86.Word{Reg: x86.RSP})
	}
	return list, true
}

// Unit implements x86.UnitTracer.
func (t *tracer) Unit(id int, pc uint64, in []x86.Inst) {
	u := unit{ids: make([]uint32, len(in))}
	of, mayFrame := make([]unitInstruction, len(in)), false
	for i := range in {
		var k *instruction
		k, u.ids[i] = t.p.instruction(pc, &in[i], false)
		of[i].words = k.words
		if of[i].mayFrame = dataflow.ByFrame(&in[i]); of[i].mayFrame {
			_, of[i].framed = t.p.instruction(pc, &in[i], true)
			mayFrame = true
		}
		pc += uint64(in[i].Len)
	}
	if mayFrame {
		u.of = of
	}
	t.units = append(t.units[:id], u)
}

// Ran implements x86.UnitTracer.
func (t *tracer) Ran(id, n int, _ uint64, words []uint64) {
	u, s := &t.units[id], t.s
	if u.of == nil {
		s.ids = append(s.ids, u.ids[:n]...)
		t.addWords(words)
		return
	}
	for i := range u.of[:n] {
		x, number := &u.of[i], u.ids[i]
		t.addWords(words[:x.words])
		words = words[x.words:]
		if x.mayFrame {
			if words[0]-words[1] < dataflow.MaxFrame {
				number = x.framed
			}
			words = words[2:]
		}
		s.ids = append(s.ids, number)
	}
}

// addWords adds addresses to the trace.
func (t *tracer) addWords(words []uint64) {
	s := t.s
	if !t.shared {
		s.words = append(s.words, words...)
		return
	}
	for _, a := range words {
		s.words = append(s.words, t.key(a))
	}
}
