//go:build linux && amd64

package record

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// The threads of a group take turns, so that one runs at a time and the log has one order.
// A thread keeps its turn until it makes a call that may block, ends, yields, or has had it
// for a while with others waiting. In a call that may block it runs in the kernel without
// the turn, and is ready again when it stops there. What a stop means is not here.

// turns is who runs, who is ready to, and what the log says of it.
type turns struct {
	threads []*thread // those that have not ended, in the order in which they came
	ready   []*thread // those that are stopped and wait for their turn, longest first
	has     *thread   // whose turn it is
	since   time.Time // its turn began
	limits  turnLimits
	logged  *thread // who runs by the log
	why     checkpoint.SchedReason
}

// parked is what is known of a thread while it does not have its turn.
type parked struct {
	next     action          // how it goes on
	waits    bool            // it runs in the kernel
	regs     checkpoint.Regs // as replay has them
	noXState bool            // an interval began without its extended state
	xstate   []byte          // of a thread that job control has stopped in its own code: only signals reach it there
	passed   bool            // it has given the turn to another process at the exit where it still is
	unlogged bool            // it waits at the exit of a call whose effects are in memory and not in the log
}

// alone reports whether the group has one thread.
func (g *group) alone() bool { return len(g.turns.threads) < 2 }

// alone reports whether one thread is recorded.
func (s *session) alone() bool { return len(s.groups) == 1 && s.groups[0].alone() }

// pass gives a thread its turn.
func (g *group) pass(t *thread) error {
	u := &g.turns
	u.has, t.parked.unlogged = t, false
	if err := g.goesOnWith(t); err != nil {
		return err
	}
	g.hasRun = true
	g.beginTurn(t)
	t.atSync = false // it has just been let go on, and is not to yield once more
	// The timer's signal for the turn that it had before is of no use.
	t.sig.draining = g.timer.comes(t)
	if u.logged != t && g.cur != nil && !t.ended {
		t.logEvent(checkpoint.Event{Kind: checkpoint.EventSched, Why: u.why, RegHash: checkpoint.HashRegs(&t.parked.regs), Regs: t.session.debugRegs(&t.parked.regs)})
		u.logged = t
	}
	g.timer.turn(t)
	return nil
}

// newScheduler returns the scheduler that a recording wants.
func newScheduler(opt Options) scheduler {
	if opt.Chaos {
		return newChaos(opt.ChaosSeed)
	}
	return fair{}
}

// beginTurn starts the clock of the turn of t, which has it.
func (g *group) beginTurn(t *thread) {
	g.turns.since = time.Now()
	g.turns.limits = g.session.scheduler.turn(t.tid, g.turns.since)
}

// boundTurn tells the timer when to force an end because others wait for the turn: threads of
// the group, or processes that share its memory. Who has it and waits under the agent gives it up at once.
func (g *group) boundTurn() {
	u := &g.turns
	var ask, at time.Time
	if u.has != nil && g.chooseNext() >= 0 {
		ask, at = u.since.Add(u.limits.slice), u.since.Add(u.limits.force)
	}
	if u.has != nil && g.othersReady() {
		c := g.sharers
		if asks := c.since.Add(c.lasts(u.limits.slice)); ask.IsZero() || asks.Before(ask) {
			ask = asks
		}
		if ends := c.since.Add(c.lasts(u.limits.force)); at.IsZero() || ends.Before(at) {
			at = ends
		}
	}
	g.timer.turnEnds(ask, at)
	if !at.IsZero() && g.timer.endWait() {
		u.has.patience.lose(time.Now())
	}
}

// boundTurns is boundTurn for the group and for those that it shares memory with.
func (g *group) boundTurns() {
	if g.sharers == nil {
		g.boundTurn()
		return
	}
	for _, o := range g.sharers.groups {
		o.boundTurn()
	}
}

// chooseNext returns the index of the thread among those that are ready that is to have the
// next turn, -1 when there is none. What a call has done is logged before another thread of
// the process can see it, or an interval ends with it.
func (g *group) chooseNext() int {
	if len(g.turns.ready) == 0 {
		return -1
	}
	if i := slices.IndexFunc(g.turns.ready, func(t *thread) bool { return t.parked.unlogged }); i >= 0 {
		return i
	}
	var tids, at []int
	for i, t := range g.turns.ready {
		if t.canGoOn() {
			tids, at = append(tids, t.tid), append(at, i)
		}
	}
	if len(tids) == 0 {
		return -1
	}
	if i := g.session.scheduler.next(tids, time.Now()); i >= 0 {
		return at[i]
	}
	return -1
}

// giveUpTurn takes the turn from a thread that goes on by next: once it has stopped in the
// kernel when waits is set, else as soon as it gets its turn again.
func (t *thread) giveUpTurn(next action, waits bool, why checkpoint.SchedReason) {
	u := &t.group().turns
	t.parked.next, t.parked.waits, t.parked.regs = next, waits, t.replayed()
	u.has, u.why = nil, why
	if !waits {
		u.ready = append(u.ready, t)
	}
}

// replayed returns the thread's registers as replay has them: inside a call those of its
// entry.
func (t *thread) replayed() checkpoint.Regs {
	r := regsOf(&t.regs)
	if t.call.in || t.call.pending {
		r = regsOf(&t.call.entry)
		r.R[0] = uint64(t.call.nr)
	}
	r.RFLAGS &^= flagRF
	return r
}

// contexts returns the states of all threads, that of t, which runs, first.
func (g *group) contexts(t *thread) []checkpoint.Context {
	list := []checkpoint.Context{t.context()}
	for _, o := range g.turns.threads {
		if o != t {
			list = append(list, o.parkedContext())
		}
	}
	return list
}

