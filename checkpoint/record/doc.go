// Package record is the recorder: it runs a Linux x86-64 program under
// ptrace(2), logs everything that comes into it from outside, and writes a
// recording when it crashes.
//
// The problem. A program's run is determined by its memory and registers at
// one point and by what comes in afterwards: results of system calls, the
// bytes they write, signals, and a few instructions (RDTSC, CPUID). The
// recorder must catch all of these in program order, without performance
// counters and without the program noticing, and it must keep images of the
// past from which replay can start.
//
// The idea. One goroutine, locked to a thread that shares one CPU with the
// program, stops it at every system call's entry and exit (PTRACE_SYSCALL; no
// seccomp filter, which children would inherit). Those stops are sync points:
// replay can name them exactly. Signals that arrive elsewhere are held until
// the next one, or force the interval to end. An interval starts with a shadow:
// a copy-on-write clone of the program that stays stopped and holds the memory
// of that point. The next interval's dirty pages are those that the program no
// longer shares with it. Intervals stand in a ring bounded by time and bytes;
// at the crash the oldest is written whole, the later ones where they differ.
//
// With Options.Agent, code in the program makes the frequent calls itself (package agent;
// agentspace.go says when). What a stop means is the same then.
//
// With Options.Guardian, another process puts the program right if the recorder is killed (guard.go, guardian.go).
//
// Where to look. The state is in five types, as the kernel has it: session (one recording),
// group (the processes that share writable memory, and their log), space (one address
// space), process and thread. session.go runs the loop that waits for stops; stops.go says
// which method of a thread answers each; interval.go ends one interval and starts the next.
// Stops come from a stopSource (source.go), so far from ptrace.
//
// Invariants.
//
//   - Every ptrace request is made by the one tracer thread. A timer goroutine
//     may only send the reserved signal, and only while the program runs its own
//     code (see forceTimer).
//   - System calls are injected only at stops where nothing of the guest's own
//     call is pending, with all signals blocked, and every register restored.
//   - The descriptors of /proc/PID/mem and pagemap are opened at each execve,
//     before the program can forbid it.
//   - Whatever ends the recording, the program runs on (detached, with its own
//     affinity, RDTSC and CPUID restored) or dies by its own signal, no shadow
//     stays behind, and a recording that is not whole is not left on disk.
//
// Processes that the program starts are recorded with it, each with a log of its own
// (newprocess.go); those that share memory take turns, as the threads of one process do
// (sharers.go, joining.go, sharedstores.go, turns.go).
//
// What it does not do. Programs for 32 bits, programs that would not get their privileges
// under a tracer, and processes that another of the recording traces run on unrecorded.
//
// The recorder needs linux/amd64. What asks neither the kernel nor the CPU builds and is
// tested everywhere: the model of the mappings, sets of pages, the meaning of page table
// entries, and what a ring keeps.
package record
