//go:build linux && amd64

package record

import (
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// Calls with a time-out that return EINTR because of a signal that the program ignores.
// The recorder makes such a call again, with the time that remains. Signals as such are
// in signals.go.

// repeat is a call with a time-out that is made again because only an ignored
// signal had ended it: the kernel gets what remains of the time.
type repeat struct {
	nr       int64
	deadline time.Time
}

// endedForNothing reports whether a call, whose exit is pending with result code, was ended only by a signal that
// the program does not see, and would not go on by itself as it must: EINTR is no code of a restart, and what is left of a
// poll(2) that the agent has made would write to the program's memory without the thread's turn.
func (t *thread) endedForNothing() bool {
	c, code := &t.call, int64(t.sig.atExit.Rax)
	ended := code == errnoIntr || code == restartBlock && c.nr == unix.SYS_POLL && c.byAgent
	return c.pending && ended && !t.anyDue()
}

// repeatOf returns how to repeat the call, or nil when it has no time-out in a
// register. The calls that return EINTR without a restart code and take one
// are those of epoll (man 7 signal).
func repeatOf(c *call) *repeat {
	ms := int32(*timeoutOf(c.nr, &c.args[2], &c.args[3]))
	if ms <= 0 || c.since.IsZero() {
		return nil
	}
	return &repeat{c.nr, c.since.Add(time.Duration(ms) * time.Millisecond)}
}

// timeoutOf returns which of a call's third and fourth arguments is a time-out in milliseconds, one that is 0 for none.
func timeoutOf(nr int64, third, fourth *uint64) *uint64 {
	switch nr {
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT:
		return fourth
	case unix.SYS_POLL:
		return third
	}
	return new(uint64)
}

// resumeTimeout shortens the time-out of a repeated call.
func (t *thread) resumeTimeout() error {
	rep, c := t.sig.repeat, &t.call
	t.sig.repeat = nil
	if rep == nil || rep.nr != c.nr {
		return nil
	}
	left := max(time.Until(rep.deadline), 0)
	whole := int32(*timeoutOf(c.nr, &c.args[2], &c.args[3]))
	c.since = rep.deadline.Add(-time.Duration(whole) * time.Millisecond)
	ms := uint64((left + time.Millisecond - 1) / time.Millisecond)
	return t.patch(func(r *ptrace.Regs) { *timeoutOf(c.nr, &r.Rdx, &r.R10) = ms })
}
