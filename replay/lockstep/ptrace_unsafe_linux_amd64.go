package lockstep

import (
	"syscall"
	"unsafe"
)

// Requests and constants of ptrace(2) that package syscall lacks:
// include/uapi/linux/ptrace.h, arch/x86/include/uapi/asm/ptrace-abi.h and
// include/uapi/linux/elf.h.
const (
	reqGetRegs      = 12
	reqSetRegs      = 13
	reqSingleStep   = 9
	reqSysemuSingle = 32 // PTRACE_SYSEMU_SINGLESTEP
	reqSetOptions   = 0x4200
	reqGetSiginfo   = 0x4202
	reqGetRegset    = 0x4204
	reqSetRegset    = 0x4205
	optSysGood      = 0x1
	optExitKill     = 0x100000
	ntX86XState     = 0x202

	sysMemfdCreate  = 319
	memfdCloexec    = 1
	mapNoReplace    = 0x100000 // MAP_FIXED_NOREPLACE
	waitAll         = 0x40000000
	stopSyscallTrap = syscall.Signal(uint32(syscall.SIGTRAP) | 0x80)
)

// ptrace makes one ptrace call. It is a raw one: there are millions, and none
// blocks. What addr and data point to must not move, as a Go stack does that grows:
// the directive has the compiler put it on the heap.
//
//go:uintptrescapes
func ptrace(req, pid int, addr, data uintptr) error {
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PTRACE, uintptr(req), uintptr(pid), addr, data, 0, 0); e != 0 {
		return e
	}
	return nil
}

func getRegs(pid int, r *syscall.PtraceRegs) error {
	return ptrace(reqGetRegs, pid, 0, uintptr(unsafe.Pointer(r)))
}

func setRegs(pid int, r *syscall.PtraceRegs) error {
	return ptrace(reqSetRegs, pid, 0, uintptr(unsafe.Pointer(r)))
}

// getXState reads the XSAVE image into b and returns its length.
func getXState(pid int, b []byte) (int, error) {
	iov := syscall.Iovec{Base: &b[0], Len: uint64(len(b))}
	err := ptrace(reqGetRegset, pid, ntX86XState, uintptr(unsafe.Pointer(&iov)))
	return int(iov.Len), err
}

func setXState(pid int, b []byte) error {
	iov := syscall.Iovec{Base: &b[0], Len: uint64(len(b))}
	return ptrace(reqSetRegset, pid, ntX86XState, uintptr(unsafe.Pointer(&iov)))
}

// siginfo is the head of the kernel's siginfo_t, as of a fault.
type siginfo struct {
	signo, errno, code int32
	_                  int32
	addr               uint64
	_                  [104]byte
}

func getSiginfo(pid int, s *siginfo) error {
	return ptrace(reqGetSiginfo, pid, 0, uintptr(unsafe.Pointer(s)))
}

// wait waits for pid to stop or end. It blocks for the microseconds of a step,
// so that it does not tell the scheduler.
func wait(pid int) (syscall.WaitStatus, error) {
	var ws uint32
	for {
		_, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&ws)), waitAll, 0, 0, 0)
		switch e {
		case 0:
			return syscall.WaitStatus(ws), nil
		case syscall.EINTR:
		default:
			return 0, e
		}
	}
}

// pread and pwrite have offsets up to 2^64: raw calls take them.
func pread(fd int, b []byte, off uint64) (int, error) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(off), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

func pwrite(fd int, b []byte, off uint64) (int, error) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_PWRITE64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(off), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

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
