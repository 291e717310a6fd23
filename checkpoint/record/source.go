//go:build linux && amd64

package record

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// stopSource runs the program's threads, says where they stop, and lets the recorder look
// into them there. ptrace is one; an agent in the process, which logs most calls without
// a stop, can be another, and tests have one without any program. It has what the session,
// group, space, process and thread use, and no more: how a program is started, what
// holds the memory of an interval's start, and what becomes of children is ptrace's alone.
//
// Unless it says otherwise a method is for a thread that is at a stop, on the thread that
// attached to it.
type stopSource interface {
	// resume lets the thread go on, with a signal unless that is 0. It does not wait.
	resume(tid int, how ptrace.Request, sig int) error
	// interrupt has the thread stop with EventStop as soon as it runs.
	interrupt(tid int) error
	// wait waits for the thread's next stop, or for its end. The thread runs.
	wait(tid int) (unix.WaitStatus, error)
	// waitAny waits for the next stop, or end, of any thread, and returns which.
	waitAny() (int, unix.WaitStatus, error)
	// pollAny returns what waitAny would return at once, 0 for nothing.
	pollAny() (int, unix.WaitStatus, error)
	// poll returns the stop or end that wait would return at once, if any.
	poll(tid int) (unix.WaitStatus, bool)
	// message returns what came with the stop for an event: a child's number, or how the thread ends.
	message(tid, event int) (uint64, error)

	getRegs(tid int, r *ptrace.Regs) error
	setRegs(tid int, r *ptrace.Regs) error
	// getXState returns a copy of the XSAVE image in the standard format.
	getXState(tid int) ([]byte, error)

	// Sets of signals have bit n-1 for signal n. pending returns what is queued for the
	// thread and for its process, blocked or not.
	getSigmask(tid int) (uint64, error)
	setSigmask(tid int, mask uint64) error
	pending(tid int) uint64
	// pendingDispatch reports whether it has yet to stop for a call that was not let through.
	pendingDispatch(tid int) bool
	// stopQueued reports whether a SIGSTOP is in the queue of a thread that may run, or the
	// thread is at a stop.
	stopQueued(tid int) bool
	getSiginfo(tid int, si *ptrace.Siginfo) error
	setSiginfo(tid int, si *ptrace.Siginfo) error
	// send sends the thread a signal. Any thread may call it at any time.
	send(pid, tid int, sig unix.Signal) error

	// dispatch has the thread stop with SIGSYS at calls, but those that return into [from,from+n);
	// with on false no more.
	dispatch(tid int, on bool, from, n uint64) error

	// inject borrows the thread for system calls, which it makes at site.
	inject(pid, tid int, site uint64) (caller, error)
	// open opens the memory of a process.
	open(pid int) (memory, mmInfo, error)
}

// memory is the bytes of an address space.
type memory interface {
	// readAt and writeAt return how many bytes there were before the first that is not
	// mapped. Protection does not count.
	readAt(b []byte, addr uint64) (int, error)
	writeAt(b []byte, addr uint64) (int, error)
	close()
}

// mmInfo is what the kernel says of an address space.
type mmInfo interface {
	// mappings lists what is mapped, by address, as a thread that lives sees it. Objects that
	// are new get their numbers.
	mappings(tid int, objects *objectTable) ([]mapping, error)
	// mappingAt returns the one at addr. ENOTTY says that the kernel cannot be asked for one.
	mappingAt(tid int, addr uint64, objects *objectTable) (mapping, error)
	// visit calls f for every page of [start,end) that is present or swapped, with its entry
	// in the form of /proc/PID/pagemap.
	visit(start, end uint64, f func(page, entry uint64)) error
	// visitSince is visit for anonymous memory, of pages that are not among known with an entry
	// that may say no more than that they are there, and this process's alone.
	visitSince(start, end uint64, known ranges, f func(page, entry uint64)) error
	// written returns the pages of watched memory (storeWatch) that the process may have stored in since it was asked
	// last. EPERM says that not all of [start,end) is watched.
	written(start, end uint64) (ranges, error)
	close()
}

