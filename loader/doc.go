// Package loader turns a recording into machine state, and back into the
// files that debuggers ask for.
//
// [Space] and [SetRegs] build the guest's memory and registers at the start of
// an interval; pages are read from the recording when first touched, through
// [Source]. The other half rebuilds, from captured memory alone, ELF images of
// the program and its libraries so that a debugger on a machine that has none
// of these files shows names, source lines and correct backtraces.
package loader
