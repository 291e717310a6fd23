//go:build linux && amd64

package record

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls that read and set this process's own signal actions and mask, made
// without Go's runtime. They take addresses of Go memory, so they are apart from
// inherit.go and rawsignal.go, which say what they are for.

// sigIgn is SIG_IGN.
const sigIgn = 1

// setAction is rt_sigaction(2) with the kernel's structure. SIGKILL and SIGSTOP
// stay as they are.
func setAction(sig unix.Signal, act *kernelAction) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)), 0, 8, 0, 0)
}

// setMask sets the calling thread's blocked signals.
func setMask(mask uint64) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0)
}

// currentMask returns the calling thread's blocked signals.
func currentMask() (mask uint64) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, 0, uintptr(unsafe.Pointer(&mask)), 8, 0, 0)
	return mask
}

// actionOf returns a signal's action.
func actionOf(sig unix.Signal) (act kernelAction) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&act)), 8, 0, 0)
	return act
}