// caller is a thread that is borrowed for system calls.
type caller interface {
	// do makes one and returns its result, a negated errno on failure.
	do(nr int64, args ...uint64) (int64, error)
	// made returns the child that the last one has made, 0 for none.
	made() int
	// end gives the thread back, unchanged.
	end() error
	// enter gives a thread that stands before a SYSCALL instruction of its own back at the entry of that call.
	enter() error
}

// ptraceSource is the source that ptrace(2) and /proc make.
type ptraceSource struct{ guard *guard }

func (ptraceSource) resume(tid int, how ptrace.Request, sig int) error {
	return ptrace.Resume(tid, how, sig)
}
func (ptraceSource) interrupt(tid int) error                { return ptrace.Interrupt(tid) }
func (ptraceSource) wait(tid int) (unix.WaitStatus, error)  { return ptrace.Wait(tid, 0) }
func (ptraceSource) waitAny() (int, unix.WaitStatus, error) { return ptrace.WaitAny(0) }
func (ptraceSource) pollAny() (int, unix.WaitStatus, error) { return ptrace.WaitAny(unix.WNOHANG) }
func (ptraceSource) poll(tid int) (unix.WaitStatus, bool)   { return ptrace.Poll(tid) }
func (ptraceSource) message(tid, event int) (uint64, error) { return ptrace.EventMessage(tid, event) }

func (ptraceSource) getRegs(tid int, r *ptrace.Regs) error { return ptrace.GetRegs(tid, r) }
func (ptraceSource) setRegs(tid int, r *ptrace.Regs) error { return ptrace.SetRegs(tid, r) }
func (ptraceSource) getXState(tid int) ([]byte, error)     { return getXState(tid) }

func (ptraceSource) getSigmask(tid int) (uint64, error)    { return ptrace.GetSigmask(tid) }
func (ptraceSource) setSigmask(tid int, mask uint64) error { return ptrace.SetSigmask(tid, mask) }
func (ptraceSource) pending(tid int) uint64 {
	return ptrace.Pending(tid, false) | ptrace.Pending(tid, true)
}

func (ptraceSource) pendingDispatch(tid int) bool { return ptrace.PendingDispatch(tid) }

func (ptraceSource) stopQueued(tid int) bool {
	status, err := statusOf(tid)
	return err != nil || strings.HasPrefix(status.Field("State"), "t") || status.Mask("SigPnd")&(1<<(unix.SIGSTOP-1)) != 0
}

func (ptraceSource) getSiginfo(tid int, si *ptrace.Siginfo) error { return ptrace.GetSiginfo(tid, si) }
func (ptraceSource) setSiginfo(tid int, si *ptrace.Siginfo) error { return ptrace.SetSiginfo(tid, si) }
func (ptraceSource) send(pid, tid int, sig unix.Signal) error     { return unix.Tgkill(pid, tid, sig) }

func (ptraceSource) dispatch(tid int, on bool, from, n uint64) error {
	return ptrace.SetDispatch(tid, on, from, n)
}

func (p ptraceSource) inject(pid, tid int, site uint64) (caller, error) {
	return borrow(pid, tid, site, p.guard.of(tid))
}

func (ptraceSource) open(pid int) (memory, mmInfo, error) {
	mem, err := unix.Open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("memory of the program: %w", err)
	}
	tables, err := unix.Open(fmt.Sprintf("/proc/%d/pagemap", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(mem) // nothing was written
		return nil, nil, fmt.Errorf("page map of the program: %w", err)
	}
	return procMem(mem), &procMM{pagemapReader{fd: tables}}, nil
}

// procMM is the mmInfo of /proc/PID.
type procMM struct{ pagemapReader }

func (*procMM) mappings(tid int, objects *objectTable) ([]mapping, error) {
	return readMaps(tid, objects)
}

func (*procMM) mappingAt(tid int, addr uint64, objects *objectTable) (mapping, error) {
	return readMapsAt(tid, addr, objects)
}

// procMem is a descriptor of /proc/PID/mem.
type procMem int

func (m procMem) readAt(b []byte, addr uint64) (int, error)  { return ptrace.ReadMem(int(m), b, addr) }
func (m procMem) writeAt(b []byte, addr uint64) (int, error) { return ptrace.WriteMem(int(m), b, addr) }
func (m procMem) close()                                     { _ = unix.Close(int(m)) } // nothing is buffered
