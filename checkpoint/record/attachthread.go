//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// What is done for each thread of a program that is attached to: it leaves the kernel, its
// instructions are made to fault, and what the kernel alone knows of it is asked for.

// prepareAttached prepares the thread, which is at a stop. Afterwards it is in its own code.
func (t *thread) prepareAttached() error {
	if err := t.refreshMask(); err != nil {
		return err
	}
	if err := t.dropRseq(); err != nil {
		return err
	}
	if err := t.arm(); err != nil {
		return err
	}
	if err := t.mapScratch(); err != nil {
		return err
	}
	if err := t.askAddresses(); err != nil {
		return err
	}
	if err := t.endInterrupted(); err != nil {
		return err
	}
	t.parked.regs = t.replayed()
	t.sig.atExit = t.regs
	t.sig.syncPending = t.pending()&^t.sig.mask != 0
	if !t.sig.syncPending {
		t.sendHeld()
	}
	return nil
}

// leaveKernel brings a thread that was stopped in a call behind it, or, where the stop has ended
// the call or its handling of a signal is to come, before the instruction that makes it again. What
// has a time-out goes on by restart_syscall(2), as after a signal that nobody handles; but for poll(2), see pollsAnew.
func (t *thread) leaveKernel() error {
	ret := int64(t.regs.Rax)
	if int64(t.regs.Orig_rax) < 0 {
		return nil
	}
	t.interrupted = interruptedCall{}
	if isRestart(ret) {
		t.interrupted = interruptedCall{ret, t.regs.Rip}
	}
	if ret == restartBlock && t.pollsAnew() {
		beforeCall(&t.regs, unix.SYS_POLL)
		return t.setRegs(&t.regs)
	}
	leaveCall(&t.regs, func() bool { return len(t.sig.held) > 0 || t.signalsOwn() })
	return t.setRegs(&t.regs)
}

// pollsAnew reports whether the call that was interrupted is a poll(2) that is to be made anew, and not by restart_syscall(2): that goes on
// with the address that the kernel has, and writes there while another thread has the turn. The time-out, if there is one, begins anew.
func (t *thread) pollsAnew() bool {
	if t.regs.Rsi == 0 || !t.proc.hasOther(t) { // it writes nothing, or nobody runs meanwhile
		return false
	}
	if t.regs.Orig_rax != unix.SYS_RESTART_SYSCALL {
		return t.regs.Orig_rax == unix.SYS_POLL
	}
	const before = 8 // it was restarted already, behind SIGSTOP say: what made it tells which call it is
	code := make([]byte, before)
	return t.space().readMem(t.regs.Rip-syscallInsnLen-before, code) == before && numberLoad(code, unix.SYS_POLL) > 0
}

// leaveCall makes registers those of a thread behind its call, or before it where the stop has ended it. signaled
// reports whether a signal waits for the thread that may end a call.
func leaveCall(r *ptrace.Regs, signaled func() bool) {
	ret, nr := int64(r.Rax), r.Orig_rax
	switch {
	case int64(nr) < 0:
	case ret == restartBlock:
		beforeCall(r, unix.SYS_RESTART_SYSCALL)
	case isRestart(ret), ret == errnoIntr && !signaled():
		beforeCall(r, nr)
	default:
		r.Orig_rax = ^uint64(0)
	}
}

// interruptedCall is a call that the stop has ended and that is to be made again: the kernel's
// restart code, and where it returns to.
type interruptedCall struct {
	code int64
	rip  uint64
}

// signalsOwn reports whether a signal that the thread does not block is queued for it.
func (t *thread) signalsOwn() bool {
	mask, err := t.session.source.getSigmask(t.tid)
	return err == nil && t.pending()&^mask != 0
}

// endInterrupted lets a call that was interrupted fail with EINTR where a signal that waits would
// have it do so: the program counts on that, to end a call in which it would wait for ever. The
// signal comes right behind.
func (t *thread) endInterrupted() error {
	i := t.interrupted
	if i.code == 0 || i.code == restartNoIntr {
		return nil
	}
	due := t.pending()
	for _, h := range t.sig.held {
		due |= 1 << (h.signo - 1)
	}
	due &^= t.sig.mask
	for sig := 1; sig <= 64; sig++ {
		if due>>(sig-1)&1 == 0 {
			continue
		}
		disp, err := t.proc.dispositionOf(sig)
		if err != nil {
			return err
		}
		if disp != dispHandler {
			continue
		}
		act, err := t.askAction(sig)
		if err != nil {
			return err
		}
		const saRestart = 0x10000000 // asm-generic/signal-defs.h
		if i.code == restartSys && act.flags&saRestart != 0 {
			return nil
		}
		eintr := errnoIntr
		t.regs.Rip, t.regs.Rax = i.rip, uint64(eintr)
		return t.setRegs(&t.regs)
	}
	return nil
}

