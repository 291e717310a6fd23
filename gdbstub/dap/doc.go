// Package dap serves a replay to editors over the Debug Adapter Protocol: VS Code
// by our extension (folder vscode) or by "debugServer" in its launch.json, nvim-dap,
// Emacs, and whatever else speaks it.
//
// The problem: editors that debug by gdb, VS Code's C++ extension first of all, have
// no buttons to go back, whatever gdb can do. The protocol itself has two requests
// for it, stepBack and reverseContinue. The idea: this package is to editors what
// package gdbstub is to gdb, on the same [api.Target]. What gdb does by itself
// for a user, it does here: lines, frames, variables and expressions come from
// [api.Symbols], which package debug fills from package dwarf; stepping over lines, in both
// directions, is made of the target's range steps and breakpoints (step.go).
//
// What holds, whatever a client sends:
//
//   - A request that makes no sense, or that a recording cannot do, gets an error
//     with a text. One that makes a handler panic does, too, and a line in the log.
//   - The end of a session, by disconnect, terminate or a lost connection, clears its
//     breakpoints and nothing else. The position stays.
//   - Requests are answered in order. While the target moves, a pause stops it within
//     100 ms; breakpoints that are set meanwhile interrupt it and let it go on; all
//     else that needs the target waits until it stands.
//   - Sizes are bounded: messages, frames, variables at a time, breakpoints.
//   - The recording does not change: variables are set, and functions called, in a copy
//     of the process, which the console names and which is dropped when the program moves.
//     Expressions that are not typed into the console have no effects.
//   - Numbers of frames and variables of before the program moved are answered with nothing,
//     without a word.
//
// Files: server.go accepts clients; session.go is one client's conversation and its
// dispatch table; breakpoint.go, condition.go, step.go, stack.go, variable.go, change.go,
// console.go, progress.go and memory.go hold the requests by topic, source.go and handle.go
// what they have in common; program.go follows the process through execve; vplay.go has
// the requests of our own, which it lists.
//
// Source: the Debug Adapter Protocol's specification, version 1.66, whose message
// types github.com/google/go-dap has.
package dap
