// Package replay runs a recording again and makes it a place one can move
// about in.
//
// [Session] opens a recording. [Machine] is one process of it at one moment:
// processor, memory and the place in the event log; [Machine.Run] executes
// until something asks it to stop, and at each sync point takes the next event
// of the log, compares the registers with what the recorder saw and applies what
// came in from outside. Anything that does not fit is a [DivergenceError] with
// the position; it is never papered over. [Timeline] adds snapshots, and with
// them seeking to any [checkpoint.Position] and searching backwards.
//
// A Machine executes no system call: everything it knows of the outside
// world is in the log. Machines are values of one goroutine; several may run on
// several goroutines over one Session.
package replay
