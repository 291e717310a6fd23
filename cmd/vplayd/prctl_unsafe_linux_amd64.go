package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// prctlGetTSC asks whether RDTSC is allowed (man 2 prctl, PR_GET_TSC).
func prctlGetTSC(mode *int32) error {
	return unix.Prctl(unix.PR_GET_TSC, uintptr(unsafe.Pointer(mode)), 0, 0, 0)
}
