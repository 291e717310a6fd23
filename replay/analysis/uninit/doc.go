// Package uninit finds uses of bytes that a recorded program has never written, while it is
// replayed: what memcheck finds in a running one.
//
// A block of the allocator's, and what a stack pointer that goes down makes room for, is undefined
// until it is written. Package taint carries that along, bit by bit, through registers, flags, memory
// and copies. It is no error to copy what is undefined. It is one when an undefined value decides a
// conditional jump, where a jump or a call goes, or which memory is accessed, and when it is handed
// to a system call. Each place is told once, with where the undefined bytes came to be.
//
// The functions of the C library that look at whole words where bytes are meant (strlen, memchr,
// strcmp and their like), and the allocator, have models (strings.go, heap.go): their instructions are
// not looked at. Other programs' vectorised loops go through the rules of package taint.
//
// What it does not do: memory that existed when the recording began is taken for defined, as is
// what the kernel writes. Blocks that were freed count as defined. See RATIONALE.md of package taint.
//
// Sources: Seward and Nethercote, Using Valgrind to detect undefined value errors with
// bit-precision, USENIX 2005; the manual of Valgrind, 4.5.
package uninit
