//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// How the program is let go: each thread with its registers, its instructions, its CPUs and
// the signals that were held back for it.

// letProcessGo ends the recording of the thread's process, and of those that share its
// memory: they run on by themselves. The thread is at a stop.
func (t *thread) letProcessGo() error {
	if err := t.group().letGo(t); err != nil {
		return err
	}
	return errDetach
}

// letAllGo lets everything go that is traced, because recording has failed.
func (s *session) letAllGo() error {
	var errs []error
	for g := range s.allGroups(nil) {
		at := s.answering
		if at != nil && at.group() != g {
			at = nil
		}
		errs = append(errs, g.letGo(at))
	}
	s.letUnrecordedGo()
	return errors.Join(append(errs, s.awaitLeaving())...)
}

// allGroups yields each group but one once, those too that come to be meanwhile, by a call that cannot be left halfway.
func (s *session) allGroups(but *group) iter.Seq[*group] {
	return func(yield func(*group) bool) {
		seen := map[*group]bool{but: true}
		for {
			i := slices.IndexFunc(s.groups, func(g *group) bool { return !seen[g] })
			if i < 0 {
				return
			}
			g := s.groups[i]
			seen[g] = true
			if !yield(g) {
				return
			}
		}
	}
}

// letGo restores everything and lets the group's processes go. Of their threads at, which may
// be nil, is at a stop that is being answered; others may be in calls, or run.
func (g *group) letGo(at *thread) error {
	s := g.session
	if at == nil {
		if err := g.finishCall(); err != nil {
			return err
		}
	}
	g.over()
	if g.of.imageBefore != nil { // recording failed while a new image was begun
		if err := g.of.space.needSite(); err != nil {
			s.log.Debug().Err(err).Msg("no place for injected calls")
		}
	}
	list, err := g.bringOut(at)
	if err != nil {
		return err
	}
	if at != nil {
		if at.call.in {
			if err := at.undo(); err != nil {
				return err
			}
			at.call.in = false
		}
		list = append(list, at)
	}
	g.timer.holdUntil(time.Time{})
	if slices.Contains(g.procs, s.first) {
		s.relay.detach()
	}
	if err := g.releaseAll(list); err != nil {
		return err
	}
	g.leaveDetached(nil)
	return nil
}

// letOthersGo lets all go that share the memory of t's process, which dies of a signal. Nothing
// more of the group is recorded.
func (g *group) letOthersGo(t *thread) error {
	list, err := g.bringOut(t)
	if err == nil {
		err = g.releaseAll(list)
	}
	if err != nil {
		return err
	}
	if t.proc != g.session.first && slices.Contains(g.procs, g.session.first) {
		g.session.relay.detach()
	}
	g.leaveDetached(t.proc)
	return nil
}

// bringOut stops the threads of the group but one, out of their calls, and returns them. One that
// waits in vfork(2) for another of them cannot be stopped there: it is let go at its next stop.
func (g *group) bringOut(but *thread) (list []*thread, err error) {
	for _, o := range slices.Clone(g.turns.threads) {
		switch {
		case o == but:
			continue
		case o.inVfork():
			o.leaves = true
			continue
		}
		err := o.leaveCall()
		switch {
		case err == nil:
			list = append(list, o)
		case isGone(err):
			g.session.drop(o.tid)
		default:
			return nil, fmt.Errorf("thread %d: %w", o.tid, err)
		}
	}
	return list, nil
}

// releaseAll lets stopped threads of the group go, once nothing of the recorder's is left in their memory, and each has what is
// its own: the first that runs may send others signals, without end.
func (g *group) releaseAll(list []*thread) error {
	if err := g.heal(list); err != nil && !isGone(err) {
		return err
	}
	for _, t := range list {
		if err := t.giveAll(); err != nil && !isGone(err) {
			return fmt.Errorf("thread %d: %w", t.tid, err)
		}
		g.session.guard.drop(t.tid) // should the recorder be killed now, nothing is to be undone
	}
	for _, t := range list {
		if err := t.session.source.resume(t.tid, ptrace.Detach, 0); err != nil && !isGone(err) {
			return fmt.Errorf("thread %d: %w", t.tid, err)
		}
		g.session.drop(t.tid)
	}
	return nil
}

// leaveDetached takes the processes but one out of the group whose threads were let go.
func (g *group) leaveDetached(but *process) {
	for _, p := range slices.Clone(g.procs) {
		stays := slices.ContainsFunc(g.turns.threads, func(t *thread) bool { return t.proc == p && t.leaves })
		if p != but && !stays {
			p.detached = true
			g.leave(p)
		}
	}
}