// parkedContext returns the state of a thread that does not have its turn. One that is in
// the kernel has no extended state that could be read: the exit of its call has it.
func (t *thread) parkedContext() checkpoint.Context {
	c := checkpoint.Context{TID: checkpoint.TID(t.tid), Regs: t.parked.regs, OrigRAX: -1, Name: t.name}
	if t.call.in || t.call.pending {
		c.InCall, c.OrigRAX = true, t.call.nr
		t.parked.noXState = true
		return c
	}
	if t.parked.xstate != nil {
		c.XState = t.parked.xstate
		return c
	}
	c.XState = t.xstate()
	return c
}

// collect finds the threads in the kernel that have stopped there.
func (g *group) collect() {
	for _, t := range g.turns.threads {
		if t.parked.waits {
			if ws, ok := t.session.source.poll(t.tid); ok {
				t.stopped(ws)
			}
		}
	}
}

// stopped makes a thread that was in the kernel ready.
func (t *thread) stopped(ws unix.WaitStatus) {
	t.parked.waits, t.parked.next = false, comesTo(ws)
	t.group().turns.ready = append(t.group().turns.ready, t)
	t.group().boundTurns()
}

// onWait answers a stop or an end that was waited for. A thread that does not have the turn
// waits for it, and whoever is next gets it when it is free.
func (t *thread) onWait(ws unix.WaitStatus) error {
	g := t.group()
	u := &g.turns
	var err error
	switch {
	case g.done:
		if by := t.replacedBy(ws); by != nil {
			by.becomeOnly()
			t = by
		}
		err = t.onStop(ws)
	case u.has == t:
		g.timer.leave()
		err = t.onStop(ws)
	case u.has != nil && u.has.call.exec:
		err = t.onOthersExec(ws)
	case t.ended: // the first of its process, after the last
		err = t.onStop(ws)
	default:
		t.stopped(ws)
	}
	if err == nil || t.session.goesOn(err) {
		return g.runReady(err)
	}
	return err
}

// runReady has threads run that are ready, each as far as it comes without waiting, until one
// keeps the turn or none may have it. err is what the last stop ended with.
func (g *group) runReady(err error) error {
	for err == nil || g.session.goesOn(err) {
		next := g.anyTurn()
		if next == nil {
			break
		}
		if err = next.begin(); err != nil {
			next.session.answering = next
		}
	}
	return err
}

// heldBackTick is how often threads that are held back are looked at.
const heldBackTick = time.Millisecond

// heldBack reports whether a group's turn is free, and threads are ready that may not have it.
func (s *session) heldBack() bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool { return !g.done && g.turnFree() && len(g.turns.ready) > 0 })
}

// turnFree reports whether nobody has the turn, of the group or of those that it shares memory
// with.
func (g *group) turnFree() bool {
	if c := g.sharers; c != nil && c.has != nil && c.has.turns.has != nil {
		return false
	}
	return g.turns.has == nil
}

// runReady has threads run that are held back no more.
func (s *session) runReady() error {
	for _, g := range slices.Clone(s.groups) {
		if err := g.runReady(nil); err != nil && !s.goesOn(err) {
			return err
		}
	}
	return nil
}

// begin gives the thread its turn, and has it go on.
func (t *thread) begin() error {
	t.parked.xstate = nil
	g, next := t.group(), t.parked.next
	if g.done {
		return t.goOn(next)
	}
	var err error
	switch dies := isDying(next.status); {
	case dies && g.cur == nil && !g.shares() && g.sharers == nil:
		g.turns.has = t // no interval begins: the one before ends with its death
	case dies: // nothing can be injected into it
		err = t.space().withoutShadow(func() error { return g.pass(t) })
	default:
		err = g.pass(t)
	}
	if err != nil {
		if next, err = t.salvage(err); err != nil {
			return err
		}
	}
	return t.goOn(next)
}

// anyTurn returns the thread of the group, or of those that it shares memory with, that has
// the next turn.
func (g *group) anyTurn() *thread {
	if g.sharers == nil || g.done {
		return g.nextTurn()
	}
	return g.sharers.next()
}

// nextTurn returns the thread that has waited longest for its turn, nil when there is none
// or the turn is not free. Once the recording is over nobody needs one.
func (g *group) nextTurn() *thread {
	u := &g.turns
	if len(u.ready) == 0 || u.has != nil && !g.done {
		return nil
	}
	i := 0
	if !g.done {
		if i = g.chooseNext(); i < 0 {
			return nil
		}
	}
	t := u.ready[i]
	u.ready = slices.Delete(u.ready, i, i+1)
	return t
}

// mustPass returns why the thread, which goes on by next, gives up its turn now; 0 when it
// keeps it.
func (t *thread) mustPass(next action) checkpoint.SchedReason {
	u := &t.group().turns
	if t.group().done || t.group().alone() || next.status != 0 || next.ended || next.sig != 0 || !t.atSync || t.call.in || t.call.pending || t.sig.syncPending || t.group().cur == nil {
		return 0
	}
	yields := t.call.nr == unix.SYS_SCHED_YIELD && t.regs == t.sig.atExit
	if !yields && time.Since(u.since) < u.limits.slice {
		return 0
	}
	t.group().collect()
	if t.group().chooseNext() < 0 {
		t.group().beginTurn(t)
		return 0
	}
	t.session.scheduler.over(t.tid)
	if yields {
		return checkpoint.SchedYield
	}
	return checkpoint.SchedSlice
}
