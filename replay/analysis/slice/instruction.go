package slice

import (
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// instruction is what is known of an instruction at an address, and how the trace has it.
type instruction struct {
	// What the walk asks of each instruction is in one cache line.
	touch   uint64 // Touch
	code    uint32 // its number when variants do not count, see walker.vertex
	store   int8   // of one that is neither watched nor a string instruction: which of its operands it stores to; -1: none
	stored  uint8  // the bytes of that
	words   uint8  // that the trace has of it
	stores  bool   // Stores
	retires bool   // false for a REP that was left between two iterations
	saves   bool   // it keeps a register for a while: see isSave
	keeps   bool   // and that is one that a function must not change for its caller
	plain   bool   // neither watched nor a string instruction
	dataflow.Instruction
}

// maxFlows bounds the flows of an instruction. At most one of them stores (TestFlowsAreFew).
const maxFlows = 2

// calleeSaved are the registers that a function leaves as they were (System V ABI, AMD64 supplement, figure 3.4).
const calleeSaved = 1<<x86.RBX | 1<<x86.RBP | 1<<x86.R12 | 1<<x86.R13 | 1<<x86.R14 | 1<<x86.R15

// compile makes what is known of in. With frame the base register is the frame pointer: as
// with the stack pointer, its value is taken as known.
func compile(pc uint64, in *x86.Inst, frame bool) *instruction {
	k := &instruction{Instruction: *dataflow.Compile(pc, in, frame), retires: true, saves: isSave(in), store: -1}
	k.touch, k.stores, k.plain = k.Touch, k.Stores, !k.Spied && !k.Repeats
	k.keeps = k.saves && calleeSaved>>(in.Reg&15)&1 != 0
	switch {
	case k.Spied:
		k.words = 1 // an index of stretch.spied
	case k.Repeats:
		k.words = 3 // RSI, RDI and the bytes done
	default:
		k.words = uint8(len(k.Ops))
		for i := range k.Flows {
			if op := k.Flows[i].Store; op >= 0 {
				k.store, k.stored = op, k.Ops[op].Size
			}
		}
	}
	return k
}