// inVfork reports whether the thread waits for a child that shares its memory.
func (t *thread) inVfork() bool {
	if !t.parked.waits || !t.call.in {
		return false
	}
	switch t.call.nr {
	case unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_VFORK:
		return t.taskFlags()&cloneVfork != 0
	}
	return false
}

// leave lets a thread go that could not be stopped before, at the exit of its call.
func (t *thread) leave(ws unix.WaitStatus) (action, error) {
	if ptrace.Event(ws) != 0 || ptrace.StopSignal(ws) != ptrace.SyscallTrap {
		return action{}, nil
	}
	t.leaves, t.parked.waits, t.parked.next = false, false, comesTo(ws)
	err := t.leaveCall()
	if err == nil {
		err = t.release()
	}
	if err != nil {
		return action{}, err
	}
	t.session.drop(t.tid)
	t.group().leaveDetached(nil)
	return action{}, errDetach
}

// halt stops the thread, if it runs, and keeps the stop for leaveCall.
func (t *thread) halt() error {
	has := t.group().turns.has == t
	if !t.parked.waits && !has || t.inVfork() {
		return nil
	}
	if err := t.session.source.interrupt(t.tid); err != nil {
		return err
	}
	ws, err := t.session.source.wait(t.tid)
	if err != nil {
		return err
	}
	if has {
		t.group().turns.has = nil
	}
	if t.agent && t.dispatchComes(ws) {
		if ws, err = t.takeDispatch(); err != nil {
			return err
		}
	}
	if t.agent && ws.Stopped() {
		if ws, err = t.haltFromAgent(ws); err != nil {
			return err
		}
	} else if t.redo && ws.Stopped() {
		if err := t.notRedone(ws); err != nil {
			return err
		}
	}
	if ws.Stopped() && !t.call.in {
		if err := t.readRegs(); err != nil {
			return err
		}
	}
	t.parked.next, t.parked.waits, t.parked.regs = comesTo(ws), false, t.replayed()
	return nil
}

// leaveCall brings a thread whose stop, if it is at one, is not being answered to a stop in its
// own code, and holds back the signal at whose delivery it was. A call in which it waits is ended, as
// the kernel would for a signal that is ignored, and made again. One that ends is let go, with errGone.
func (t *thread) leaveCall() error {
	if err := t.halt(); err != nil {
		return err
	}
	ws := t.parked.next.status
	switch {
	case t.parked.next.ended:
		t.session.noteEnd(t.tid, ws)
		return errGone
	case ws != 0 && ptrace.Event(ws) == unix.PTRACE_EVENT_EXIT:
		return errors.Join(errGone, t.session.source.resume(t.tid, ptrace.Detach, 0))
	}
	if err := t.readRegs(); err != nil {
		return err
	}
	isCall := ws != 0 && ptrace.StopSignal(ws) == ptrace.SyscallTrap
	switch {
	case t.call.in && !t.call.entering:
		if err := t.endCall(); err != nil {
			return err
		}
	case isCall: // at the entry of one
		if err := t.undo(); err != nil {
			return err
		}
	}
	sig := signalOf(ws)
	if ours, _ := t.group().timer.seen(t.tid, unix.Signal(sig)); ours {
		return nil
	}
	if kind, _, _ := t.trappedHere(); sig == 0 && kind != 0 && t.pending()&^t.sig.mask&(1<<(unix.SIGSEGV-1)) != 0 {
		// The stop that was asked for came before the signal for the instruction, which would kill.
		var err error
		if ws, err = t.runTo(ptrace.Syscall, 0); err != nil {
			return err
		}
		if !ws.Stopped() {
			return &goneError{ws}
		}
		sig = signalOf(ws)
	}
	return t.holdBack(sig)
}

// holdBack holds the signal back at whose delivery the thread is, 0 for none, unless it comes from an instruction that
// the thread executes again.
func (t *thread) holdBack(sig int) error {
	again, err := t.faultsAgain(sig)
	var si ptrace.Siginfo
	if sig == 0 || again || err != nil || t.session.source.getSiginfo(t.tid, &si) != nil {
		return err
	}
	if err := t.given(sig, &si); err != nil {
		return err
	}
	t.sig.held = append(t.sig.held, heldSignal{sig, si})
	t.noteHeld()
	return nil
}

