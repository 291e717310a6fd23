//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// The end of the recording: at the program's exit, at the signal that kills it, or where it
// can be recorded no further.

// onExitEvent is PTRACE_EVENT_EXIT: the program dies, its memory still there.
func (t *thread) onExitEvent() (action, error) {
	if err := t.meetUnseen(); err != nil {
		return action{}, err
	}
	if t.group().done {
		return action{}, nil
	}
	if t.exiting {
		t.onThreadExitEvent()
		return action{}, nil
	}
	return t.onKilled()
}

// onKilled is PTRACE_EVENT_EXIT of a thread that a signal kills. Its registers are those of the stop
// that was answered last, if they were read there: the recorder may have replaced them since.
func (t *thread) onKilled() (action, error) {
	msg, err := t.session.source.message(t.tid, unix.PTRACE_EVENT_EXIT)
	if err != nil {
		return action{}, err
	}
	sig := int(msg & 0x7f)
	switch {
	case t.hasLostImage():
		return t.killedInExec(sig)
	case t.group().cur == nil:
		return t.group().crashBetween(sig)
	case !t.regsRead:
		if err := t.readRegs(); err != nil {
			return action{}, err
		}
	}
	if !t.call.in && !t.call.pending && t.entersCall() {
		t.noteEntry()
	}
	forced := !t.call.in && !t.call.pending // in its own code
	if t.call.pending {
		t.finishPending(t.asIs())
	}
	if t.diesBeside(sig) {
		return action{}, t.endBeside(forced)
	}
	_, err = t.crash(sig, nil, forced)
	return action{}, err
}

// entersCall reports whether the thread was killed behind a SYSCALL instruction, before its stop
// at the entry of the call, or there before that was logged.
func (t *thread) entersCall() bool {
	r := &t.regs
	return int64(r.Orig_rax) >= 0 && int64(r.Rax) == errnoNoSys && r.Rcx == r.Rip && *r != t.sig.atExit
}

// onExitCall is the entry of exit or exit_group.
func (t *thread) onExitCall() error {
	g := t.group()
	if t.call.nr == unix.SYS_EXIT && !g.alone() || g.shares() {
		t.exiting = true
		t.noteExitWords() // its next stop may not be seen
		return nil
	}
	t.proc.about.ExitCode = int32(uint8(t.call.args[0]))
	t.proc.killed = t
	return g.endQuietly(t, intervalEnd{kind: checkpoint.EndExit, code: int(uint8(t.call.args[0]))})
}

// endQuietly ends the recording of a process that has not crashed: with KeepCrash nothing of
// it is kept.
func (g *group) endQuietly(t *thread, b intervalEnd) error {
	s := g.session
	if s.opt.Keep != KeepCrash {
		if err := g.endAt(t, b); err != nil {
			return err
		}
	}
	g.dies()
	return s.finishWhenOver()
}

// dieOf is crash for a signal that the thread is given now. Until the kernel takes it nothing of the process runs: an execve(2) by
// another thread would end this one, and the signal with it.
func (t *thread) dieOf(sig int, si *ptrace.Siginfo, forced bool) (action, error) {
	next, err := t.crash(sig, si, forced)
	if err == nil {
		t.proc.killed = t
	}
	return next, err
}

// isDoomed reports whether the thread is not to run any more, because its process has been given a signal that kills, or another
// thread has called exit_group(2): what it waited for has been ended by the recorder, perhaps, and nothing is recorded any more.
func (t *thread) isDoomed() bool { return t.proc.killed != nil && t.proc.killed != t && !t.dead }

// crash ends the recording of the process at the signal that kills it.
func (t *thread) crash(sig int, si *ptrace.Siginfo, forced bool) (action, error) {
	g := t.group()
	// In a call the kernel may have written what no event says: the time that is left to sleep.
	b := intervalEnd{kind: checkpoint.EndCrash, forced: forced, signo: sig, noPages: t.call.in}
	switch {
	case t.diesBeside(sig):
		return action{sig: sig}, nil // its exit event comes
	case g.shares() && !t.proc.isCrash(sig):
		return action{sig: sig}, g.killedBeside(t, forced)
	}
	g.of.about.Signo = int32(sig)
	if !g.of.isCrash(sig) {
		g.settle(g.endQuietly(t, b))
		return action{sig: sig}, nil
	}
	t.session.noteCrash(g.of, t.proc, sig)
	var info []byte
	if si != nil {
		info = append(info, si[:]...)
	}
	g.settle(g.endWith(t, b, info))
	if g.shares() {
		return action{sig: sig}, g.letOthersGo(t)
	}
	return action{sig: sig}, nil
}

