//go:build linux && amd64

package record

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls of the kernel for leases (filerefs.go) that golang.org/x/sys/unix has not.

// setOwner has the signals that tell of a descriptor sent to one thread of this process: fcntl(2), F_SETOWN_EX.
func setOwner(fd, tid int) error {
	const setOwnEx, ownerTID = 15, 0 // asm-generic/fcntl.h
	owner := struct{ kind, id int32 }{ownerTID, int32(tid)}
	if _, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), setOwnEx, uintptr(unsafe.Pointer(&owner))); errno != 0 {
		return errno
	}
	return nil
}

// awaitSignal waits until a signal, which the calling thread blocks, is sent to it. False says that the wait was interrupted.
func awaitSignal(sig unix.Signal) bool {
	set := maskOf([]unix.Signal{sig})
	n, _, _ := unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), 0, 0, 8, 0, 0)
	return unix.Signal(n) == sig
}
