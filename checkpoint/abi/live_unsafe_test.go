//go:build linux && amd64

package abi

import (
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

// pin keeps this thread, and the children it starts, on the first CPU that it
// may use: a stop that changes CPUs costs many times more. The function it returns
// undoes it.
func pin(t *testing.T) (unpin func()) {
	var old, one [128]byte
	call := func(nr uintptr, mask *[128]byte) syscall.Errno {
		_, _, e := syscall.RawSyscall(nr, 0, uintptr(len(mask)), uintptr(unsafe.Pointer(mask)))
		return e
	}
	if e := call(SYS_SCHED_GETAFFINITY, &old); e != 0 {
		t.Fatal(e)
	}
	i := slices.IndexFunc(old[:], func(b byte) bool { return b != 0 })
	one[i] = old[i] & -old[i]
	if e := call(SYS_SCHED_SETAFFINITY, &one); e != 0 {
		t.Fatal(e)
	}
	return func() { _ = call(SYS_SCHED_SETAFFINITY, &old) } // the old set was right before
}

// addrOf returns where memory that does not move lies.
func addrOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
