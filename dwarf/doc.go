// Package dwarf tells what lies at an address of an ELF file: symbol, function,
// source line, the inlined calls around it; and how to get from a frame to its
// caller.
//
// [Open] takes the bytes of an ELF file, such as the images that package image
// rebuilds, and reads nothing else. All addresses are the file's own; callers
// add and subtract the load bias. Whatever the file lacks, lookups simply do
// not find: a file with no section at all is still a Module.
//
// Lines, functions and inlining are indexed by compilation unit and read when first
// asked for. Call frame information is interpreted here, from .eh_frame and
// .debug_frame; RATIONALE.md says why neither is read by a library.
//
// Variables are values in a frame, an [Env]: [Env.Scopes] lists those that can be
// seen, [Env.Eval] evaluates an expression of C. Types, location expressions and
// location lists are read here, each when it is needed. Those of Go programs are
// found and typed by delve's packages godwarf and reader, read and written as dlv
// does it: files whose names begin with go.
//
// [Backtrace] walks a stack over several modules with nothing but registers, a
// way to read memory, and a way to find the module at an address.
//
// Files are hostile input: what is kept and gone through is charged to a [Budget], no
// loop trusts a count, and a panic in a library becomes an error of Open or a lookup that
// finds nothing.
//
// Sources: DWARF 5 (sections 2.5, 2.6, 3 to 7); DWARF 4 (2.6.2); LSB 5 Core, "Exception Frames";
// System V ABI, AMD64 supplement, figure 3.36 (register numbers).
package dwarf
