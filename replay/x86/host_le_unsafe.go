//go:build !(ppc64 || s390x || mips || mips64)

package x86

import "unsafe"

// Guest words in host memory, for the run loop: too small a cost for the
// compiler to refuse inlining in a function of that size, which it does for
// encoding/binary. The callers have checked that off + size <= pageSize.

func get16(p *[pageSize]byte, off uint64) uint16 {
	return *(*uint16)(unsafe.Add(unsafe.Pointer(p), off))
}

func get32(p *[pageSize]byte, off uint64) uint32 {
	return *(*uint32)(unsafe.Add(unsafe.Pointer(p), off))
}

func get64(p *[pageSize]byte, off uint64) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(p), off))
}

func put16(p *[pageSize]byte, off uint64, v uint16) {
	*(*uint16)(unsafe.Add(unsafe.Pointer(p), off)) = v
}

func put32(p *[pageSize]byte, off uint64, v uint32) {
	*(*uint32)(unsafe.Add(unsafe.Pointer(p), off)) = v
}

func put64(p *[pageSize]byte, off uint64, v uint64) {
	*(*uint64)(unsafe.Add(unsafe.Pointer(p), off)) = v
}
