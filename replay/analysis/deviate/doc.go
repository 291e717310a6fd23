// Package deviate finds where a bad run of a program went wrong, beside one or several good
// runs of it: with another input, or of another build.
//
// The problem: two runs differ in a thousand places, and most of the differences are harmless. Lines are longer,
// loops turn more often, other arguments are printed. The first difference says nothing. What
// is looked for is the first one that led to what is wrong.
//
// The idea: a difference in the flow of control matters only if what is wrong depends on it. So each
// run is executed again with an eye on all its branches (trace.go), and what good runs did is joined
// by places that mean the same in all runs (names.go, seen.go): offsets in files, or source lines
// where the builds differ. Then the dynamic backward slice of the fault is made, with the branches that
// led to its instructions (package slice, Options.Controls; package controlflow says which branches decide about
// what, by the graph of control flow). A branch of that slice that went where no good run ever went is a deviation, or one that
// belongs to a loop which turned more often than in any good run. What the bad run should have done and did not
// is in no slice of it. That is found in a good run's slice of the same moment (dual slicing: Weeratunge, Zhang,
// Sumner and Jagannathan 2011). Deviations are ranked by how many source lines are between them and the fault, in the slice (find.go).
//
// Invariants: what any good run did, at the same place, is no deviation of kind NewBranch, MoreTurns or Deeper. The recordings
// are only read. What is kept of a run is as large as its code.
//
// What it does not do: it does not line up two runs instruction by instruction. What differs only in the order of
// things that good runs did, too, or only in values, is seen where it
// makes a pair of branches in one call of a function that no good run has, or where what is wrong was stored by another line; else the
// fault itself is the answer. Branches of code without source lines are no deviations, but what flows through it is followed.
// Threads are told apart, but the order in which they ran is not compared.
package deviate
