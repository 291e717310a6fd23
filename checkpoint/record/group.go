//go:build linux && amd64

package record

import (
	"time"

	"golang.org/x/sys/unix"
)

// group is the processes that share writable memory. One of their threads runs at a time,
// so that they have one log: the intervals, the ring that these stand in, and the ends
// that a timer forces.
type group struct {
	session *session
	procs   []*process

	cpu   unix.CPUSet // that its threads run on
	turns turns

	cur       *interval
	ring      []*interval // crash: intervals before cur, oldest first
	nextID    uint32
	prev      *interval   // the interval before, between its end and the next one's start
	between   *snapshot   // the memory between them, while a cut is made
	unwritten bool        // prev is not in the file yet
	execEnd   *pendingEnd // the end of the image, while an execve is under way

	spacing  time.Duration // CPU time until the next cut
	timer    forceTimer
	forcedAt []time.Time // the last forced ends
}

// cpuTime returns the CPU time of the group's processes.
func (g *group) cpuTime() (time.Duration, error) {
	var sum time.Duration
	for _, p := range g.procs {
		cpu, err := cpuTime(p.pid)
		if err != nil {
			return 0, err
		}
		sum += cpu
	}
	return sum, nil
}

// dropImage forgets what belonged to the image before.
func (g *group) dropImage() {
	g.finishExecEnd()
	g.close()
	if g.session.opt.Keep == KeepCrash {
		g.session.objects.forgetPages()
	}
}

// close gives up the memory of the intervals that are not written.
func (g *group) close() {
	for _, iv := range g.ring {
		iv.close()
	}
	g.cur.close()
	g.prev.close()
	g.ring, g.cur, g.prev = nil, nil, nil
}
