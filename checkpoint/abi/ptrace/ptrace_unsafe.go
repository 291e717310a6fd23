//go:build linux && amd64

package ptrace

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests of ptrace(2) as functions, and the calls of wait4(2), pread(2) and
// pwrite(2) that a tracer needs besides. They hand addresses of Go memory to the kernel,
// so all use of package unsafe is here. Numbers, types and what needs no call are in
// requests.go.

// raw makes one ptrace call. Errors are unix.Errno. What addr and data point to must not
// move until the kernel has stored there: a Go stack does when it grows, so that
// the directive has the compiler put it on the heap.
//
//go:uintptrescapes
func raw(req, tid int, addr, data uintptr) error {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(req), uintptr(tid), addr, data, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// Seize attaches to a thread that runs, without stopping it.
func Seize(tid int, options uintptr) error { return raw(unix.PTRACE_SEIZE, tid, 0, options) }

// SetOptions sets the options of a stopped thread.
func SetOptions(tid int, options uintptr) error {
	return raw(unix.PTRACE_SETOPTIONS, tid, 0, options)
}

// Interrupt has a thread that runs, or that will, stop with EventStop.
func Interrupt(tid int) error { return raw(unix.PTRACE_INTERRUPT, tid, 0, 0) }

// Resume lets a stopped thread go on, with a signal unless that is 0.
func Resume(tid int, how Request, sig int) error { return raw(int(how), tid, 0, uintptr(sig)) }

// GetRegs reads the general registers of a stopped thread.
func GetRegs(tid int, r *Regs) error {
	return raw(unix.PTRACE_GETREGS, tid, 0, uintptr(unsafe.Pointer(r)))
}

// SetRegs sets the general registers of a stopped thread.
func SetRegs(tid int, r *Regs) error {
	return raw(unix.PTRACE_SETREGS, tid, 0, uintptr(unsafe.Pointer(r)))
}

// GetXState reads the XSAVE image, in the standard format, into b and returns its length;
// XStateMax bytes are enough.
func GetXState(tid int, b []byte) (int, error) {
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	err := raw(unix.PTRACE_GETREGSET, tid, ntX86XState, uintptr(unsafe.Pointer(&iov)))
	return int(iov.Len), err
}

// SetXState sets the extended state from an XSAVE image.
func SetXState(tid int, b []byte) error {
	iov := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	return raw(unix.PTRACE_SETREGSET, tid, ntX86XState, uintptr(unsafe.Pointer(&iov)))
}

// EventMessage returns the message of the stop for event (PTRACE_EVENT_...) that a thread is in. One
// that was killed there is at PTRACE_EVENT_EXIT by now, with its exit status for a message, or on
// its way: then the error is ESRCH, as of any request to a thread that is not stopped.
func EventMessage(tid, event int) (uint64, error) {
	var v uint64
	if err := raw(unix.PTRACE_GETEVENTMSG, tid, 0, uintptr(unsafe.Pointer(&v))); err != nil {
		return 0, err
	}
	var si Siginfo
	if err := siginfo(tid, &si); err != nil {
		return 0, err
	}
	if si.Code() != codeOf(event) {
		return 0, unix.ESRCH
	}
	return v, nil
}

// codeOf is si_code of the stop for an event (man 2 ptrace).
func codeOf(event int) int32 { return int32(unix.SIGTRAP) | int32(event)<<8 }

// GetSigmask returns the blocked signals of a stopped thread: bit n-1 is signal n.
func GetSigmask(tid int) (uint64, error) {
	var v uint64
	err := raw(reqGetSigmask, tid, 8, uintptr(unsafe.Pointer(&v)))
	return v, err
}

// SetSigmask sets the blocked signals of a stopped thread.
func SetSigmask(tid int, mask uint64) error {
	return raw(reqSetSigmask, tid, 8, uintptr(unsafe.Pointer(&mask)))
}

// GetSiginfo reads what came with the signal of a signal-delivery-stop. A thread that was killed there may be at PTRACE_EVENT_EXIT by
// now, whose code is not the signal's: the error is ESRCH, as on its way there.
func GetSiginfo(tid int, s *Siginfo) error {
	err := siginfo(tid, s)
	if err == nil && s.Signo() == int32(unix.SIGTRAP) && s.Code() == codeOf(unix.PTRACE_EVENT_EXIT) {
		return unix.ESRCH
	}
	return err
}

func siginfo(tid int, s *Siginfo) error {
	return raw(unix.PTRACE_GETSIGINFO, tid, 0, uintptr(unsafe.Pointer(s)))
}

// SetSiginfo replaces it.
func SetSiginfo(tid int, s *Siginfo) error {
	return raw(unix.PTRACE_SETSIGINFO, tid, 0, uintptr(unsafe.Pointer(s)))
}

// Queue sends a signal to a thread with what comes with it (man 2 rt_tgsigqueueinfo). For signals that the kernel, kill(2)
// or tgkill(2) has sent it fails with EPERM.
func Queue(pid, tid int, s *Siginfo) error {
	_, _, e := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(tid), uintptr(s.Signo()), uintptr(unsafe.Pointer(s)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// Pending returns the signals in the thread's own queue, or with shared in its
// process's, blocked or not: bit n-1 is signal n.
func Pending(tid int, shared bool) uint64 {
	var set uint64
	eachPending(tid, shared, func(s *Siginfo) {
		if n := s.Signo(); n >= 1 && n <= 64 {
			set |= 1 << (n - 1)
		}
	})
	return set
}

// PendingDispatch reports whether the thread has a call that system call dispatch has not let through, and
// has yet to stop for it (SetDispatch).
func PendingDispatch(tid int) (pending bool) {
	eachPending(tid, false, func(s *Siginfo) {
		pending = pending || s.Signo() == int32(unix.SIGSYS) && s.Code() == UserDispatch
	})
	return pending
}

// eachPending calls f for each signal in a queue. f must not keep what it gets.
func eachPending(tid int, shared bool, f func(*Siginfo)) {
	var buf [8]Siginfo
	args := struct {
		off   uint64
		flags uint32
		nr    int32
	}{nr: int32(len(buf))}
	if shared {
		args.flags = peekShared
	}
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_PTRACE, reqPeekSiginfo, uintptr(tid),
			uintptr(unsafe.Pointer(&args)), uintptr(unsafe.Pointer(&buf)), 0, 0)
		if e != 0 || n == 0 {
			return
		}
		for i := range buf[:n] {
			f(&buf[i])
		}
		if int(n) < len(buf) {
			return
		}
		args.off += uint64(n)
	}
}

// SetDispatch has a stopped thread stop with SIGSYS at each system call whose return address
// is not in [from,from+n), before the call is made; with on false it takes that back. The registers
// are those behind the SYSCALL instruction, but for RAX, which has the call's number. Linux
// has it since 6.4 (PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG); execve ends it, and children have
// it not.
func SetDispatch(tid int, on bool, from, n uint64) error {
	var d Dispatch
	if on {
		d.mode, d.offset, d.length = 1, from, n
	}
	return raw(reqSetDispatch, tid, unsafe.Sizeof(d), uintptr(unsafe.Pointer(&d)))
}

// Dispatches reports whether a stopped thread has system calls dispatched to a handler of its own
// (PR_SET_SYSCALL_USER_DISPATCH). Kernels before 6.4 cannot tell: then it is false.
func Dispatches(tid int) bool {
	d, err := GetDispatch(tid)
	return err == nil && d.On()
}

// GetDispatch returns which system calls of a stopped thread are dispatched. Kernels before 6.4 cannot tell.
func GetDispatch(tid int) (Dispatch, error) {
	c := new(Dispatch)
	err := raw(reqGetDispatch, tid, unsafe.Sizeof(*c), uintptr(unsafe.Pointer(c)))
	return *c, err
}

// GetRseq returns where a stopped thread has registered its struct rseq.
func GetRseq(tid int) (Rseq, error) {
	var c Rseq
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, reqGetRseq, uintptr(tid), unsafe.Sizeof(c), uintptr(unsafe.Pointer(&c)), 0, 0)
	if e != 0 {
		return Rseq{}, e
	}
	return c, nil
}

