//go:build linux && amd64

package record

import (
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// Programs that trace others, as debuggers and strace do. A process has one tracer: the one
// that the program wants to trace is let go.

// beforePtrace is the entry of ptrace(2).
func (t *thread) beforePtrace() error {
	switch a := &t.call.args; ptrace.Request(a[0]) {
	case unix.PTRACE_TRACEME:
		if t.session.traced(t.proc.parent) {
			return t.giveUp("its parent traces it")
		}
	case unix.PTRACE_ATTACH, unix.PTRACE_SEIZE:
		to := t.session.threads[int(int32(a[1]))]
		if to == nil || to.group() == t.group() || to.group().done {
			return nil // not recorded, or what it shares memory with
		}
		return to.group().letTracedGo()
	}
	return nil
}

// traced reports whether a process is recorded.
func (s *session) traced(pid int) bool { return s.threads[pid] != nil }

// letTracedGo ends the recording of a group whose process another is about to trace.
func (g *group) letTracedGo() error {
	return g.letGoFor("another process of the recording traces it")
}

// letGoFor ends the recording of a group, wherever its threads are, and lets its processes go.
func (g *group) letGoFor(why string) error {
	if g.session.streams() {
		if err := g.endHere(why); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return g.letGo(nil)
}
