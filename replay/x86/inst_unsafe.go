package x86

import "unsafe"

// instSize is the distance of two instructions of a block, in bytes.
const instSize = unsafe.Sizeof(Inst{})

// nextInst returns the instruction that follows in, of the same block. A block
// ends with a sentinel, so there always is one while the run loop asks.
func nextInst(in *Inst) *Inst {
	return (*Inst)(unsafe.Add(unsafe.Pointer(in), instSize))
}

// firstInst returns the first instruction of b.
func firstInst(b *block) *Inst {
	return (*Inst)(unsafe.Add(unsafe.Pointer(b), unsafe.Sizeof(*b)))
}

// instsOf returns the n instructions that b has room for.
func instsOf(b *block, n int) []Inst { return unsafe.Slice(firstInst(b), n) }
