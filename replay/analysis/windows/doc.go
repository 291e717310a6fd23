// Package windows measures, on a recording, what must be traced of a program so that
// any moment of it is at most T instructions of replay away.
//
// The problem (Netzer and Weaver, "Optimal Tracing and Incremental Reexecution for Debugging
// Long-Running Programs", PLDI 1994): a program that runs for long cannot be replayed
// from its start each time. So its execution is cut into windows of at most T, each of
// which can be replayed by itself from registers and a trace of values that it reads. Where
// the cuts are decides how much must be traced.
//
// The words, as they are used here:
//
//   - A location is a byte of memory. An access reads or writes it.
//   - A window [a, b) is the instructions from number a up to b, b-a <= T, and the events
//     between them. Events in front of instruction a belong to it.
//   - A read in a window is spanning when what it reads was written before the window, or
//     came from outside without the log: it is not the window's own work.
//   - It is unique when it is the window's first access to the location. Those reads are
//     traced: replay computes all others. So c(a, b), what is traced for a window, is how
//     many bytes are read in it before they are written in it.
//   - A placement is a sequence of windows that covers the execution. It costs the sum of
//     what is traced for them. The optimum is the cheapest.
//
// The idea: a read at time t of a byte that was accessed last at time p is traced in exactly
// the windows with p < a <= t < b. So one table of the last access of each byte (table.go)
// is enough to know c(a, b) for every window that ends now, in one pass over the accesses
// (counter.go). The optimum is a shortest path: f(b) is the least of f(a) + c(a, b) over the T
// last a. The adaptive scheme chooses while the program runs: it looks back over the last
// M instructions of a full window and cuts where least was traced for each instruction.
//
// Cuts are allowed at each T/100, not at each instruction ([Options.Points]): memory and time
// of the pass are then bounded by n*100, not n*T. With T of at most 100 they are exact.
//
// firstloads.go measures BugNet's first-load log (Narayanasamy, Pokam and Calder, "BugNet:
// Continuously Recording Program Execution for Deterministic Replay Debugging", ISCA 2005) on
// the same accesses.
//
// What is not done: threads are one execution, in the order of the recording; the accesses of
// other processes to shared memory are seen where they are in this one's log.
package windows