// RobustList returns the address of a thread's struct robust_list_head (man 2 get_robust_list).
func RobustList(tid int) (uint64, error) {
	var head, size uint64
	_, _, e := unix.RawSyscall(unix.SYS_GET_ROBUST_LIST, uintptr(tid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
	if e != 0 {
		return 0, e
	}
	return head, nil
}

// The places of a thread at a stop, as SyscallOp returns them
// (PTRACE_SYSCALL_INFO_ENTRY and _EXIT).
const (
	AtEntry = 1
	AtExit  = 2
)

// SyscallOp returns AtEntry at a system call's entry, AtExit at its exit, and something
// else elsewhere (PTRACE_GET_SYSCALL_INFO).
func SyscallOp(tid int) int {
	var buf [88]byte
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, reqSyscallInfo, uintptr(tid),
		uintptr(len(buf)), uintptr(unsafe.Pointer(&buf)), 0, 0)
	if e != 0 {
		return 0
	}
	return int(buf[0])
}

// Wait waits for a child to change state, whatever kind of child it is. It blocks.
func Wait(pid, options int) (unix.WaitStatus, error) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, options|unix.WALL, nil)
		if err != unix.EINTR {
			return ws, err
		}
	}
}

// WaitAny waits for any thread that the calling thread traces to change state, and returns
// which. Children that it does not trace keep theirs for whoever waits for them. It
// blocks, unless options has unix.WNOHANG: then 0 says that none has changed. unix.ECHILD
// says that nothing is traced.
func WaitAny(options int) (int, unix.WaitStatus, error) {
	// Tracees are always waited for. __WCLONE leaves out children that send SIGCHLD, as all
	// have that os/exec starts, and __WNOTHREAD what other threads trace (linux kernel/exit.c,
	// eligible_child).
	var ws unix.WaitStatus
	for {
		tid, err := unix.Wait4(-1, &ws, options|unix.WCLONE|unix.WNOTHREAD, nil)
		if err != unix.EINTR {
			return tid, ws, err
		}
	}
}

