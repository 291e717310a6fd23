//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// One process crashes, and the recording of all of them ends: each of the others is in it up
// to that moment. It is stopped wherever it is, its last interval ends there, and it runs on
// by itself.

// endOthers ends the recording of all processes but those of one group, and lets them go. why
// is empty where nothing of them is to be recorded.
func (s *session) endOthers(but *group, why string) error {
	defer func(was bool) { s.ending = was }(s.ending)
	s.ending = true
	for g := range s.allGroups(but) {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if !g.done && why != "" {
			switch err := g.endHere(why); {
			case errors.Is(err, ErrLost): // nothing of it is written yet, and the others count
				s.noteOnce(fmt.Sprintf("process %d is left out: %v", g.of.pid, err))
			case err != nil && !errors.Is(err, errGone):
				return err
			}
		}
		if err := g.letGo(nil); err != nil {
			return err
		}
	}
	s.letUnrecordedGo()
	return nil
}

// endHere ends the recording of a group wherever its threads are. They stay stopped.
func (g *group) endHere(why string) error {
	if err := g.finishCall(); err != nil {
		return err
	}
	t := g.turns.has
	if t == nil {
		if t = g.turns.logged; !slices.Contains(g.turns.threads, t) || t.ended { // it may have left for a program of its own
			t = g.turns.threads[0]
		}
		if i := slices.IndexFunc(g.turns.threads, func(o *thread) bool { return !o.inVfork() }); t.inVfork() && i >= 0 {
			t = g.turns.threads[i] // its state can be read
		}
	}
	runs := g.turns.has == t
	for _, o := range g.turns.threads {
		if err := o.halt(); err != nil {
			return err
		}
	}
	b := intervalEnd{kind: checkpoint.EndStop, reason: why}
	switch ws := t.parked.next.status; {
	case runs && !ws.Stopped():
		return errGone
	case g.cur == nil && g.prev == nil:
		return nil // there is nothing of its program yet
	case g.cur == nil:
		return g.finishBetween(0)
	case t.call.in:
		b.noPages = true // what the call has written by now is not in the log
	case runs:
		if err := t.endOutsideCall(ws, &b); err != nil {
			return err
		}
	}
	return g.endAt(t, b)
}

// endOutsideCall ends the log of a thread that was stopped while it ran its own code, or at
// the entry of a call, which it has not made then.
func (t *thread) endOutsideCall(ws unix.WaitStatus, b *intervalEnd) error {
	entry := ptrace.StopSignal(ws) == ptrace.SyscallTrap
	switch {
	case !t.call.pending:
	case entry:
		t.finishPending(t.atNextEntry())
	case t.endedForNothing(): // by the stop
		if err := t.again(); err != nil {
			return err
		}
		t.sig.atExit = t.regs
	default:
		t.finishPending(t.asIs())
	}
	switch {
	case entry:
		if err := t.interruptCall(); err != nil {
			return err
		}
		t.parked.next.status = 0 // it stands before the call
	case t.regs != t.sig.atExit:
		b.forced = true
	}
	return nil
}

// finishCall has the thread that has the turn come to the end of the call that it is in, if that is one in the middle of which
// it has parts of two states, or is two threads already. A process that has executed a program may be in a group of its own
// then, one that has made a child may wait for it (inVfork).
func (g *group) finishCall() error {
	s, t := g.session, g.turns.has
	answering := s.answering
	for t != nil && !g.done {
		if !t.isHalfway() {
			if g.turns.has == t || g.turns.has == nil {
				break
			}
			t = g.turns.has
			continue
		}
		stopped := false
		for _, o := range slices.Clone(t.group().turns.threads) { // an execve ends the others
			ws, ok := s.source.poll(o.tid)
			if !ok {
				continue
			}
			stopped = true
			if err := o.onWait(ws); err != nil && !ends(err) {
				return err
			}
		}
		if !stopped {
			time.Sleep(callTick)
		}
	}
	s.answering = answering
	return nil
}

// isHalfway reports whether the thread has the turn and is inside such a call. None of them waits long but for a child of
// vfork(2) that is not recorded, and in that no signal ends it anyway.
func (t *thread) isHalfway() bool {
	if t.group().turns.has != t || t.session.threads[t.tid] != t {
		return false
	}
	if t.redo { // it is about to make a call that the agent has left to the recorder, perhaps one of these
		return true
	}
	if !t.call.in {
		return false
	}
	switch t.call.nr {
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_RT_SIGRETURN, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CLONE, unix.SYS_CLONE3:
		return true
	}
	return false
}

// callTick is how often a thread inside such a call is looked at.
const callTick = 100 * time.Microsecond
