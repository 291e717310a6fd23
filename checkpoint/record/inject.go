//go:build linux && amd64

package record

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Injection makes a stopped program execute system calls for the recorder, behind the end
// of its own vdso (callSite), which stays mapped though its address is hidden from the program.

// injector is a program borrowed for calls; end gives it back unchanged.
type injector struct {
	pid   int // of the process
	tid   int
	site  uint64
	saved ptrace.Regs
	mask  uint64
	child int   // of the last call, when it made one
	stops []int // stop signals that came in between; sent again at the end
	undo  *undo // what the guardian knows of the thread, nil for none
}

// borrow prepares a thread of process pid, which is at a stop where nothing of its own call is
// pending: a system call's exit, a signal, or a new child's first stop. u is what the guardian knows of it, nil for nothing.
func borrow(pid, tid int, site uint64, u *undo) (*injector, error) {
	in := &injector{pid: pid, tid: tid, site: site, undo: u}
	if err := ptrace.GetRegs(tid, &in.saved); err != nil {
		return nil, err
	}
	var err error
	if in.mask, err = ptrace.GetSigmask(tid); err != nil {
		return nil, err
	}
	u.lend(maskBorrowed, &in.saved, in.mask)
	return in, ptrace.SetSigmask(tid, ^uint64(0))
}

// do makes one system call and returns its result, a negated errno on failure.
func (in *injector) do(nr int64, args ...uint64) (int64, error) {
	r := in.saved
	r.Rip, r.Rax, r.Orig_rax = in.site, uint64(nr), ^uint64(0)
	for i, p := range []*uint64{&r.Rdi, &r.Rsi, &r.Rdx, &r.R10, &r.R8, &r.R9} {
		*p = 0
		if i < len(args) {
			*p = args[i]
		}
	}
	r.Eflags &^= 0x100
	if nr == unix.SYS_CLONE && isCallSite(in.site) {
		r.Rip += copies
	}
	if err := ptrace.SetRegs(in.tid, &r); err != nil {
		return 0, err
	}
	if in.child = 0; nr == unix.SYS_CLONE {
		in.undo.copy()
	}
	for entered := false; ; {
		if err := in.toSyscallStop(); err != nil {
			return 0, fmt.Errorf("injected call %d: %w", nr, err)
		}
		switch ptrace.SyscallOp(in.tid) {
		case 1:
			entered = true
		case 2:
			if entered {
				err := ptrace.GetRegs(in.tid, &r)
				return int64(r.Rax), err
			}
		}
	}
}

// toSyscallStop runs on to the next system call stop.
func (in *injector) toSyscallStop() error {
	for {
		ws, err := in.run()
		switch {
		case err != nil:
			return err
		case !ws.Stopped():
			return &goneError{ws}
		}
		sig, event := int(ptrace.StopSignal(ws)), ptrace.Event(ws)
		switch event {
		case 0:
			if sig == int(ptrace.SyscallTrap) {
				return nil
			}
			in.stops = append(in.stops, sig)
		case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
			msg, err := ptrace.EventMessage(in.tid, event)
			if err != nil {
				return err
			}
			in.child = int(msg)
		case unix.PTRACE_EVENT_EXIT:
			return &goneError{ws}
		}
	}
}

// run has the thread run to its next stop. One that was killed may be there already.
func (in *injector) run() (unix.WaitStatus, error) {
	if ws, ok := ptrace.Poll(in.tid); ok {
		return ws, nil
	}
	if err := ptrace.Resume(in.tid, ptrace.Syscall, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, err
	}
	return ptrace.Wait(in.tid, 0) // ESRCH: killed, and on its way to that stop
}

// made implements caller.
func (in *injector) made() int { return in.child }

// end restores registers and mask.
func (in *injector) end() error {
	if err := ptrace.SetRegs(in.tid, &in.saved); err != nil {
		return err
	}
	return in.giveBack()
}

// enter implements caller. All signals but SIGSTOP are blocked on the way.
func (in *injector) enter() error {
	if err := ptrace.SetRegs(in.tid, &in.saved); err != nil {
		return err
	}
	for entered := false; !entered; entered = ptrace.SyscallOp(in.tid) == 1 {
		if err := in.toSyscallStop(); err != nil {
			return err
		}
	}
	return in.giveBack()
}

// giveBack restores the mask, and sends the signals again that came in between.
func (in *injector) giveBack() error {
	if err := ptrace.SetSigmask(in.tid, in.mask); err != nil {
		return err
	}
	in.undo.returned()
	for _, s := range in.stops {
		_ = unix.Tgkill(in.pid, in.tid, unix.Signal(s)) // it fails only for one that is gone
	}
	return nil
}

// goneError says that a program ended while it was borrowed.
type goneError struct{ ws unix.WaitStatus }

func (e *goneError) Error() string { return "the program ended" }
func (e *goneError) Is(target error) bool {
	return target == errGone
}

// callOnce injects one call.
func (t *thread) callOnce(nr int64, args ...uint64) (int64, error) {
	in, err := t.session.source.inject(t.proc.pid, t.tid, t.space().site)
	if err != nil {
		return 0, err
	}
	ret, err := in.do(nr, args...)
	if err != nil {
		return ret, err
	}
	return ret, in.end()
}

// withScratch lets f use n bytes of guest memory below the red zone, and
// restores them.
func (t *thread) withScratch(n int, f func(addr uint64) error) error {
	addr := (t.regs.Rsp - 512 - uint64(n)) &^ 15
	old := make([]byte, n)
	if got, err := t.space().mem.readAt(old, addr); err != nil || got != n {
		return errors.New("no room on the stack")
	}
	ferr := f(addr)
	if _, err := t.space().mem.writeAt(old, addr); err != nil {
		return err
	}
	return ferr
}

// findSyscall returns the address of a SYSCALL instruction in [start,end).
func findSyscall(mem memory, start, end uint64) (uint64, error) {
	b := make([]byte, end-start)
	n, err := mem.readAt(b, start)
	if err != nil {
		return 0, err
	}
	for at := 0; ; at++ {
		i := bytes.Index(b[at:n], []byte{0x0f, 0x05})
		if i < 0 {
			return 0, errors.New("no SYSCALL instruction in the vdso")
		}
		if at += i; !isCallSite(start + uint64(at)) {
			return start + uint64(at), nil
		}
	}
}

// pageMask holds the bits of an address that are its place in a page.
const pageMask = uint64(checkpoint.PageSize - 1)
