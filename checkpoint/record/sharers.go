//go:build linux && amd64

package record

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Processes that share memory. Each has a log of its own and is replayed without the others,
// so what they store in the shared memory comes into a process from outside. One of them runs
// at a time: then it is enough to look, when a process has its turn again, what the others
// have changed, and to log that with the exit of the call at which it had stopped. So the turn
// passes from one process to another at the exit of a call, before that is logged. Where a
// process makes none for long, its interval is ended by force, and the next begins, with the
// memory as it is by then, when it has its turn again.
//
// How processes come to share memory is in joining.go, what they store there in
// sharedstores.go.

// sharers is the groups that share memory.
type sharers struct {
	groups []*group
	has    *group // whose turn it is; nil while the turn is free
	ran    *group // who had it last
	since  time.Time
	cost   time.Duration // of finding out, the last time, what a group had stored
	// content holds the shared pages as they were when a group had had its turn.
	content sharedContent
}

// next returns the thread that has the turn next, nil when somebody has it or nobody can.
func (c *sharers) next() *thread {
	// Two may run where they did when they were brought together by a third. One that dies runs,
	// too, until the kernel has written its last words.
	if slices.ContainsFunc(c.groups, func(o *group) bool { return o.turns.has != nil || o.lastWords != nil }) {
		return nil
	}
	if c.has != nil {
		if t := c.has.nextTurn(); t != nil {
			return t
		}
	}
	// After the one that had it last, in a circle.
	at := slices.Index(c.groups, c.ran) + 1
	for i := range c.groups {
		o := c.groups[(at+i)%len(c.groups)]
		if t := o.nextTurn(); t != nil {
			c.passTo(o)
			return t
		}
	}
	return nil
}

// passTo gives a group the turn.
func (c *sharers) passTo(g *group) {
	start := time.Now()
	c.noteAll(g)
	g.regained = g.regained || c.ran != g
	c.has, c.ran, c.since = g, g, time.Now()
	c.cost = c.since.Sub(start)
}

// lasts returns how long a group keeps the turn that is to last d: longer where it took long to
// find out what the one before had stored.
func (c *sharers) lasts(d time.Duration) time.Duration { return max(d, cutShare*c.cost) }

// othersReady reports whether another group that shares its memory waits for the turn.
func (g *group) othersReady() bool {
	return g.sharers != nil && slices.ContainsFunc(g.sharers.groups, func(o *group) bool { return o != g && slices.ContainsFunc(o.turns.ready, (*thread).canGoOn) })
}

// leavesTurn reports whether the thread, at the exit of its call, gives the turn to another
// process: it has had it for a while, or it yields. Where nobody waits its time begins anew. Before memory that the call
// has moved is known to be elsewhere nobody may change what it shows (noteViews).
func (t *thread) leavesTurn() bool {
	g := t.group()
	c := g.sharers
	if c == nil || c.has != g || t.call.nr == unix.SYS_MREMAP {
		return false
	}
	ready := g.othersReady()
	if ready && t.call.nr == unix.SYS_SCHED_YIELD {
		return true
	}
	over := time.Since(c.since) >= c.lasts(g.turns.limits.slice)
	if over && !ready {
		c.since = time.Now()
	}
	return over && ready
}

// giveUpGroupTurn parks the thread, which goes on by next when its group has the turn again.
func (t *thread) giveUpGroupTurn(next action, why checkpoint.SchedReason) action {
	t.giveUpTurn(next, false, why)
	if c := t.group().sharers; c.has == t.group() {
		c.has = nil
	}
	t.group().boundTurns() // another may run that has just been brought together with it
	return action{parked: true}
}

// pauseForced ends the interval at a forced stop of the thread, and gives the turn to another
// process.
func (t *thread) pauseForced() (action, error) {
	if err := t.endForced(); err != nil {
		return action{}, err
	}
	return t.giveUpGroupTurn(action{}, checkpoint.SchedSlice), nil
}

// goesOnWith is called when a thread gets the turn. Where the log has no exit of a call to
// come, with which it could say what others have stored, a new interval begins.
func (g *group) goesOnWith(t *thread) error {
	comes := t.call.in || t.call.pending
	if g.cur != nil && (len(g.stored)+len(g.remote)+len(g.seen) == 0 && !g.cutOff || comes) || g.cur == nil && !g.paused {
		return nil
	}
	g.paused = false
	contexts := g.contexts(t)
	if g.cutOff && !comes {
		if err := t.space().renewObjects(&t.call); err != nil {
			return err
		}
	}
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if g.cur != nil {
		if err := g.endInterval(m, intervalEnd{kind: checkpoint.EndSync, noPages: true, contexts: contexts}); err != nil {
			return err
		}
	}
	g.stored, g.remote, g.seen = nil, nil, nil
	if comes {
		return g.startCopied(t, m, contexts)
	}
	return g.startInterval(t, m, contexts)
}

// atCallExit is the exit of a system call. The turn may pass to another process first.
func (t *thread) atCallExit() (action, error) {
	g := t.group()
	if waits, next, err := t.afterTry(); waits || err != nil {
		return next, err
	}
	t.call.noteRemote(int64(t.regs.Rax))
	t.noteViews()
	t.joinFiles(t.call.filesWritten()) // mapped since its entry
	if g.sharers != nil {
		for _, f := range t.call.targets {
			g.sharers.noteWritten(g, f.id, t.call.joined)
		}
		t.call.joined = false
	}
	if (!t.call.patched || t.call.overAgent) && t.joinsBy(int64(t.regs.Rax)) {
		return t.leaveAtExit(checkpoint.SchedBlocked), nil
	}
	if !t.parked.passed && t.leavesTurn() {
		t.parked.passed = true
		return t.leaveAtExit(checkpoint.SchedSlice), nil
	}
	t.parked.passed = false
	return t.onExit()
}

// leaveAtExit parks the thread at the exit of its call, where it is again when it goes on. What
// the call has done is in memory by then, and not in the log.
func (t *thread) leaveAtExit(why checkpoint.SchedReason) action {
	t.regs = t.call.entry // as they were while it was in the call
	t.parked.unlogged = true
	return t.giveUpGroupTurn(action{status: callStop}, why)
}
