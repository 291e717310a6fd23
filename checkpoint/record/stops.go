//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// A thread's stops, and which method answers each. What a stop means for the log is not
// here: system calls are in calls.go, signals in signals.go.

// action is what an answered stop wants next.
type action struct {
	req    ptrace.Request  // ptrace request to resume with; 0 is PTRACE_SYSCALL
	sig    int             // signal to deliver
	status unix.WaitStatus // when not 0: the program is already in this next stop
	ended  bool            // status says how it has ended: 0 is exit code 0
	parked bool            // the thread has given up its turn, and goes on when it has it again
}

// comesTo is the action for a thread whose next stop, or end, is ws.
func comesTo(ws unix.WaitStatus) action { return action{status: ws, ended: !ws.Stopped()} }

// callStop is the status of a stop at a call's entry or exit.
const callStop = unix.WaitStatus(ptrace.SyscallTrap)<<8 | 0x7f

// onStop answers a stop, and those that the thread comes to at once, and has the thread go
// on.
func (t *thread) onStop(ws unix.WaitStatus) error {
	t.atSync, t.regsRead = false, false
	t.session.answering = t
	t.noteArrived(ws)
	next, err := t.answer(ws)
	if err != nil {
		if next, err = t.salvage(err); err != nil {
			return err
		}
	}
	if next.status == 0 {
		t.session.relay.looked(t)
	}
	return t.goOn(next)
}

// noteArrived notes for the guardian at which signal's delivery the thread is. Of the calls that are not the agent's to make, which
// are as many as a program makes, the guardian knows without.
func (t *thread) noteArrived(ws unix.WaitStatus) {
	u, sig := t.session.guard.of(t.tid), signalOf(ws)
	if u == nil || sig == 0 || t.agent && unix.Signal(sig) == unix.SIGSYS {
		return
	}
	var si ptrace.Siginfo
	if t.session.source.getSiginfo(t.tid, &si) == nil { // else it is killed, or stopped by job control
		u.arrives(sig, &si)
	}
}

