// Package taint carries marks forward through an execution: from bits of memory and registers to
// all that is made of them.
//
// The problem: a value is known to be bad, by where it came from (an input) or by what it is (memory
// that nobody has written), and the question is what became of it. It is copied, computed with,
// compared, stored; some of it decides a branch or becomes an address.
//
// The idea (memcheck: Seward and Nethercote 2005; taint analysis: Newsome and Song 2005): a shadow that
// has a bit for each bit of registers, flags and memory, and for each instruction a rule that says which
// bits of the result are marked. An [Engine] is told of each instruction and event by whoever
// replays (Before, After, Event), over all intervals and threads, in order. What flows where is known from package
// dataflow; what is known beyond that of an instruction, as that x & 0 depends on nothing, is in rules.go
// and vectorrules.go.
//
// Where a marked value decides something (a jump, an address, a system call) [Options.Use] is
// called, before the instruction.
//
// Invariants: a bit that is not marked does not depend on marked bits (TestRules), but through branches,
// addresses where [Options.Addresses] is off, and functions that a [Model] stands for. Marks
// of an instruction that faults are not committed. Memory is bounded by the pages that have marks.
//
// What it does not do: the stack pointer, and RBP where it is the frame pointer, are taken as known;
// control dependences are not followed. See RATIONALE.md.
package taint
