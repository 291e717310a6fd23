//go:build !(ppc64 || s390x || mips || mips64)

package x86

import "unsafe"

// What depends on the byte order of the machine that replays, where that is the
// guest's: the engine, and how a word is read. The other order is in host_be.go.

var defaultEngine Engine = BlockEngine{}

// get64 returns the guest's word at off of a page. The caller has checked that
// off+8 <= pageSize.
func get64(p *[pageSize]byte, off uint64) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(p), off))
}
