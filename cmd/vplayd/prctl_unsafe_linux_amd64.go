package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The one system call of doctor that takes a pointer.

// prctlGetTSC asks whether RDTSC is allowed (man 2 prctl, PR_GET_TSC).
func prctlGetTSC(mode *int32) error {
	// Not unix.Prctl: in its Go frames mode's stack may move.
	if _, _, e := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_TSC, uintptr(unsafe.Pointer(mode)), 0); e != 0 {
		return e
	}
	return nil
}
