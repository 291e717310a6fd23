// Package image reads the ELF files that lie in a process's memory, and rebuilds them:
// [Modules] and [LinkMap] say what is loaded where, [DebuggerSet] and
// [SectionTablePages] what debuggers will want to read of it, which the recorder keeps
// and slimming leaves alone, and [BuildELF] makes the file again, from captured memory
// and from symbol files of the same build-id, so that a debugger on a machine that has
// none of these files shows names, source lines and correct backtraces.
//
// It knows ELF and Linux's dynamic linker, and of a recording its memory map. It knows no
// processor, no emulated machine and no debugging information, so that the recorder can
// import it. All that it reads may be made to do harm.
package image
