//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"slices"

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
	for _, g := range slices.Clone(s.groups) {
		if g == but {
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if !g.done && why != "" {
			switch err := g.endHere(why); {
			case errors.Is(err, errLost): // nothing of it is written yet, and the others count
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
	t := g.turns.has
	if t == nil {
		if t = g.turns.logged; t == nil || t.ended {
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
	case g.cur == nil && g.prev == nil, t.call.exec && ptrace.Event(ws) == unix.PTRACE_EVENT_EXEC:
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
	if t.call.pending {
		if entry {
			t.finishPending(outcome{true, int64(t.regs.Orig_rax)})
		} else {
			t.finishPending(t.asIs())
		}
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
