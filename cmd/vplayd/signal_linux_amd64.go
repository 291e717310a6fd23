package main

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// How record dies of the signal that its program died of.

// dieOf ends this process by a signal, as the recorded program ended. The
// runtime's handlers cannot be reset for the synchronous signals, so that the
// default action is restored by the system call itself.
func dieOf(sig syscall.Signal) {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	runtime.LockOSThread()
	var act [4]uint64 // struct sigaction of the kernel: SIG_DFL, no flags, empty mask
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	set := uint64(1) << (sig - 1)
	const unblock = 1 // SIG_UNBLOCK
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, unblock, uintptr(unsafe.Pointer(&set)), 0, 8, 0, 0)
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), sig)
	time.Sleep(time.Second)
}
