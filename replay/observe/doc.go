// Package observe tells what a recorded program did, while it is replayed: instructions, branches,
// accesses to memory, calls and returns, system calls and all other events, and when it came to
// chosen addresses.
//
// [Run] replays intervals, each by itself and several at once, and makes an [Observer] for
// each: a struct of callbacks. What is not asked for costs nothing. At addresses, at events
// and at accesses to chosen ranges a program runs by the session's engine in between, which is
// generated code where that is available. For each access there is it runs by the interpreter's loop, for each
// instruction by its handlers (x86.TraceEngine), some ten times slower.
//
// Callbacks of one interval come in the order of execution, from one goroutine. Of
// different intervals they come at the same time, unless [Options.Ordered] asks for one after the
// other: then an interval that is ahead of its turn goes on, and keeps snapshots
// of where it has something to tell, up to a bound. [Options.End] comes in order in either case.
//
// Replay stays exact: callbacks may read the machine, not change it, and each interval's
// end is compared with the recording as verify does. How this is done, what was
// measured, and what was not chosen is in RATIONALE.md.
package observe