// goOn resumes the thread as its last stop wants, unless it is at the next one already. It
// does not wait.
func (t *thread) goOn(next action) error {
	if next.parked {
		return nil
	}
	if next.status != 0 || next.ended {
		return t.onStop(next.status)
	}
	if t.isDoomed() {
		return nil
	}
	if why := t.mustPass(next); why != 0 {
		if err := t.leaveStub(); err != nil {
			return err
		}
		t.giveUpTurn(next, false, why)
		return t.clearJump()
	}
	user := (next.req == 0 || next.req == ptrace.Syscall) && !t.call.in && !t.call.pending
	req, err := t.request(&next)
	if err != nil {
		if next, err = t.salvage(err); err != nil {
			return err
		}
		return t.goOn(next)
	}
	next.req = req
	if req == ptrace.Listen && !t.call.in && !t.call.pending && !t.group().done {
		if t.parked.xstate, err = t.session.source.getXState(t.tid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	if err := t.stopAgain(); err != nil {
		return err
	}
	ws, stopped, err := t.resume(req, next.sig, user)
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if stopped {
		t.group().timer.leave()
		return t.onStop(ws)
	}
	switch {
	case t.group().done:
	case next.req == ptrace.Listen && !t.session.alone(): // others go on, and may need its turn
		t.giveUpTurn(action{}, true, checkpoint.SchedBlocked)
	case t.group().alone() && t.group().sharers == nil:
	case t.exiting && t.atExitEvent && t.tid == t.proc.pid && t.proc.hasOther(t):
		return t.awaitZombie()
	case t.call.blocks():
		t.giveUpTurn(action{}, true, checkpoint.SchedBlocked)
	}
	return nil
}

// request returns how the thread is to be resumed, and prepares for it.
func (t *thread) request(next *action) (req ptrace.Request, err error) {
	defer func() { t.placing = t.placing && err != nil }()
	ownCode := !t.call.in && !t.call.pending && !t.redo
	if ownCode {
		if err := t.guardTSC(next); err != nil {
			return 0, err
		}
	}
	if t.call.pending {
		if err := t.space().ownCall(t.regs.Rip - syscallInsnLen); err != nil {
			return 0, err
		}
	}
	if t.agentFits(*next) {
		under, err := t.underAgent(next.sig)
		if under || err != nil {
			return ptrace.Cont, err
		}
	} else if ownCode {
		if err := errors.Join(t.leaveStub(), t.codeAlone()); err != nil {
			return 0, err
		}
		if next.sig == 0 && next.req == 0 && !t.group().done {
			if err := t.setHealer(false); err != nil {
				return 0, err
			}
		}
	}
	if next.req == 0 {
		return ptrace.Syscall, nil
	}
	return next.req, nil
}

// resume resumes the thread. user says that it will run its own code, so that the timer may
// interrupt it. A thread that was killed at the stop may by now be at PTRACE_EVENT_EXIT,
// where a request would let it end unseen: then that is its next stop, and it is not resumed.
func (t *thread) resume(req ptrace.Request, sig int, user bool) (ws unix.WaitStatus, stopped bool, err error) {
	t.space().outsideFresh = false
	t.session.guard.of(t.tid).resumed(req == ptrace.Listen, t.call.in)
	t.group().boundTurn()
	t.group().timer.enter(t, user)
	if ws, stopped := t.session.source.poll(t.tid); stopped {
		return ws, true, nil
	}
	if req != ptrace.Listen { // from which it comes without any signal
		t.session.relay.runs(t)
	}
	if req != ptrace.Listen {
		t.aside = aside{} // it goes on from there
	}
	err = t.session.source.resume(t.tid, req, sig)
	t.session.guard.of(t.tid).delivered()
	if req == ptrace.Listen && errors.Is(err, unix.EIO) {
		// A call was injected since it stopped, as where an interval has begun: it is at that call's end. It comes to
		// the stop again before it executes anything.
		if err = t.session.source.interrupt(t.tid); err == nil {
			err = t.session.source.resume(t.tid, ptrace.Syscall, 0)
		}
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, false, err
	}
	return 0, false, nil // ESRCH: killed, and on its way to that stop
}

// runTo has the thread, and no other, run to its next stop.
func (t *thread) runTo(req ptrace.Request, sig int) (unix.WaitStatus, error) {
	ws, stopped, err := t.resume(req, sig, false)
	if err == nil && !stopped {
		ws, err = t.session.source.wait(t.tid)
	}
	t.group().timer.leave()
	return ws, err
}

// answer handles one stop.
func (t *thread) answer(ws unix.WaitStatus) (action, error) {
	switch {
	case ws.Exited() || ws.Signaled():
		t.session.drop(t.tid)
		t.session.relay.ended(t.tid)
		if !t.ended && (t.group().shares() || t.tid != t.proc.pid) {
			t.onThreadGone(ws)
		}
		if t.tid == t.proc.pid { // its end is the process's
			t.proc.onEnd(ws)
		}
		return action{}, errGone
	case !ws.Stopped():
		return action{}, fmt.Errorf("unexpected wait status %#x", uint32(ws))
	}
	switch {
	case t.agent:
		if t.dispatchComes(ws) {
			ws, err := t.takeDispatch()
			return comesTo(ws), err
		}
		if next, done, err := t.fromAgent(ws); done || err != nil {
			return next, err
		}
	case t.redo:
		if err := t.notRedone(ws); err != nil {
			return action{}, err
		}
	}
	if t.leaves {
		return t.leave(ws)
	}
	sig := int(ptrace.StopSignal(ws))
	switch event := ptrace.Event(ws); event {
	case 0:
		if sig == int(ptrace.SyscallTrap) {
			return t.onSyscallStop()
		}
		return t.onSignal(sig)
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		return action{}, t.onChild(event)
	case unix.PTRACE_EVENT_EXEC:
		return action{}, t.onExec()
	case unix.PTRACE_EVENT_EXIT:
		t.dead = true
		return t.onExitEvent()
	case unix.PTRACE_EVENT_SECCOMP:
		return t.onSeccomp()
	case ptrace.EventStop:
		return t.onGroupStop(sig)
	default:
		return action{}, nil
	}
}

// onSyscallStop is a system call's entry or its exit.
func (t *thread) onSyscallStop() (action, error) {
	if err := t.readRegs(); err != nil {
		return action{}, err
	}
	if t.group().done {
		return action{}, nil
	}
	if t.starting {
		t.starting = false
		// At the entry of a call of its own, which may be made by the same instruction, RAX is
		// -ENOSYS (linux arch/x86/entry).
		if t.regs.Rip == t.parked.regs.RIP && t.regs.Rax == 0 {
			return action{}, nil // the exit of the clone that made it
		}
	}
	switch {
	case t.call.entering:
		return t.enter()
	case t.call.in:
		return t.atCallExit()
	}
	return t.onEntry()
}

// onGroupStop handles PTRACE_EVENT_STOP: a stop by job control, or its end.
func (t *thread) onGroupStop(sig int) (action, error) {
	switch unix.Signal(sig) {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		if unix.Signal(sig) != unix.SIGSTOP && t.proc == t.session.first && t.session.attach == nil { // a child is its shell's job
			stopWithJob()
		}
		return action{req: ptrace.Listen}, t.endBeforeStop()
	default:
		return action{}, nil
	}
}

// endBeforeStop ends the interval where job control stops the thread in its own code, and others
// may run before it goes on: no event has a place there.
func (t *thread) endBeforeStop() error {
	g := t.group()
	if g.done || g.cur == nil || t.call.in || t.call.pending || t.session.alone() {
		return nil
	}
	if err := t.readRegs(); err != nil {
		return err
	}
	return t.endForced()
}

// stopWithJob stops the recorder too, so that the shell sees its job stopped.
// It returns when the job is continued.
func stopWithJob() {
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // one may always stop oneself
}

// salvage is for a program that was killed while the recorder had it do something or looked at it:
// at PTRACE_EVENT_EXIT its memory is still there. Other errors are returned.
func (t *thread) salvage(err error) (action, error) {
	ws, killed := t.killed(err)
	if !killed {
		return action{}, err
	}
	if !isDying(ws) || t.group().done {
		return comesTo(ws), nil
	}
	if err := t.meetUnseen(); err != nil {
		return action{}, err
	}
	if err := t.killedUnderAgent(ws); err != nil {
		return action{}, err
	}
	return t.onKilled()
}

// killed says whether an error comes from the program's end, and then at what
// stop, or how, it ended.
func (t *thread) killed(err error) (unix.WaitStatus, bool) {
	var gone *goneError
	if errors.As(err, &gone) {
		return gone.ws, true
	}
	if ends(err) {
		return 0, false // its end was answered, or it was let go and is its parent's to wait for
	}
	if errors.Is(err, unix.ESRCH) {
		// On its way there: requests find no stopped program.
		ws, werr := t.session.source.wait(t.tid)
		return ws, werr == nil
	}
	return t.session.source.poll(t.tid)
}

// onForced is the stop that the timer has asked for. wait says that it was asked for only to end a call in which the thread
// waits: where that had ended by itself there is nothing to do.
func (t *thread) onForced(wait bool) (action, error) {
	t.recheck()
	if t.sig.draining || t.group().done {
		t.sig.draining = false
		return action{}, nil
	}
	if err := t.readRegs(); err != nil {
		return action{}, err
	}
	if t.endedForNothing() {
		return action{}, t.again() // the timer's signal alone has ended it, under the agent
	}
	if wait || t.signalDue() {
		return action{}, nil // a signal comes first; the timer asks again
	}
	t.sig.syncPending = false
	if t.group().forcedAt = append(t.group().forcedAt, time.Now()); len(t.group().forcedAt) > forcedRate {
		t.group().forcedAt = t.group().forcedAt[1:]
	}
	t.sig.atExit, t.atSync = t.regs, true
	if t.group().othersReady() {
		return t.pauseForced()
	}
	if err := t.group().cut(t, intervalEnd{kind: checkpoint.EndForced, forced: true}); err != nil {
		return action{}, err
	}
	t.sendHeld()
	return action{}, nil
}
