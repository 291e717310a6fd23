// Package dataflow says what one instruction does with data: which bytes of registers and of
// memory, which lanes of vector registers and which flags flow into which.
//
// It is made from the table of instructions (x86.Inst.Operands), which is proved against the
// CPU. The table says what is read and written; how wide that is, what is only copied, and
// what flows where is added here, once for those who walk back through an execution
// (replay/analysis/slice) and those who go forward with it (replay/analysis/taint).
//
// Invariants: where it is not known what an instruction keeps of a register, the register
// counts as read, so that there may be a dependence too many but never one too few. TestFlows,
// in package slice, executes random instructions twice, the second time with noise in all that
// a flow does not read, and wants the same result.
//
// What it does not do: the stack pointer is not followed, and RBP is not where it points into
// the frame; see the RATIONALE.md of package slice. EVEX forms, XSAVE and others whose accesses
// are not known from their operands are marked (Instruction.Spied): whoever executes them
// watches what they access.
package dataflow
