//go:build linux && amd64

package record

import (
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// The end of the recording: at the program's exit, at the signal that kills it, or where it
// can be recorded no further.

// onExitEvent is PTRACE_EVENT_EXIT: the program dies, its memory still there.
func (t *thread) onExitEvent() (action, error) {
	if t.session.done {
		return action{}, nil
	}
	if t.exiting {
		t.onThreadExitEvent()
		return action{}, nil
	}
	msg, err := t.session.source.message(t.tid)
	if err != nil {
		return action{}, err
	}
	sig := int(msg & 0x7f)
	if t.group().cur == nil {
		return t.group().crashBetween(sig)
	}
	if err := t.readRegs(); err != nil {
		return action{}, err
	}
	forced := !t.call.in && !t.call.pending
	if t.call.pending {
		t.finishPending(t.asIs())
	}
	if _, err := t.crash(sig, nil, forced); err != nil {
		return action{}, err
	}
	return action{}, nil
}

// onExitCall is the entry of exit or exit_group.
func (t *thread) onExitCall() error {
	if t.call.nr == unix.SYS_EXIT && !t.group().alone() {
		t.exiting = true
		return nil
	}
	if t.session.opt.Keep == KeepCrash {
		t.session.abandon()
	} else if err := t.group().endAt(t, intervalEnd{kind: checkpoint.EndExit, code: int(uint8(t.call.args[0]))}); err != nil {
		return err
	}
	t.session.done = true
	t.group().timer.off()
	return nil
}

// crash ends the recording at the signal that kills the program.
func (t *thread) crash(sig int, si *ptrace.Siginfo, forced bool) (action, error) {
	t.session.manifest.Crash, t.session.manifest.Signo = true, int32(sig)
	b := intervalEnd{kind: checkpoint.EndCrash, forced: forced, signo: sig}
	var info []byte
	if si != nil {
		info = append(info, si[:]...)
	}
	if err := t.group().endWith(t, b, info); err != nil {
		// The program gets its end whatever becomes of the recording.
		t.session.log.Debug().Err(err).Msg("recording not written")
		t.session.result.Reason, t.session.result.Err = err.Error(), err
		t.session.abandon()
	}
	t.session.done = true
	t.group().timer.off()
	return action{sig: sig}, nil
}

// endAt ends the recording here.
func (g *group) endAt(t *thread, b intervalEnd) error { return g.endWith(t, b, nil) }

func (g *group) endWith(t *thread, b intervalEnd, info []byte) error {
	if g.cur == nil {
		return errors.New("no interval to end")
	}
	t.space().noteFilesChanged()
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	b.contexts = g.contexts(t)
	g.session.manifest.ExitCode = int32(b.code)
	if err := g.endInterval(m, b); err != nil {
		return err
	}
	final := &checkpoint.Final{Maps: t.space().maps.mappings(), Contexts: b.contexts, Siginfo: info, Signo: int32(b.signo)}
	if err := t.space().keepDebuggerSet(&t.call, final); err != nil {
		return err
	}
	if err := g.write(m, final); err != nil {
		return err
	}
	g.session.result.Recorded, g.session.result.Path = true, g.session.opt.Path
	return nil
}

// crashBetween writes the recording of a program that was killed between two
// intervals: the one before ends with the crash.
func (g *group) crashBetween(sig int) (action, error) {
	err := errors.New("killed before its first interval")
	if g.prev != nil {
		end := &g.prev.rec.End
		end.Kind, end.Signo = checkpoint.EndCrash, int32(sig)
		g.session.manifest.Crash, g.session.manifest.Signo = true, int32(sig)
		err = g.finishBetween(sig)
	}
	if err != nil {
		g.session.log.Debug().Err(err).Msg("recording not written")
		g.session.result.Reason, g.session.result.Err = err.Error(), err
		g.session.abandon()
	}
	g.session.done = true
	g.timer.off()
	return action{}, nil
}

func (g *group) finishBetween(sig int) error {
	m := g.between
	if m == nil {
		var err error
		if m, err = g.prev.space.takeSnapshot(); err != nil {
			return err
		}
	}
	final := &checkpoint.Final{Maps: g.prev.space.maps.mappings(), Contexts: g.prev.rec.End.Contexts, Signo: int32(sig)}
	if err := g.write(m, final); err != nil {
		return err
	}
	g.session.result.Recorded, g.session.result.Path = true, g.session.opt.Path
	return nil
}
