// Package slice makes dynamic backward slices: of all instructions that a recording
// executed, those that a value was made of.
//
// The problem: a value is wrong, and whoever looks for the reason goes from it to the
// instruction that stored it, from there to what that was computed from, and so on, with a
// watchpoint each time. Of 10^8 instructions some thousand matter, most of them turns of a few
// loops.
//
// The idea (Korel and Laski 1988; Zhang, Gupta and Zhang 2003): walk backwards over a trace
// with the set of locations whose values are still to be explained. An instruction that wrote
// one of them is in the slice, and what it read takes that location's place. The trace of a
// whole run is too large to keep, and a recording makes that unnecessary: it is made again
// by replay, a stretch of two million instructions at a time, newest first (source.go,
// stretch.go), and walked over (walk.go, transition.go). It holds numbers of instructions and addresses;
// what flows where is known of each instruction once (package dataflow), from the table that
// is proved against the CPU. So memory is bounded by the stretches and by what is live.
//
// What is followed: bytes of memory, bytes of general registers, lanes of eight bytes of
// vector registers, single flags; across threads, signal handlers, mremap, and the seams
// between intervals. What a system call brought, and what was there when the recording
// began, are the slice's sources.
//
// The result is a graph of instructions, not of their executions: loops are folded as they
// are met, each vertex and edge has a count and the position of its newest execution.
//
// Invariants: the slice is sufficient. Executing its instructions alone, in order, from
// the values that it needs of the recording's start and of the outside, gives the value
// (TestSufficient). Where it is not known what an instruction keeps of a register, it
// counts as made of it: the slice may be too large, never too small, but for vector registers
// that a signal handler changes in its frame.
//
// What it does not do: the stack pointer, and RBP where it points into the frame, are
// taken as known, or all would depend on each push before it.
//
// With [Options.Controls], which knows what branches decide about what (package controlflow), control dependences are
// followed (control.go): the slice is then also of what led to its instructions, in vertices of their own (Role).
//
// With [Options.Copies] it is the origin of a value: the first step of the slice, repeated as
// long as the value is only copied.
package slice
