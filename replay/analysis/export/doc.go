// Package export writes what a recording executed in the formats of other tools: profiles, traces, coverage.
//
// A recording replays every instruction. So counts are exact, where a profiler samples: of instructions by source line and by the
// calls that led there, of calls, of what was allocated. Each format is in a file of its own, and is one of [Formats].
//
// All have one walk over the recording in common. Package observe replays it and tells of runs: instructions that
// follow each other in memory and were executed one after the other, five or so at a time, so that a
// callback for each costs less than the execution. pass.go counts runs, by node of a tree of calls (tree.go). Which calls are
// under way is followed through calls, returns, jumps to other functions, signals, longjmp and exceptions, and changes of the
// stack (stack.go, calls.go); what was under way when the recording began is found with unwind tables.
//
// Formats that hold sums are made from all intervals at once, each with a tree of its own that leaves open what led to the
// interval's beginning; join.go puts them together in order. Formats that list what happens one after the other are made from the
// intervals in order (follow.go), and written as they are made.
//
// Invariant: the instructions that were counted are those that were executed. It is checked for each interval.
//
// What is not done is in RATIONALE.md. Sources of the formats are named in their files.
package export
