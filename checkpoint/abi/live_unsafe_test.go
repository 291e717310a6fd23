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

// mapAt maps n bytes at an address that nothing is near: a pointer of the
// fuzzer's whose lower half is overwritten leads nowhere.
func mapAt(t *testing.T, addr uint64, n int) []byte {
	const prot, fixedNoReplace = syscall.PROT_READ | syscall.PROT_WRITE, 0x100000
	got, _, e := syscall.RawSyscall6(SYS_MMAP, uintptr(addr), uintptr(n), prot, MAP_PRIVATE|MAP_ANONYMOUS|fixedNoReplace, ^uintptr(0), 0)
	if e != 0 || uint64(got) != addr {
		t.Fatalf("no memory at %#x: %v", addr, e)
	}
	t.Cleanup(func() { _, _, _ = syscall.RawSyscall(SYS_MUNMAP, got, uintptr(n), 0) })
	return unsafe.Slice((*byte)(unsafe.Add(nil, got)), n)
}