// killedBeside ends the recording of the group at a signal to thread t that kills the process whose
// log it is, which is no crash, while others go on in the same memory.
func (g *group) killedBeside(t *thread, forced bool) error {
	const why = "a process that shares the program's memory was killed"
	s := g.session
	if g.of == s.first {
		s.endEarly(why)
	} else {
		s.noteOnce(fmt.Sprintf("process %d runs on unrecorded: %s", g.of.pid, why))
	}
	g.settle(g.endQuietly(t, intervalEnd{kind: checkpoint.EndStop, forced: forced, reason: why, noPages: t.call.in}))
	return g.letOthersGo(t)
}

// isCrash reports whether a signal that kills the process counts as a crash. Of the program
// itself each does. Its children are often ended by one, and then it is no more than an
// exit: those count that dump core.
func (p *process) isCrash(sig int) bool {
	return p == p.session.first || abi.Signal(sig).DumpsCore()
}

// noteCrash notes that a process has crashed, if it is the first, and whose log that ends: its
// own, or that of the one whose memory it shares.
func (s *session) noteCrash(log, p *process, sig int) {
	if s.crashed != nil {
		return
	}
	s.crashed = log
	if p != s.first && s.result.Crashed == nil {
		s.result.Crashed = &Crashed{PID: p.pid, Program: p.about.Program, Signal: sig}
	}
}

// settle is called when the end of a process that dies is written, or could not be: the
// program gets its end whatever becomes of the recording.
func (g *group) settle(err error) {
	s := g.session
	g.dies()
	if err == nil && g.of == s.crashed && s.opt.Keep == KeepCrash && s.opt.OnCrash == OnCrashFirst {
		err = s.endOthers(g, "another process crashed")
	}
	if err == nil && s.out.open() && s.opt.Keep == KeepCrash && !s.ending {
		err = s.finish()
	}
	if err == nil {
		err = s.finishWhenOver()
	}
	if err != nil {
		s.failed(err)
	}
}

// failed takes note that the recording could not be written.
func (s *session) failed(err error) {
	s.log.Debug().Err(err).Msg("recording not written")
	s.result.Reason, s.result.Err = err.Error(), err
	s.abandon()
}

// endAt ends the recording of the group's process here.
func (g *group) endAt(t *thread, b intervalEnd) error { return g.endWith(t, b, nil) }

func (g *group) endWith(t *thread, b intervalEnd, info []byte) error {
	if g.cur == nil {
		return errors.New("no interval to end")
	}
	t.space().noteFilesChanged()
	t.space().noteLateStorers()
	if b.noPages { // nor does an event say what the call has done to the map
		list, err := t.space().kernelMaps()
		if err != nil {
			return err
		}
		t.space().maps.adopt(list)
	}
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if b.forced {
		t.skipStored()
	}
	b.contexts = g.contexts(t)
	now := slices.Clone(b.contexts)
	if t.parked.noXState { // replay learns it at the exit of the thread's call
		b.contexts[0].XState = nil
	}
	if info != nil {
		c := t.newCrashReader(m)
		defer c.end(t, b.signo, info)
	}
	if err := g.endInterval(m, b); err != nil {
		return err
	}
	final := &checkpoint.Final{Maps: t.space().maps.mappings(), Contexts: now, Siginfo: info, Signo: int32(b.signo)}
	if err := t.space().keepDebuggerSet(&t.call, final); err != nil {
		return err
	}
	return g.writeEnd(m, final)
}

// crashBetween writes the recording of a program that was killed between two
// intervals: the one before ends with the crash.
func (g *group) crashBetween(sig int) (action, error) {
	if g.prev == nil {
		return g.killedUnbegun(sig)
	}
	p, end := g.of, &g.prev.rec.End
	p.about.Signo = int32(sig)
	if p.isCrash(sig) {
		g.session.noteCrash(p, p, sig)
	} else if g.session.opt.Keep == KeepCrash {
		g.settle(nil)
		return action{}, nil
	}
	end.Kind, end.Signo = checkpoint.EndCrash, int32(sig)
	g.settle(g.finishBetween(sig))
	return action{}, nil
}

// finishBetween writes the recording of a process that is between two intervals.
func (g *group) finishBetween(sig int) error {
	m := g.between
	if m == nil {
		var err error
		if m, err = g.prev.space.takeSnapshot(); err != nil {
			return err
		}
	}
	final := &checkpoint.Final{Maps: g.prev.space.maps.mappings(), Contexts: g.prev.rec.End.Contexts, Signo: int32(sig)}
	return g.writeEnd(m, final)
}
