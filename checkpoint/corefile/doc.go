// Package corefile makes recordings of ELF core files: of x86-64 Linux programs, as the
// kernel, gcore(1) and gdb's generate-core-file write them (man 5 core). Nothing in it is Linux's
// own, so that a core file can be imported on any system.
//
// Such a recording holds one moment. It has one interval, without events, whose end is
// its start: all threads with their registers, the memory map and the pages. There is no past to go back
// to, and each question about the moment is answered as of any other recording.
//
// A core file lacks what the kernel takes for read again from files: code and read-only data. They
// come from the program's files on this machine, if these are the very files: their build-id is that
// of the header in the core file, and what the core file has of them is what they have. Where
// that cannot be had, the pages are not captured, and a note of the recording names the file. Files
// with symbols are kept whole, so that source lines are there on a machine without the program.
//
// A core file is a stranger's: lengths, offsets, counts and the order of everything may lie. All that
// is made of one is charged to a [checkpoint.Budget] before it is made, segments that overlap are
// refused, and no number of the file is added or multiplied before it is bounded.
//
// The files: open.go reads the header and the segments, notes.go the notes, registers.go what the notes
// say of a thread, xsave.go the layout of its extended state. maps.go joins segments and files to a
// memory map, stack.go finds arguments and environment. mapped.go finds the program's
// files, memory.go reads the memory of all of it, and write.go writes the recording. packed.go unpacks
// compressed core files, procmaps.go reads what /proc says of a program that has not gone yet.
package corefile
