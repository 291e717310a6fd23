package slice

import (
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// instruction is what is known of an instruction at an address, and how the trace has it.
type instruction struct {
	dataflow.Instruction
	vertex  uint32
	words   uint8 // that the trace has of it
	retires bool  // false for a REP that was left between two iterations
	saves   bool  // it keeps a register for a while: see isSave
}

// compile makes what is known of in. With frame the base register is the frame pointer: as
// with the stack pointer, its value is taken as known.
func compile(pc uint64, in *x86.Inst, frame bool) *instruction {
	k := &instruction{Instruction: *dataflow.Compile(pc, in, frame), retires: true, saves: isSave(in)}
	switch {
	case k.Spied:
		k.words = 1 // an index of stretch.spied
	case k.Repeats:
		k.words = 3 // RSI, RDI and the bytes done
	default:
		k.words = uint8(len(k.Ops))
	}
	return k
}
