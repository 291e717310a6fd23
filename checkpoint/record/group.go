//go:build linux && amd64

package record

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
)

// What a group is and when it ends. How its threads take turns is in turns.go, how groups that
// share memory do in sharers.go, and its intervals are in interval.go and ring.go.

// group is the processes that share writable memory. One of their threads runs at a time,
// so that they have one log: the intervals, the ring that these stand in, and the ends
// that a timer forces.
type group struct {
	session *session
	procs   []*process    // those that live
	of      *process      // whose log it is: the others share its memory
	pastCPU time.Duration // of those that have left

	cpu     unix.CPUSet // that its threads run on
	turns   turns
	sharers *sharers // nil while it shares no memory with other recorded processes
	// stored says where others that share its memory have stored since this group ran, and
	// paused says that an interval begins when it runs again.
	stored   map[sharedPage]pageLines
	remote   []abi.Range         // that calls of others have written to since
	seen     map[uint64]struct{} // pages of private mappings, by address, that others have changed since, by writing to the file
	cutOff   bool                // others have cut a file that it has mapped: a new interval is to begin
	paused   bool
	hasRun   bool // since its stores were looked for
	regained bool // it has the turn again, and is at no sync point since
	// lastWords are the shared pages that the kernel may write when the group, whose recording is
	// over, has ended.
	lastWords []sharedPage

	objects objectStore
	liveDue bool // it is to be written to a snapshot
	done    bool // nothing more is recorded; only the processes' end is awaited

	cur       *interval
	ring      []*interval // crash: intervals before cur, oldest first
	prev      *interval   // the interval before, between its end and the next one's start
	between   *snapshot   // the memory between them, while a cut is made
	unwritten bool        // prev is not in the file yet
	execEnd   *pendingEnd // the end of the image, while an execve is under way

	spacing time.Duration // CPU time until the next cut
	guessed bool          // how long the first interval lasts follows from a guess of its cut
	// leastSpacing is that of an interval that is full before.
	leastSpacing time.Duration
	timer        forceTimer
	forcedAt     []time.Time // the last forced ends

	lastNumber uint64 // of its events
}

// cpuTime returns the CPU time of the group's processes.
func (g *group) cpuTime() (time.Duration, error) {
	sum := g.pastCPU
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
	g.remote, g.seen, g.cutOff = nil, nil, false
	g.close()
	if g.session.opt.Keep == KeepCrash {
		g.objects.forgetPages()
	}
}

// close gives up the memory of the intervals that are not written.
func (g *group) close() {
	for _, iv := range slices.Concat(g.ring, []*interval{g.cur, g.prev}) { // prev may be the ring's last
		iv.close()
		g.session.dropLog(iv)
	}
	g.session.logMemory.trim()
	g.ring, g.cur, g.prev = nil, nil, nil
}

// shares reports whether processes of the group share their memory.
func (g *group) shares() bool { return len(g.procs) > 1 }

// leave takes a process that has ended, was let go, or has left the memory that it shared, out
// of the group, which ends with its last.
func (g *group) leave(p *process) {
	s := g.session
	if cpu, err := cpuTime(p.pid); err == nil {
		g.pastCPU += cpu
	}
	g.procs = slices.DeleteFunc(g.procs, func(o *process) bool { return o == p })
	if len(g.procs) > 0 {
		return
	}
	for _, t := range g.turns.threads {
		s.scheduler.gone(t.tid)
	}
	p.space.close()
	g.timer.off()
	s.ticker.remove(&g.timer)
	g.part()
	g.close()
	s.groups = slices.DeleteFunc(s.groups, func(o *group) bool { return o == g })
	if err := s.finishWhenOver(); err != nil {
		s.failed(err)
	}
}

// over notes that nothing more of the group is recorded: its processes' end only is awaited.
func (g *group) over() {
	g.done = true
	g.timer.off()
	g.part()
}

// dies is over for a group whose process dies now: its end is written, or will not be, and its
// shadows are gone before it. Where the kernel will write for it in memory that it shares, it
// keeps its turn until it is gone.
func (g *group) dies() {
	g.session.finishBeside(g)
	g.done = true
	g.timer.off()
	g.close()
	g.session.awaitClosed()
	if g.lastWords = g.robustPages(); len(g.lastWords) == 0 {
		g.part()
		return
	}
	g.sharers.noteStores(g)
}
