// Package agent has the code that runs inside a recorded program and makes its frequent system
// calls there, without a stop, and what that code shares with the recorder, its supervisor.
//
// The problem. A system call costs 100 ns, and two ptrace stops for it a hundred times as much.
//
// The idea. Where the program has a SYSCALL instruction it jumps to the agent instead, which
// makes the call, and writes the registers, the result and the bytes that the kernel has
// written into a ring. The supervisor reads the ring when the thread stops for another reason,
// or when it is full, and makes of each record the two events that it would have logged itself.
// What the agent cannot do, or is told not to, it leaves to the supervisor: it stops before the
// call, or behind it, with all that the supervisor needs to go on as if it had seen it all.
//
// When the supervisor is gone, killed by SIGKILL, the agent makes the program what it would be
// without either, at the first call that it would leave.
//
// Which calls are the agent's, and what they write, is said by rows (rows.go), which are made
// from the table of package abi. How a program's jump comes about, and what a stop
// means for the log, is package record's.
//
// The code is freestanding C and some assembly (src/agent.c, src/entry.S). It uses general registers
// only, so that nothing else has to be saved, and a stack of its own: not a byte of the
// program's memory is changed but by the kernel. It is committed as agent.bin, so that building
// needs no C compiler; src/build.sh makes it anew, byte for byte.
package agent
