// Package heap follows the heap of a recorded program and finds where the program misuses it: accesses to
// blocks that were freed, accesses behind and before blocks, double frees, frees of what is no block.
//
// A [Tracker] is told of the calls of malloc's family and of their returns, and keeps the blocks. The bytes that the
// program must not touch are in a mem.Marks: those of freed blocks, and those between the end of a block and
// the next one. Package observe tells of accesses to marked bytes alone, so what else the program
// accesses costs nothing.
//
// Only what is known is reported: a block that was allocated before the recording began has no marks, nor has memory that was never
// handed out. Accesses by the allocator itself are not reported, nor reads by string functions of whole vectors that
// reach behind the end of a string (text.go). Why so is in RATIONALE.md.
package heap
