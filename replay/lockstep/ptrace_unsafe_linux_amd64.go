package lockstep

import (
	"syscall"
	"unsafe"
)

// What lockstep asks of the kernel beyond package ptrace: files in memory, mappings at a fixed
// address, and the CPUs of a thread.

// Constants that package syscall lacks: include/uapi/linux/memfd.h, asm-generic/mman-common.h.
const (
	sysMemfdCreate = 319
	memfdCloexec   = 1
	mapNoReplace   = 0x100000 // MAP_FIXED_NOREPLACE
)

// memfd makes a file of memory (man 2 memfd_create).
func memfd(name string, size uint64) (int, error) {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return -1, err
	}
	fd, _, e := syscall.Syscall(sysMemfdCreate, uintptr(unsafe.Pointer(p)), memfdCloexec, 0)
	if e != 0 {
		return -1, e
	}
	if err := syscall.Ftruncate(int(fd), int64(size)); err != nil {
		_ = syscall.Close(int(fd)) // the first error is the one to tell
		return -1, err
	}
	return int(fd), nil
}

// affinity gets (set false) or sets the CPUs that thread tid may run on.
func affinity(tid int, set bool, mask *[16]uint64) error {
	nr := uintptr(syscall.SYS_SCHED_GETAFFINITY)
	if set {
		nr = syscall.SYS_SCHED_SETAFFINITY
	}
	if _, _, e := syscall.RawSyscall(nr, uintptr(tid), unsafe.Sizeof(*mask), uintptr(unsafe.Pointer(mask))); e != 0 {
		return e
	}
	return nil
}

// currentCPU returns the number of the CPU that this thread runs on.
func currentCPU() (uint32, error) {
	const sysGetcpu = 309
	var cpu uint32
	if _, _, e := syscall.RawSyscall(sysGetcpu, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return 0, e
	}
	return cpu, nil
}
