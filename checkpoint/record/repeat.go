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

// repeatOf returns how to repeat the call, or nil when it has no time-out in a
// register. The calls that return EINTR without a restart code and take one
// are those of epoll (man 7 signal).
func repeatOf(c *call) *repeat {
	switch c.nr {
	case unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_PWAIT:
		ms := int32(c.args[3])
		if ms <= 0 || c.since.IsZero() {
			return nil
		}
		return &repeat{c.nr, c.since.Add(time.Duration(ms) * time.Millisecond)}
	}
	return nil
}

// resumeTimeout shortens the time-out of a repeated call.
func (t *thread) resumeTimeout() error {
	rep := t.sig.repeat
	t.sig.repeat = nil
	if rep == nil || rep.nr != t.call.nr {
		return nil
	}
	left := max(time.Until(rep.deadline), 0)
	t.call.since = rep.deadline.Add(-time.Duration(int32(t.call.args[3])) * time.Millisecond)
	ms := uint64((left + time.Millisecond - 1) / time.Millisecond)
	return t.patch(func(r *ptrace.Regs) { r.R10 = ms })
}
