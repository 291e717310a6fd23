// Package replay runs a recording again and makes it a place one can move
// about in.
//
// [Session] opens a recording. [Machine] is one process of it at one position:
// processor, memory and the place in the event log; [Machine.Run] executes
// until something asks it to stop, and at each sync point takes the next event
// of the log, compares the registers with what the recorder saw and applies what
// came in from outside. Anything that does not fit is a [DivergenceError] with
// the position; it is never papered over.
//
// Time travel has four layers, each of which knows only those below it:
//
//	Timeline, Cursor   what others see: queries, and a place that moves both ways
//	search             finds stops in the past: tasks for workers, on all cores
//	runner             a machine that moves within the recording; the cursor and each worker is one
//	index              what is known of the past: snapshots, segments, ends
//
// A Machine executes no system call: everything it knows of the outside
// world is in the log. Machines are values of one goroutine; several may run on
// several goroutines over one Session.
package replay
