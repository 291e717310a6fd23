// Package controlflow knows which branches decide whether an instruction is executed: its control dependences.
//
// The problem: what flowed into a value is seen in the instructions that made it. That they were executed at all, and not
// others, is not. Who looks for the reason must know which of the branches before were decisive, and which would have led
// to the same instruction on either way.
//
// The idea (Ferrante, Ottenstein and Warren 1987): an instruction depends on a branch from which one way leads to it inevitably and another
// one does not. That follows from the graph of control flow by post-dominators. It is made for each function that was called,
// from the recorded code (graph.go): so a way that was never taken is known as well. Where calls and jumps through registers led
// is known from an execution: [Collect] replays all of it once, by package observe.
//
// Invariants: functions are told apart by who was called. The answer for an address does not change once it was given.
//
// What it does not do: which instance of a branch led to which instance of an instruction is the business of who goes
// through an execution (package slice). Indirect jumps lead where they led in the execution; a case of a switch that was not taken is
// not known. Code that changed is known as it was last. longjmp, and unwinding for exceptions, are no ways of the graph.
//
// Package deviate fills in what it has seen itself, and package debug has slices with control dependences by Collect.
package controlflow