// faultsAgain reports whether a signal at whose delivery the thread is comes from an instruction that it executes again when
// it goes on without the signal. One that the recorder has made to fault does not, once the thread has it back.
func (t *thread) faultsAgain(sig int) (bool, error) {
	var si ptrace.Siginfo
	if sig == 0 || t.session.source.getSiginfo(t.tid, &si) != nil || !isFault(sig, &si) || unix.Signal(sig) == unix.SIGTRAP {
		return false, nil
	}
	if err := t.readRegs(); err != nil {
		return false, err
	}
	if unix.Signal(sig) == unix.SIGSEGV && t.atTrapped() {
		return true, t.repairSegv()
	}
	return true, nil
}

// signalOf returns the signal for which a thread has stopped, 0 at a stop of another kind.
func signalOf(ws unix.WaitStatus) int {
	if !ws.Stopped() || ptrace.Event(ws) != 0 || ptrace.StopSignal(ws) == ptrace.SyscallTrap {
		return 0
	}
	return int(ptrace.StopSignal(ws))
}

// endCall brings a thread that was stopped inside a call behind it, or before it where it is
// to be made again.
func (t *thread) endCall() error {
	t.call.in = false
	if t.call.patched {
		if err := t.unpatch(); err != nil {
			return err
		}
	}
	ret := int64(t.regs.Rax)
	if t.call.redirection != nil {
		t.redirected(ret)
	}
	if !isRestart(ret) && (ret != errnoIntr || t.anyDue()) {
		return nil
	}
	beforeCall(&t.regs, uint64(t.call.nr))
	return t.setRegs(&t.regs)
}

// giveAll gives a thread that is at a stop, in no call, what is its own.
func (t *thread) giveAll() error {
	if err := t.takeReserved(); err != nil {
		return err
	}
	return t.restore()
}

// release does so, and lets the thread go.
func (t *thread) release() error {
	if err := t.giveAll(); err != nil {
		return err
	}
	return t.session.source.resume(t.tid, ptrace.Detach, 0)
}

// takeReserved has the thread take the timer's signal: it is not to outlive the tracer, for it would
// kill. Other stops come before it, such as the one that halt has asked for where the thread came to
// another.
func (t *thread) takeReserved() error {
	timer := &t.group().timer
	for timer.comes(t) {
		ws, err := t.runToReserved(0)
		switch {
		case err != nil:
			return err
		case !ws.Stopped():
			return &goneError{ws}
		}
		var si ptrace.Siginfo
		got := signalOf(ws)
		if got == 0 || t.session.source.getSiginfo(t.tid, &si) != nil {
			continue
		}
		if ours, _ := timer.arrived(t.tid, got, &si); ours {
			continue
		}
		if err := t.holdBack(got); err != nil {
			return err
		}
	}
	return nil
}

// restore gives a thread that is at a stop, in no call, its instructions, its CPUs and its
// signals.
func (t *thread) restore() error {
	if err := errors.Join(t.space().ownCode(), t.setHealer(false), t.leaveBlock()); err != nil {
		return err
	}
	if t.space().site != 0 && !t.hasOwnFilter() { // which may kill it for the calls: then RDTSC goes on to fault
		if err := t.borrow(t.proc.pid, t.tid, t.proc.trap.disarm, t.giveRseq, t.giveSignals); err != nil {
			return err
		}
		t.proc.trap.handler = 0 // its other threads may set another action from now on
	}
	if err := unix.SchedSetaffinity(t.tid, &t.affinity); err != nil {
		t.session.log.Warn().Err(err).Msg("affinity not restored")
	}
	for i := range t.sig.held {
		sendAs(t.proc.pid, t.tid, &t.sig.held[i])
	}
	t.sig.held = nil
	t.noteHeld()
	return nil
}

// waitDetached waits for the end of the program, if it was let go, as its parent.
func (p *process) waitDetached() error {
	for p.detached && !p.over {
		ws, err := ptrace.Wait(p.pid, unix.WUNTRACED)
		switch {
		case err != nil:
			return fmt.Errorf("record: wait: %w", err)
		case ws.Exited() || ws.Signaled():
			p.session.noteEnd(p.pid, ws)
		case ws.Stopped() && ws.StopSignal() != unix.SIGSTOP:
			stopWithJob()
		}
	}
	return nil
}

// borrow borrows a stopped thread, of t's process or of a child, and has the functions make calls by it, up to the
// first error.
func (t *thread) borrow(pid, tid int, calls ...func(in caller) error) error {
	in, err := t.session.source.inject(pid, tid, t.space().site)
	if err != nil {
		return err
	}
	for _, f := range calls {
		if err := f(in); err != nil {
			return errors.Join(err, in.end())
		}
	}
	return in.end()
}
