// Package lockstep runs a recorded interval on the CPU of this machine beside
// the emulator, one instruction at a time, and stops at the first difference:
// it finds the emulator's bugs.
//
// The problem: [replay.Verify] says that a replay went wrong by the next system
// call at the latest, which may be a hundred million instructions behind the
// instruction that was emulated wrongly.
//
// The idea: a process of this machine executes the same instructions. It is
// this same executable, stopped at its execve before its first instruction
// and emptied of all memory by munmap calls that the tracer makes it execute;
// what is left is one page with a SYSCALL instruction. Its memory is a cache of
// the machine's: nothing is mapped at first, the CPU faults on a page, and the
// page is mapped there with the content that the machine has. Each step the
// emulator goes first; it says whether the instruction is an ordinary one,
// faults, or belongs to the log. An ordinary one is then executed by the process
// under PTRACE_SYSEMU_SINGLESTEP, and registers, flags, extended state and the
// bytes stored are compared. A REP instruction is compared at each iteration,
// which is what both sides step by. What belongs to the log (system calls, signals,
// RDTSC, CPUID) is applied to the machine by replay, and the process is given
// the registers, and loses the pages, that changed: it executes none of it.
//
// Stores that one side made and the other did not are found by comparing all
// pages of the process now and then; the stretch since the last such comparison
// is then run again with the page compared at each step.
//
// Invariants: between two steps the process's registers, where they are not
// marked as stale, and every page it has are those of the machine. The process
// never executes a system call of the guest: SYSEMU stops it at the entry, so
// a recording from an enemy cannot do anything but compute. It dies with the
// thread that traces it.
//
// What it does not do: it runs on linux/amd64 only ([ErrNotSupported]
// elsewhere); instructions whose result is not the program's (see the list in
// class) take the emulator's result; the addresses of the last x87
// instruction are compared only where the program stores them.
//
// Sources: man 2 ptrace; linux arch/x86/kernel/step.c for how TF is hidden from
// the tracer; SDM vol. 3B, 17.3.1.4 for single steps.
package lockstep
