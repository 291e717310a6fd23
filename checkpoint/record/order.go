//go:build linux && amd64

package record

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The order of the events of several processes (checkpoint.Event.Seq). An event's number is the time at which
// it was logged, in nanoseconds since the session's first numbered event. Without the agent that is at the
// entry and at the exit of a call, while its process is stopped: what a call has sent has a smaller number than
// what another call has received. A call that the agent makes is logged later, with the time at which it
// had been made. Its entry comes right behind the event before, which is early enough: nothing
// that others do depends on the program's instructions between the two.

// What stands for a time of CLOCK_MONOTONIC.
const (
	happensNow  int64 = -1
	rightBehind int64 = 0 // the event before
)

// monotonic returns the time of CLOCK_MONOTONIC in nanoseconds.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail
	return t.Nano()
}

// isOrdered reports whether events have numbers: there is a second process, or was one.
func (s *session) isOrdered() bool {
	if s.began == 0 && len(s.groups) > 1 {
		s.began = monotonic()
	}
	return s.began != 0
}

// numbering makes the numbers of a group's events. They rise whatever the times are.
type numbering struct {
	last  uint64
	began int64 // of CLOCK_MONOTONIC, 0 where events have no numbers
}

// next returns the number of the next event, which happens at a time, or 0 where events have none.
func (n *numbering) next(at int64) uint64 {
	if n.began == 0 {
		return 0
	}
	if at == happensNow {
		at = monotonic()
	}
	n.last = max(n.last+1, uint64(max(at-n.began, 0)))
	return n.last
}

// numbering returns the group's as it is now.
func (g *group) numbering() numbering {
	if !g.session.isOrdered() {
		return numbering{}
	}
	return numbering{g.lastNumber, g.session.began}
}

// number returns the number of the group's next event, which happens at a time, or 0 where events have none.
func (g *group) number(at int64) uint64 {
	n := g.numbering()
	seq := n.next(at)
	g.lastNumber = n.last
	return seq
}

// hasOurTime reports whether CLOCK_MONOTONIC of the process is the recorder's: a time namespace can have another.
func (p *process) hasOurTime() bool {
	own, _ := os.Readlink("/proc/self/ns/time") // a kernel without such namespaces has neither
	its, _ := os.Readlink("/proc/" + strconv.Itoa(p.live) + "/ns/time")
	return own == its
}
