// Package differential compares the emulator, replay/x86, with the CPU the
// test runs on: the same instruction bytes from the same state, everything
// compared afterwards.
//
// The problem. A replay is right only if every instruction is, down to the
// flags the manual calls undefined; one wrong bit diverges a million
// instructions later, where nobody can see why. Manuals leave too much open
// to write such an emulator from, so silicon is the oracle.
//
// The idea. A small native harness (native/harness.c, built by gcc into a
// temporary folder when a test needs it) loads a complete state, executes a
// few bytes on the CPU and stores the complete state, several hundred thousand
// times a second; faults included. Cases come from the decoder's own table:
// [Encoder] turns each row of x86.Rows into bytes, with every legal prefix,
// addressing form and operand size over time, and [Generator] fills registers
// and memory with values near the edges where implementations go wrong. The
// emulator executes the same case, and [Diff] lists what differs. A failing
// case is shrunk (see [Shrink]) to one line of text that can be appended to
// testdata/regress_*.txt, which are run always.
//
// Everything is derived from one seed, so that a failure found once is found
// again. What "undefined" means is data: the flags such a form leaves are
// compared like all others, with the vendor of the host CPU as the expected
// one. RATIONALE.md lists the rules found.
//
// What it does not do: instructions whose result is not a function of the
// state (RDTSC, CPUID, RDRAND), system calls, and forms no CPU at hand has;
// policy.go names each with its reason and where it is tested instead.
//
// Layout of the sandbox, in both the harness and the emulator:
//
//	0x20000000  guard, not mapped
//	0x20001000  4 pages, read and write     (DataBase)
//	0x20005000  1 page, read only           (ReadOnlyPage)
//	0x20006000  guard, not mapped
//	0x20008000  1 page, read and write      (LastPage)
//	0x20009000  guard, not mapped
//	0x30000000  2 pages, code, INT3 where no instruction was placed (CodeBase)
//	0x30002000  guard, not mapped
//
// The harness alone has one page more below 4 GiB, at 0x38000000, which cannot be written.
package differential
