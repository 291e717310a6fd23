// Package loader turns a recording into machine state, and the files in its memory into
// names.
//
// [Space] and [SetRegs] build the guest's memory and registers at the start of
// an interval; pages are read from the recording when first touched, through
// [Source]. [ModuleFiles] has the files of a program's modules, rebuilt by package image
// and opened by package dwarf, and a [Resolver] names addresses with them.
package loader