// WaitAnyOnce is WaitAny that returns 0 when a signal whose handler has no SA_RESTART ends it.
func WaitAnyOnce() (int, unix.WaitStatus, error) {
	var ws unix.WaitStatus
	tid, err := unix.Wait4(-1, &ws, unix.WCLONE|unix.WNOTHREAD, nil)
	if err == unix.EINTR {
		return 0, 0, nil
	}
	return tid, ws, err
}

// WaitOnce is Wait for one thread, likewise.
func WaitOnce(tid int) (int, unix.WaitStatus, error) {
	var ws unix.WaitStatus
	got, err := unix.Wait4(tid, &ws, unix.WALL, nil)
	if err == unix.EINTR {
		return 0, 0, nil
	}
	return got, ws, err
}

// WaitStep is Wait for a thread that takes microseconds, such as one that executes one
// instruction: Go's scheduler is not told.
func WaitStep(tid int) (unix.WaitStatus, error) {
	var ws int32
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(tid), uintptr(unsafe.Pointer(&ws)), unix.WALL, 0, 0, 0)
		switch e {
		case 0:
			return unix.WaitStatus(ws), nil
		case unix.EINTR:
		default:
			return 0, e
		}
	}
}

// Poll returns the change of state that a thread waits to have collected, if any.
func Poll(tid int) (unix.WaitStatus, bool) {
	var ws int32
	got, _, _ := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(tid), uintptr(unsafe.Pointer(&ws)), unix.WNOHANG|unix.WALL, 0, 0, 0)
	return unix.WaitStatus(ws), int(got) == tid
}

// ReadMem reads at an address from a descriptor of /proc/PID/mem, or at an offset from
// another file of /proc: both may exceed the range of int64. It returns how many bytes
// there were before the first that cannot be read.
func ReadMem(fd int, b []byte, addr uint64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, _, e := unix.Syscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(addr), 0, 0)
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// WriteMem writes at an address of /proc/PID/mem, whatever the protection there.
func WriteMem(fd int, b []byte, addr uint64) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, _, e := unix.Syscall6(unix.SYS_PWRITE64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(addr), 0, 0)
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}
