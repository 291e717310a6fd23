package x86

import (
	"testing"
	"unsafe"
)

// TestBlockLayout: the run loop finds the kind of a block's first instruction
// in the cache line that it has asked for the block.
func TestBlockLayout(t *testing.T) {
	for _, s := range blockSizes {
		for range 20 {
			b, ops := newBlock(s.n)
			at, kind := uintptr(unsafe.Pointer(b)), uintptr(unsafe.Pointer(&ops[0].kind))
			if at/64 != kind/64 {
				t.Fatalf("%d instructions: block at %#x, kind at %#x", s.n, at, kind)
			}
			if end := unsafe.Pointer(&ops[s.n-1]); uintptr(end)+unsafe.Sizeof(ops[0]) != at+unsafe.Sizeof(*b)+uintptr(s.n)*unsafe.Sizeof(ops[0]) {
				t.Fatalf("%d instructions: the last at %p", s.n, end)
			}
		}
	}
}
