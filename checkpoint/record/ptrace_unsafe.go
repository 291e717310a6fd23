//go:build linux && amd64

package record

import (
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Requests and options of ptrace(2), from include/uapi/linux/ptrace.h, that
// x/sys/unix lacks or that are wanted with a raw system call: the tracer makes
// millions of them and none can block.
const (
	ptraceSysGood    = 0x1
	ptraceOptFork    = 0x2
	ptraceOptVfork   = 0x4
	ptraceOptClone   = 0x8
	ptraceOptExec    = 0x10
	ptraceOptExit    = 0x40
	ptraceOptSeccomp = 0x80
	ptraceExitKill   = 0x100000
	ptraceEventStop  = 128

	reqSyscallInfo = 0x420e
	reqGetSigmask  = 0x420a
	reqSetSigmask  = 0x420b
	reqPeekSiginfo = 0x4209
	reqListen      = 0x4208
	peekShared     = 1

	ntX86XState = 0x202
)

// launcherOptions are those of the launcher until its execve: its runtime
// makes threads of no interest.
const launcherOptions = ptraceSysGood | ptraceOptExec | ptraceOptExit

// guestOptions are those of the recorded program.
const guestOptions = launcherOptions | ptraceOptFork | ptraceOptVfork | ptraceOptClone

// ptraceRaw makes one ptrace call. Errors are unix.Errno. What addr and data point
// to must not move until the kernel has stored there: a Go stack does when it
// grows, so that the directive has the compiler put it on the heap.
//
//go:uintptrescapes
func ptraceRaw(req, pid int, addr, data uintptr) error {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(req), uintptr(pid), addr, data, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func ptraceSeize(pid int, options uintptr) error {
	return ptraceRaw(unix.PTRACE_SEIZE, pid, 0, options)
}

func ptraceSetOptions(pid int, options uintptr) error {
	return ptraceRaw(unix.PTRACE_SETOPTIONS, pid, 0, options)
}

func getRegs(pid int, r *unix.PtraceRegs) error {
	return ptraceRaw(unix.PTRACE_GETREGS, pid, 0, uintptr(unsafe.Pointer(r)))
}

func setRegs(pid int, r *unix.PtraceRegs) error {
	return ptraceRaw(unix.PTRACE_SETREGS, pid, 0, uintptr(unsafe.Pointer(r)))
}

// eventMsg returns the message of the event stop pid is in.
func eventMsg(pid int) (uint64, error) {
	var v uint64
	err := ptraceRaw(unix.PTRACE_GETEVENTMSG, pid, 0, uintptr(unsafe.Pointer(&v)))
	return v, err
}

func getSigmask(pid int) (uint64, error) {
	var v uint64
	err := ptraceRaw(reqGetSigmask, pid, 8, uintptr(unsafe.Pointer(&v)))
	return v, err
}

func setSigmask(pid int, mask uint64) error {
	return ptraceRaw(reqSetSigmask, pid, 8, uintptr(unsafe.Pointer(&mask)))
}

// siginfo is the kernel's siginfo_t, 128 bytes.
type siginfo [128]byte

func (s *siginfo) signo() int32 { return int32(le32(s[0:])) }
func (s *siginfo) code() int32  { return int32(le32(s[8:])) }
func (s *siginfo) pid() int32   { return int32(le32(s[16:])) }
func (s *siginfo) addr() uint64 { return le64(s[16:]) }

func getSiginfo(pid int, s *siginfo) error {
	return ptraceRaw(unix.PTRACE_GETSIGINFO, pid, 0, uintptr(unsafe.Pointer(s)))
}

func setSiginfo(pid int, s *siginfo) error {
	return ptraceRaw(unix.PTRACE_SETSIGINFO, pid, 0, uintptr(unsafe.Pointer(s)))
}

// peekPending adds to set the signals in the thread's queue, or with shared in
// the process's: bit n-1 is signal n.
func peekPending(pid int, shared bool) uint64 {
	var set uint64
	var buf [8]siginfo
	args := struct {
		off   uint64
		flags uint32
		nr    int32
	}{nr: int32(len(buf))}
	if shared {
		args.flags = peekShared
	}
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_PTRACE, reqPeekSiginfo, uintptr(pid),
			uintptr(unsafe.Pointer(&args)), uintptr(unsafe.Pointer(&buf)), 0, 0)
		if e != 0 || n == 0 {
			return set
		}
		for i := range buf[:n] {
			if s := buf[i].signo(); s >= 1 && s <= 64 {
				set |= 1 << (s - 1)
			}
		}
		if int(n) < len(buf) {
			return set
		}
		args.off += uint64(n)
	}
}

// xstateMax bounds the XSAVE image: AMX included it is about 11 KiB.
const xstateMax = 16 << 10

// Where XSTATE_BV stands in an XSAVE image, and its bit of the XMM registers
// (SDM vol. 1, 13.4.2).
const (
	xstateBV  = 512
	xstateSSE = 1 << 1
)

// isIntel says whether this CPU keeps XINUSE apart from the values.
var isIntel = sync.OnceValue(func() bool {
	_, b, c, d := cpuid(0, 0)
	return b == 0x756e6547 && d == 0x49656e69 && c == 0x6c65746e // GenuineIntel
})

