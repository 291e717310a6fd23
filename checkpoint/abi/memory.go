package abi

import "encoding/binary"

// How the functions of this package read the program's memory: what they need, and no more.
// They never write, and do not know whose memory it is.

// Memory is the program's memory as the functions of this package read it.
type Memory interface {
	// ReadAt fills b from addr on and returns how many bytes could be read:
	// len(b), or fewer when a byte is absent. It may not fail otherwise.
	ReadAt(addr uint64, b []byte) int
}

// Hints is what a Memory may implement in addition, to make Outputs exact where
// it must otherwise be generous. Both answers may be conservative.
type Hints interface {
	// Writable reports whether all of [addr, addr+n) is mapped and writable
	// by the program, so that the kernel's copies to it cannot have faulted.
	Writable(addr, n uint64) bool
	// Datagram reports whether fd may be a datagram or raw socket: its receive
	// calls may write a packet's bytes before they find its checksum wrong.
	Datagram(fd int32) bool
}

// Range is a run of bytes in the program's memory. Len is in bytes and not 0;
// Addr+Len does not wrap.
type Range struct{ Addr, Len uint64 }

// PageSize is the size of a page in bytes: arch/x86/include/asm/page_types.h.
const PageSize = 4096

// TaskSize is the first address that user memory cannot have, with 4-level page
// tables and the guard page: TASK_SIZE_MAX of
// arch/x86/include/asm/page_64_types.h. With 5 levels a program gets higher
// addresses only when it asks for them by a hint.
const TaskSize = 1<<47 - PageSize

func readUint32(m Memory, addr uint64) (uint32, bool) {
	var b [4]byte
	if m == nil || m.ReadAt(addr, b[:]) != len(b) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b[:]), true
}

func readUint64(m Memory, addr uint64) (uint64, bool) {
	var b [8]byte
	if m == nil || m.ReadAt(addr, b[:]) != len(b) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// accessible returns how many bytes from addr on, at most n, can be read
// without a hole; all n when there is no memory to look at. It looks at one byte
// per page.
func accessible(m Memory, addr, n uint64) uint64 {
	if m == nil {
		return n
	}
	var b [1]byte
	for at, end := addr, addr+n; at < end; at = at&^(PageSize-1) + PageSize {
		if m.ReadAt(at, b[:]) != 1 {
			return at - addr
		}
	}
	return n
}
