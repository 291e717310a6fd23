// Package gdbstub serves a replay to debuggers over GDB's Remote Serial
// Protocol: gdb, and whatever speaks through gdb/MI, and lldb.
//
// The problem: a debugger believes that it controls a live process. A replay
// is not one. It cannot be written to, it runs backwards as easily as
// forwards, and it must survive every session, because the next question is
// asked a minute later. The idea: the stub is a window, not a remote control.
// It reads from an [api.Target] and moves it along its history, and does
// nothing else. Of vplay it imports package api alone; package debug implements the
// target for recordings, and the command joins the two.
//
// What holds, whatever a client sends:
//
//   - A byte that was not captured is an error, never a zero. A memory reply
//     holds the readable prefix.
//   - A write that would change something is refused with a text; a write of
//     what is there already succeeds, because gdb makes such writes itself.
//   - Breakpoints are engine-side. They never change memory.
//   - Detach, kill, a closed connection and a broken one end the session and
//     nothing else: breakpoints are cleared, the position is kept.
//   - An unknown packet gets the empty reply. A packet that makes a handler
//     panic gets E01 and a line in the log.
//   - Work is bounded: packet and reply size, breakpoints, open files, lengths
//     of watchpoints, steps of agent expressions. What may take long (resume,
//     search, monitor) runs while the connection is watched, so that Ctrl-C
//     (byte 0x03) and connection loss reach it as a cancelled context.
//
// Layers, from the wire inwards: packet.go splits bytes into packets; conn.go
// owns a connection, its acknowledgements and its reader; session.go is one
// client's conversation and its dispatch tables; query.go, threads.go, resume.go, xfer.go,
// memory.go, register.go, breakpoint.go, vfile.go, monitor.go, job.go and lldb.go hold
// the packets by topic; process.go and selected.go know which process and which thread
// they are about; server.go accepts connections. Agent bytecode, for conditions that are checked
// during replay, is package agentexpr's.
//
// Registers are described once, in features/*.xml: numbers, sizes and order of
// the g packet come from there, and are those of gdbserver on x86-64 Linux.
//
// What a client changes is changed in a copy of the process that the target makes
// (divert.go, write.go), and gone when the client moves on.
//
// What it does not do: non-stop mode, several clients at once, tracepoints,
// file access to the machine it runs on.
//
// Sources: gdb manual, appendix "Remote Serial Protocol" and appendix "Agent
// Expressions"; lldb's lldbgdbremote document; conversations captured from
// gdb 13 and 16 and lldb 14 to 21.
package gdbstub
