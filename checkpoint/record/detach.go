//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// How the program is let go: each thread with its registers, its instructions, its CPUs and
// the signals that were held back for it.

// detach restores everything and lets the program go. The thread is at a stop; others may be
// in calls.
func (t *thread) detach() error {
	t.group().timer.off()
	for _, o := range t.group().turns.threads {
		if o == t {
			continue
		}
		if err := o.leaveCall(); err != nil && !errors.Is(err, errGone) && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("thread %d: %w", o.tid, err)
		}
	}
	if t.call.in {
		if err := t.undo(); err != nil {
			return err
		}
		t.call.in = false
	}
	t.group().timer.holdUntil(time.Time{})
	t.session.relay.detach()
	return t.release()
}

// leaveCall lets a thread go that does not have the turn. A call in which it waits is ended,
// as the kernel would for a signal that is ignored, and made again.
func (t *thread) leaveCall() error {
	ws := t.parked.next.status
	if t.parked.waits {
		if err := t.session.source.interrupt(t.tid); err != nil {
			return err
		}
		var err error
		if ws, err = t.session.source.wait(t.tid); err != nil {
			return err
		}
	}
	if ws != 0 && !ws.Stopped() {
		return errGone
	}
	if err := t.readRegs(); err != nil {
		return err
	}
	if t.call.in {
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
		if isRestart(ret) {
			beforeCall(&t.regs, uint64(t.call.nr))
			if err := t.setRegs(&t.regs); err != nil {
				return err
			}
		}
	}
	return t.release()
}

// release gives a thread that is at a stop, in no call, what is its own, and lets it go.
func (t *thread) release() error {
	if t.space().site != 0 {
		if err := t.disarmAt(t.proc.pid, t.tid); err != nil {
			return err
		}
	}
	if err := unix.SchedSetaffinity(t.tid, &t.affinity); err != nil {
		t.session.log.Warn().Err(err).Msg("affinity not restored")
	}
	for _, h := range t.sig.held {
		_ = t.session.source.send(t.proc.pid, t.tid, unix.Signal(h.signo)) // it fails only for one that is gone
	}
	t.sig.held = nil
	return t.session.source.resume(t.tid, ptrace.Detach, 0)
}

// waitDetached waits for the program's end, as its parent.
func (p *process) waitDetached() error {
	for {
		ws, err := ptrace.Wait(p.pid, unix.WUNTRACED)
		switch {
		case err != nil:
			return fmt.Errorf("record: wait: %w", err)
		case ws.Exited() || ws.Signaled():
			p.session.result.setEnd(ws)
			return nil
		case ws.Stopped() && ws.StopSignal() != unix.SIGSTOP:
			stopWithJob()
		}
	}
}

// disarmAt borrows a stopped process and gives it its instructions back.
func (t *thread) disarmAt(pid, tid int) error {
	in, err := t.session.source.inject(pid, tid, t.space().site)
	if err != nil {
		return err
	}
	if err := t.proc.disarm(in); err != nil {
		return err
	}
	return in.end()
}
