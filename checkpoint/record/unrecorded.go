//go:build linux && amd64

package record

import (
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// Processes that are traced and not recorded, because they may execute a program that is to
// be: with a pattern those whose program does not match. They get their own instructions and
// CPUs back, and are looked at where they make children and execute programs.

// leaveUnrecorded lets a child, which is at its first stop, go on unrecorded. Its parent is t.
func (t *thread) leaveUnrecorded(pid int) error {
	if err := t.makeNative(pid); err != nil {
		return err
	}
	return t.session.traceOnly(pid, t.proc.pid)
}

// traceOnly has a process of one thread, which is at a stop, go on traced and not recorded.
func (s *session) traceOnly(pid, parent int) error {
	if err := ptrace.SetOptions(pid, s.options()&^ptrace.OptExit); err != nil {
		return err
	}
	s.unrecorded[pid], s.parents[pid] = pid, parent
	return resumeUnrecorded(pid, 0)
}

// leaveHere lets a process that was recorded as long as it shared its parent's memory, and has
// executed a program that is not to be recorded, go on unrecorded. It is at the execve's exit.
func (t *thread) leaveHere() error {
	s, p := t.session, t.proc
	if err := t.restore(); err != nil {
		return err
	}
	if err := s.traceOnly(p.pid, p.parent); err != nil {
		return err
	}
	s.forgetProcess(p)
	return errDetach
}

// makeNative gives a new child what is its own: its instructions and its CPUs.
func (t *thread) makeNative(pid int) error {
	if err := errors.Join(t.leaveBlockOf(pid), t.healChild(pid), t.borrow(pid, pid, t.proc.trap.disarm)); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(pid, &t.affinity); err != nil {
		t.session.log.Warn().Err(err).Msg("affinity of a child not restored")
	}
	return nil
}

// onUnrecorded answers a stop or an end of thread tid of such a process.
func (s *session) onUnrecorded(pid, tid int, ws unix.WaitStatus) error {
	if !ws.Stopped() {
		delete(s.unrecorded, tid)
		delete(s.executing, tid)
		if tid == pid {
			delete(s.parents, pid)
		}
		s.mayHaveOrphans = s.mayHaveOrphans || ws.Signaled()
		if err := s.letOrphansGo(); err != nil {
			return err
		}
		if len(s.threads)+len(s.unrecorded) == 0 {
			return errors.Join(s.finishWhenOver(), errGone)
		}
		return s.finishWhenOver()
	}
	if s.leaving {
		return s.leaveAtStop(tid, ws)
	}
	switch event := ptrace.Event(ws); event {
	case 0:
		if ptrace.StopSignal(ws) == ptrace.SyscallTrap {
			return s.onUnrecordedCall(pid, tid)
		}
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		child, err := ptrace.EventMessage(tid, event)
		if err != nil {
			return stillThere(err)
		}
		return errors.Join(s.addUnrecorded(pid, int(child)), resumeUnrecorded(tid, 0))
	case unix.PTRACE_EVENT_EXEC:
		return s.onUnrecordedExec(pid, tid)
	case ptrace.EventStop:
		switch ptrace.StopSignal(ws) {
		case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
			return stillThere(ptrace.Resume(tid, ptrace.Listen, 0))
		}
	}
	return resumeUnrecorded(tid, signalOf(ws))
}

// letOrphansGo lets the new children go on that nobody will tell of: who made them was killed before
// the event that would have.
func (s *session) letOrphansGo() error {
	if !s.mayHaveOrphans {
		return nil
	}
	for child, ws := range s.early {
		if !ws.Stopped() || !s.isOrphan(child) {
			continue
		}
		if err := s.addUnrecorded(0, child); err != nil {
			return err
		}
	}
	return nil
}

// isOrphan reports whether the parent of a new process has ended. One that was made with CLONE_PARENT
// may be taken for an orphan: then it is not recorded.
func (s *session) isOrphan(pid int) bool {
	status, err := statusOf(pid)
	if err != nil || int(status.Number("Tgid")) != pid { // who makes a thread has its number
		return false
	}
	parent := int(status.Number("PPid"))
	for _, t := range s.threads {
		if t.proc.pid == parent {
			return false
		}
	}
	_, unrecorded := s.unrecorded[parent]
	return !unrecorded && parent != unix.Getpid()
}

// stillThere hides that a thread was killed at its stop: its end comes.
func stillThere(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// isGone reports whether err says that a thread has ended, or was killed at its stop.
func isGone(err error) bool { return errors.Is(err, errGone) || errors.Is(err, unix.ESRCH) }

func resumeUnrecorded(tid, sig int) error {
	return stillThere(ptrace.Resume(tid, ptrace.Syscall, sig))
}

// addUnrecorded takes note of a child, process or thread, of a process that is not recorded.
func (s *session) addUnrecorded(parent, child int) error {
	s.unrecorded[child] = child
	if isThreadOf(parent, child) {
		s.unrecorded[child] = parent
	} else {
		s.parents[child] = parent
	}
	ws, ok := s.early[child]
	if !ok {
		return nil
	}
	delete(s.early, child)
	return s.onUnrecorded(s.unrecorded[child], child, ws)
}

// onUnrecordedCall is the entry or the exit of a system call. A program that would not get
// its privileges under a tracer is executed without one.
func (s *session) onUnrecordedCall(pid, tid int) error {
	var r ptrace.Regs
	if err := ptrace.GetRegs(tid, &r); err != nil {
		return stillThere(err)
	}
	nr := int64(r.Orig_rax)
	if nr != unix.SYS_EXECVE && nr != unix.SYS_EXECVEAT || ptrace.SyscallOp(tid) != 1 {
		return resumeUnrecorded(tid, 0)
	}
	p := &process{session: s, pid: pid, live: tid, space: &space{session: s, pid: tid}}
	t := &thread{session: s, proc: p, tid: tid}
	t.call.nr, t.call.args = nr, [6]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}
	if err := p.space.open(); err == nil {
		path, ok := t.execPath()
		s.executing[tid], _ = t.execName()
		p.space.close()
		if why, _ := unrecordable(path); ok && why != "" {
			s.log.Debug().Str("path", path).Msg(why)
			delete(s.unrecorded, tid)
			return stillThere(ptrace.Resume(tid, ptrace.Detach, 0))
		}
	}
	return resumeUnrecorded(tid, 0)
}

// onUnrecordedExec is PTRACE_EVENT_EXEC: the process executes another program, which is
// recorded from here on if it is wanted.
func (s *session) onUnrecordedExec(pid, tid int) error {
	by, err := ptrace.EventMessage(tid, unix.PTRACE_EVENT_EXEC) // the thread that has made the call
	if err != nil {
		return stillThere(err)
	}
	named := s.executing[int(by)]
	delete(s.executing, int(by))
	for other, of := range s.unrecorded {
		if of == pid && other != tid {
			delete(s.unrecorded, other) // execve has ended it
		}
	}
	if !s.wantsExec(pid, named) || s.hasWritten(pid) {
		return resumeUnrecorded(tid, 0)
	}
	delete(s.unrecorded, tid)
	t := s.newThread(pid)
	t.proc.parent = s.parents[pid]
	delete(s.parents, pid)
	if err := t.beginProcess(); err != nil {
		return stillThere(err)
	}
	t.call.executes = named
	if err := t.onExec(); err != nil {
		return err
	}
	if err := t.group().pass(t); err != nil {
		return err
	}
	return t.goOn(action{})
}

// beginProcess prepares a process that joins the recording, at a stop.
func (t *thread) beginProcess() error {
	g := t.group()
	if err := unix.SchedGetaffinity(t.tid, &t.affinity); err != nil {
		return err
	}
	g.cpu = t.session.first.space.group.cpu
	return unix.SchedSetaffinity(t.tid, &g.cpu)
}

// letUnrecordedGo ends the tracing of the processes that are not recorded, each at its next
// stop: one inside vfork(2) comes to none before its child has gone on.
func (s *session) letUnrecordedGo() {
	s.leaving = true
	for tid := range s.unrecorded {
		_ = ptrace.Interrupt(tid) // it fails only for one that has gone, or is at a stop
	}
}

// awaitLeaving waits until all of them have been let go, and those threads that could not be stopped before
// (bringOut).
func (s *session) awaitLeaving() error {
	for len(s.unrecorded) > 0 || s.anyLeaves() {
		tid, ws, err := s.source.waitAny()
		if err != nil {
			return err
		}
		if t := s.threads[tid]; t != nil {
			err = t.onWait(ws)
		} else {
			err = s.notOurs(tid, ws)
		}
		if err != nil && !ends(err) {
			return err
		}
	}
	return nil
}

// anyLeaves reports whether a thread is to be let go at its next stop.
func (s *session) anyLeaves() bool {
	for _, t := range s.threads {
		if t.leaves {
			return true
		}
	}
	return false
}

// leaveAtStop lets a thread go at a stop.
func (s *session) leaveAtStop(tid int, ws unix.WaitStatus) error {
	delete(s.unrecorded, tid)
	switch event := ptrace.Event(ws); event {
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		if child, err := ptrace.EventMessage(tid, event); err == nil {
			if err := s.addUnrecorded(tid, int(child)); err != nil && !ends(err) {
				return err
			}
		}
	}
	if err := stillThere(ptrace.Resume(tid, ptrace.Detach, signalOf(ws))); err != nil || len(s.threads)+len(s.unrecorded) > 0 {
		return err
	}
	return errGone
}
