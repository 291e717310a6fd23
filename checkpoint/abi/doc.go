// Package abi is what Linux x86-64 promises to a program: the system call
// table as data, the constants of its headers, and the layout of siginfo.
//
// The recorder, the replayer, the strace-like printer and the tests all work
// from one table, syscalls.txt, with one row per system call number: its
// name, the kinds of its arguments, which of them return memory and how much,
// and the class of its effect ([Effect]). A generator (internal/abigen) turns
// the rows into syscalls_gen.go. About one row in seven is irregular: what the
// call writes depends on a command number, on a length that it reads from
// memory, or on an array of pointers. Those are Go functions in the sys_*.go
// files, by area.
//
// The central question is [Outputs]: which memory may the kernel have written
// during a call that returned ret? The answer is always a superset. To list
// more than was written is harmless (the recorder logs bytes that replay would
// have found anyway); one byte too few is a divergence much later. So whole
// argument ranges are listed where a call failed half way (EFAULT) or returned
// a short count. What cannot be listed is an error, [ErrOpaque], and the caller
// starts over from a fresh image of memory. An unknown number, an unknown
// ioctl or prctl is always opaque, never empty.
//
// Outputs looks at memory after the call. It follows pointers, and reads
// lengths, that the program has put there. A call may write over what names its
// buffers (an iovec inside the buffer it describes): [Blocks] keeps that at the entry,
// and [OutputsBy] goes by it.
//
// A call that may wait ([MayBlock]) while another thread runs must not write the
// program's memory whenever it likes. [Redirect] gives it addresses in scratch
// memory, and [Redirection.Results] says what has come for the program.
//
// The table is that of the SYSCALL instruction in 64-bit mode. INT 0x80 and
// SYSENTER enter with other numbers (those of i386), x32 numbers have bit 30 set:
// neither is described here, and an x32 number is unknown.
//
// Nothing here makes a system call or needs Linux to build. All input is taken
// as hostile: a read of absent memory ends a list, counts and total length are
// bounded, nothing panics.
//
// Constants keep their Linux names; the header is quoted at each block. Sources
// are the uapi headers of Linux 6.18, the kernel's own code where the headers
// do not say what is written, and section 2 of the manual pages.
package abi