// getXState returns a copy of the XSAVE image in the standard format.
//
// Intel's CPUs have a bit that says whether the XMM registers are in use, which
// XSAVEC shows to programs. The kernel clears it for a new image and for a
// signal handler, and under a hypervisor any exit to it may set it again. It is
// set here, with the registers' values as they are, so that it cannot change
// behind the recording's back.
func getXState(pid int) ([]byte, error) {
	var buf [xstateMax]byte
	iov := unix.Iovec{Base: &buf[0], Len: uint64(len(buf))}
	if err := ptraceRaw(unix.PTRACE_GETREGSET, pid, ntX86XState, uintptr(unsafe.Pointer(&iov))); err != nil {
		return nil, err
	}
	img := append([]byte(nil), buf[:iov.Len]...)
	if isIntel() && len(img) > xstateBV && img[xstateBV]&xstateSSE == 0 {
		img[xstateBV] |= xstateSSE
		iov = unix.Iovec{Base: &img[0], Len: uint64(len(img))}
		if err := ptraceRaw(unix.PTRACE_SETREGSET, pid, ntX86XState, uintptr(unsafe.Pointer(&iov))); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// waitPID waits for pid to change state, whatever kind of child it is.
// It blocks.
func waitPID(pid int, options int) (unix.WaitStatus, error) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, options|unix.WALL, nil)
		if err != unix.EINTR {
			return ws, err
		}
	}
}

// resumePID resumes pid, which is at a stop, with request req, and waits for
// its next one. A program killed at the stop may by now be at
// PTRACE_EVENT_EXIT, where the request would let it end unseen: then that is
// the next stop, and nothing is resumed.
func resumePID(req, pid int, sig uintptr) (unix.WaitStatus, error) {
	if ws, ok := pollPID(pid); ok {
		return ws, nil
	}
	if err := ptraceRaw(req, pid, 0, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, err
	}
	// ESRCH: killed, and on its way to that stop. The wait tells.
	return waitPID(pid, 0)
}

// pollPID returns the change of state that pid waits to have collected, if any.
func pollPID(pid int) (unix.WaitStatus, bool) {
	var ws int32
	got, _, _ := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&ws)), unix.WNOHANG|unix.WALL, 0, 0, 0)
	return unix.WaitStatus(ws), int(got) == pid
}

// syscallOp returns 1 at a system call's entry, 2 at its exit, 0 elsewhere
// (PTRACE_GET_SYSCALL_INFO).
func syscallOp(pid int) int {
	var buf [88]byte
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, reqSyscallInfo, uintptr(pid),
		uintptr(len(buf)), uintptr(unsafe.Pointer(&buf)), 0, 0)
	if e != 0 {
		return 0
	}
	return int(buf[0])
}

// preadPlain reads at an offset with one raw call; it is for /proc files of
// the guest, whose offsets may exceed the range of int64.
func pread(fd int, b []byte, off uint64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, _, e := unix.Syscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(off), 0, 0)
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

func pwrite(fd int, b []byte, off uint64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, _, e := unix.Syscall6(unix.SYS_PWRITE64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(off), 0, 0)
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// u64s views a byte buffer, aligned by construction, as words.
func u64s(b []uint64) []byte {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&b[0])), len(b)*8)
}

// scanArg is struct pm_scan_arg of include/uapi/linux/fs.h.
type scanArg struct {
	size, flags, start, end, walkEnd uint64
	vec                              *pageRegion
	vecLen, maxPages                 uint64
	inverted, mask, anyOf, ret       uint64
}

// pageRegion is struct page_region.
type pageRegion struct{ start, end, _ uint64 } // and the categories

const (
	pagemapScan   = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

// scanRegions fills vec with the runs of present or swapped pages of
// [start,end) and returns how many, and where the walk stopped
// (PAGEMAP_SCAN, Linux 6.7).
func scanRegions(fd int, start, end uint64, vec []pageRegion) (int, uint64, error) {
	a := scanArg{
		start: start, end: end, vec: &vec[0], vecLen: uint64(len(vec)),
		anyOf: pageIsPresent | pageIsSwapped, ret: pageIsPresent | pageIsSwapped,
	}
	a.size = uint64(unsafe.Sizeof(a))
	n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan, uintptr(unsafe.Pointer(&a)))
	if e != 0 {
		return 0, 0, e
	}
	return int(n), a.walkEnd, nil
}

// rdtsc and cpuid are in cpu_amd64.s.
func rdtsc() uint64
func cpuid(leaf, sub uint32) (a, b, c, d uint32)
func xgetbv() uint64
func rdtscpAux() uint32
func getcpuRaw(cpu *uint32) error {
	_, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(cpu)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func le32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(le32(b)) | uint64(le32(b[4:]))<<32
}

// regsOf converts the kernel's register file to the recording's.
func regsOf(r *unix.PtraceRegs) checkpoint.Regs {
	return checkpoint.Regs{
		R: [16]uint64{
			r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi,
			r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15,
		},
		RIP: r.Rip, RFLAGS: r.Eflags, FSBase: r.Fs_base, GSBase: r.Gs_base,
		CS: uint16(r.Cs), SS: uint16(r.Ss), DS: uint16(r.Ds), ES: uint16(r.Es), FS: uint16(r.Fs), GS: uint16(r.Gs),
	}
}