// stopAgain has a thread that job control had stopped come back to that stop when it is resumed
// for the first time.
func (t *thread) stopAgain() error {
	if !t.jobStopped {
		return nil
	}
	t.jobStopped = false
	return t.session.source.interrupt(t.tid)
}

// withRoom lets f use n bytes of the program's memory, which the program does not use.
func (t *thread) withRoom(n int, f func(addr uint64) error) error {
	if t.scratch.Len != 0 {
		return f(t.scratch.Addr)
	}
	return t.withScratch(n, f)
}

// askAddresses asks for the addresses at which the kernel writes when the thread ends.
func (t *thread) askAddresses() error {
	const getTIDAddress = 40 // PR_GET_TID_ADDRESS of linux/prctl.h
	head, err := ptrace.RobustList(t.tid)
	if err != nil {
		return err
	}
	t.robust = head
	return t.withRoom(8, func(addr uint64) error {
		ret, err := t.callOnce(unix.SYS_PRCTL, getTIDAddress, addr)
		if err != nil {
			return err
		}
		var b [8]byte
		if ret != 0 || t.space().readMem(addr, b[:]) != len(b) {
			t.session.noteOnce("the kernel does not tell where it writes at a thread's end: the ends of threads that were there before may not replay")
			return nil
		}
		t.clearTID = le64(b[:])
		return nil
	})
}

// askAction asks for the program's action for a signal.
func (t *thread) askAction(sig int) (kernelAction, error) {
	var b [32]byte
	err := t.withRoom(len(b), func(addr uint64) error {
		ret, err := t.callOnce(unix.SYS_RT_SIGACTION, uint64(sig), 0, addr, 8)
		if err == nil && (ret != 0 || t.space().readMem(addr, b[:]) != len(b)) {
			err = fmt.Errorf("the action of signal %d cannot be read", sig)
		}
		return err
	})
	return kernelAction{le64(b[0:]), le64(b[8:]), le64(b[16:]), le64(b[24:])}, err
}

// readActions reads the actions that the recorder has a hand in, and what the program itself has
// made to fault, and whether orphans come to it.
func (t *thread) readActions() (err error) {
	if t.proc.segv, err = t.askAction(int(unix.SIGSEGV)); err != nil {
		return err
	}
	if t.proc.sigsys, err = t.askAction(int(unix.SIGSYS)); err != nil {
		return err
	}
	return t.withRoom(4, func(addr uint64) error {
		ret, err := t.callOnce(unix.SYS_PRCTL, prGetTSC, addr)
		var b [4]byte
		if err == nil && ret == 0 && t.space().readMem(addr, b[:]) == len(b) {
			t.proc.trap.ownTSC = le32(b[:]) == prTSCSegv
		}
		if err != nil {
			return err
		}
		ret, err = t.callOnce(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, addr)
		if err == nil && ret == 0 && t.space().readMem(addr, b[:]) == len(b) {
			t.proc.setReaper(le32(b[:]) != 0)
		}
		return err
	})
}

// ignoreAgain has the program ignore a signal that it ignored before, as disp says: the kernel takes that back where it
// forces the signal on a thread.
func (t *thread) ignoreAgain(sig int, disp disposition) error {
	if disp != dispIgnore {
		return nil
	}
	a, err := t.askAction(sig)
	if err != nil || a.handler == sigIgn {
		return err
	}
	a.handler = sigIgn
	return t.setAction(sig, a)
}

// readAuxv reads the auxiliary vector that a process was started with.
func readAuxv(pid int) ([]byte, error) { return os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid)) }

// readForkAdvice reads which mappings a fork leaves out, or empties: the model has it from the
// calls that a recorded program makes, and a running one has made them before.
func (sp *space) readForkAdvice() {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", sp.pid))
	if err != nil {
		return // a kernel without CONFIG_PROC_PAGE_MONITOR, which cannot record anyway
	}
	var start, end uint64
	for line := range strings.Lines(string(b)) {
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok {
			for _, f := range strings.Fields(flags) {
				switch f {
				case "dc":
					sp.maps.advise(start, end, dontFork, 0)
				case "wf":
					sp.maps.advise(start, end, wipeOnFork, 0)
				}
			}
			continue
		}
		var lo, hi uint64
		if n, err := fmt.Sscanf(line, "%x-%x ", &lo, &hi); n == 2 && err == nil {
			start, end = lo, hi
		}
	}
}
