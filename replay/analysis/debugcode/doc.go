// Package debugcode runs debug code over a recording: a program in C of the debugger's user, whose
// regions are executed when the recorded program comes to a line, calls a function, makes a system call or
// accesses a variable, and in which the program's variables, types and functions are used by name.
//
// [Prepare] has the preprocessor expand the file, makes a function of each region, writes declarations
// for what it uses of the program from DWARF, compiles and links all with a C library of its own (musl), at
// addresses that the recording does not use. [Program.Run] replays the recording by package observe, and
// executes the regions in the order of execution, in the emulator, as debug code of a diversion
// (replay.DebugCode): it reads all of the program's memory, calls its functions in a copy that is thrown away, keeps its
// own memory from one call to the next, and cannot write to the program's.
//
// The replay is exact with it: it runs beside the machine that replays, whose intervals are compared with
// the recording at their ends, as verify does.
//
// RATIONALE.md says how names become addresses, and what else was considered.
package debugcode
