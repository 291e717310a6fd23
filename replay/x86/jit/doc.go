// Package jit executes guest code by translating it to code of the host, for
// x86-64 Linux hosts: an x86.Engine beside the interpreter.
//
// An instruction is not compiled but emitted again: registers are the host's own
// as far as there are enough, and a memory operand becomes one of the host behind
// a look into the processor's translation cache. So flags, undefined ones
// included, come from the CPU. What has no rule here, and every access that the
// translation cache does not have, leaves the generated code for the row's
// handler and comes back behind it. So faults, watches, copy on write and code
// that changes are the handlers' alone.
//
// A [Pool] owns executable memory, and a [Engine] belongs to one processor and
// has a part of it. Where there is none, [Open] says why, and the
// interpreter does all.
//
// Where things are: unit.go decides what a unit of translation is, and flags.go where
// its flags must be saved; row.go says what is emitted for which row of the tables,
// once; assemble.go encodes; emit.go, access.go, stack.go and flow.go emit;
// engine.go and exit.go run; partial.go looks for pages with unknown or watched bytes; reach.go makes one check of several; start.go begins and ends an engine, reuse.go hands it on; link.go joins units; pool, enter and
// signal have the executable memory, the way in, and what happens when generated code
// faults. RATIONALE.md draws the code and says why it is so.
//
// Invariants: no guest address is used without a check against the translation
// cache; the host's stack pointer is never the guest's, and no return address of
// the guest is one of the host's; memory is never writable and executable at one
// address; generated code loads no flag but the arithmetic ones.
package jit
