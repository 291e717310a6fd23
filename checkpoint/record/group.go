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

	cpu unix.CPUSet // that its threads run on

	cur       *live
	ring      []*live // crash: intervals before cur, oldest first
	nextID    uint32
	prev      *live       // the interval before, between close and open
	between   *moment     // the memory between them, while a border is made
	unwritten bool        // prev is not in the file yet
	execEnd   *pendingEnd // the end of the image, while an execve is under way

	spacing  time.Duration // CPU time until the next border
	preempt  preempt
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
