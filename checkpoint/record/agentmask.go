//go:build linux && amd64

package record

import "golang.org/x/sys/unix"

// The agent changes the signal mask as the program asks. What the recorder knows of the mask it reads anew when such a thread
// stops, before anything looks at it. For some signals the mask of the kernel is not the program's at a stop: those that the kernel forces on a
// thread though they are blocked are not blocked any more then. So they are blocked all or none, or the recorder
// makes the call, and the timer's signal, which is one of them and is forced on nobody, tells which.

// together are these signals.
const together = 1<<(reservedSignal-1) |
	1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) | 1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1)

// staysTogether returns the signals that the thread's agent is to block together, 0 if it may not change the mask, and whether the
// timer's is blocked.
func (t *thread) staysTogether() (signals uint64, closed bool) {
	closed = blocksReserved(t.sig.mask)
	if have := t.sig.mask & together; have == 0 || have == together {
		signals = together
	}
	return signals, closed
}

// followMask reads the blocked signals of a thread that has stopped under the agent, if that may have changed them.
func (t *thread) followMask() error {
	if !t.block.shared.Masked() {
		return nil
	}
	mask, err := t.session.source.getSigmask(t.tid)
	if err != nil {
		return err
	}
	if t.sig.mask = mask &^ together; blocksReserved(mask) {
		t.sig.mask |= together
	}
	t.group().timer.turn(t)
	return nil
}

// followUnblocked is called at a stop behind a call that the agent has made and that is just logged. What a change of the mask has
// unblocked comes before the program goes on: the first is what the thread has stopped for, or still queued.
func (t *thread) followUnblocked(ws unix.WaitStatus) {
	if t.call.nr == unix.SYS_RT_SIGPROCMASK {
		t.sig.syncPending = signalOf(ws) != 0 || t.pending()&^t.sig.mask != 0
	}
}
