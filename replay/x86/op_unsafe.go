package x86

import "unsafe"

// How the instructions of a block are found: they lie behind it in memory, one after
// the other. The generated loop goes along them by itself (run_gen.go). Words of the
// guest's memory are read in host_le_unsafe.go.

// opSize is the distance of two instructions of a block, in bytes.
const opSize = unsafe.Sizeof(op{})

// nextOp returns the instruction that follows o, of the same block. A block
// ends with a sentinel, so there always is one while the run loop asks.
func nextOp(o *op) *op {
	return (*op)(unsafe.Add(unsafe.Pointer(o), opSize))
}

// firstOp returns the first instruction of b.
func firstOp(b *block) *op {
	return (*op)(unsafe.Add(unsafe.Pointer(b), unsafe.Sizeof(*b)))
}

// opsOf returns the n instructions that b has room for.
func opsOf(b *block, n int) []op { return unsafe.Slice(firstOp(b), n) }
