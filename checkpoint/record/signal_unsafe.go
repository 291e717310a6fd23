//go:build linux && amd64

package record

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags of sigaction(2) that x/sys/unix lacks (asm-generic/signal-defs.h,
// arch/x86/include/uapi/asm/signal.h), and SIG_IGN.
const (
	saNoCldStop = 0x1
	saSigInfo   = 0x4
	saRestorer  = 0x04000000
	saOnStack   = 0x08000000
	saRestart   = 0x10000000

	sigIgn = 1
)

// sigaction is rt_sigaction(2) with the kernel's structure. A nil pointer asks
// or changes nothing.
func sigaction(sig int, now, old *kernelAction) error {
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// threadMask sets the calling thread's blocked signals and returns those before.
func threadMask(mask uint64) (old uint64) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), uintptr(unsafe.Pointer(&old)), 8, 0, 0) // it fails for bad pointers only
	return old
}

// queueInfo sends a signal with its siginfo_t (man 2 rt_sigqueueinfo). The
// kernel refuses one that says it is from the kernel or from kill(2).
func queueInfo(pid, sig int, si *siginfo) error {
	_, _, e := unix.RawSyscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(sig), uintptr(unsafe.Pointer(si)))
	if e != 0 {
		return e
	}
	return nil
}

// ownWords reads words of this process's memory at an address of the linker's.
func ownWords(addr uintptr, b []uint64) {
	copy(b, unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(nil), addr)), len(b)))
}

// These are in sighandler_amd64.s.
func handlerPC() uintptr
func restorerPC() uintptr

// What the handler reads: the pipe's descriptor, the handler of Go's runtime,
// and the signals (bit n is signal n) that it hands back when the kernel made
// them.
var (
	signalPipe     int32
	runtimeHandler uintptr
	handBackSet    uint64
)
