//go:build linux && amd64

package record

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"vplay/checkpoint"
)

// A snapshot of the recording: what the ring holds is written to a file while the program runs on,
// and stays in the ring. Each process is written at the next place that its log can name: where a
// thread of it waits in a call at once, else at the end of a call, or where the timer forces an end.
//
// What is written are copies of the intervals, so that a later recording is as it would be
// without. Pages that are kept meanwhile wait for that one, too.

// live is a snapshot that is being written.
type live struct {
	asked   *request
	out     *output
	written []*process
}

// errNoRing says that there is nothing to take a snapshot of.
var errNoRing = errors.New("it keeps everything (--keep always), which is in its file when it ends; snapshots are of a ring")

// errOwnPath says that a snapshot would be replaced at the end.
var errOwnPath = errors.New("the recording itself goes to this file when the program crashes; choose another name")

// ErrNothingYet says that no process was in a state in which it could be written.
var ErrNothingYet = errors.New("nothing is recorded at this moment: a program is being executed, or all are let go")

// ErrBusy says that one snapshot is being written.
var ErrBusy = errors.New("another snapshot is being written")

// beginLive begins a snapshot.
func (s *session) beginLive(r *request) {
	switch {
	case s.opt.Keep == KeepAlways:
		r.end(errNoRing)
		return
	case s.live != nil:
		r.end(ErrBusy)
		return
	case s.isOwnPath(r.path):
		r.end(errOwnPath)
		return
	}
	out := &output{}
	if err := out.create(r.path); err != nil {
		r.end(err)
		return
	}
	s.live = &live{asked: r, out: out}
	for _, g := range s.groups {
		g.liveDue = !g.done
	}
}

// isOwnPath reports whether path, a whole one, is where the recording itself will be written.
func (s *session) isOwnPath(path string) bool {
	own, err := filepath.Abs(s.opt.Path)
	return err == nil && s.opt.Name == nil && filepath.Clean(path) == own
}

// goOnLive writes the processes whose threads wait, and has the others come to a place where they
// can be written. With the last the snapshot is whole.
func (s *session) goOnLive() {
	if s.live == nil {
		return
	}
	left := false
	for _, g := range s.groups {
		if g.liveDue && g.waitsInCall() {
			g.writeWaiting()
		}
		if s.live == nil {
			return
		}
		if g.liveDue = g.liveDue && !g.done; g.liveDue {
			g.timer.ask(true)
			left = true
		}
	}
	switch {
	case left:
	case len(s.live.written) == 0:
		s.endLive(ErrNothingYet)
	default:
		s.endLive(s.withLive(s.writeManifest))
	}
}

// waitsInCall reports whether nothing of the group runs its own code. One that executes a program,
// or is at a stop between, does not wait.
func (g *group) waitsInCall() bool {
	t := g.turns.has
	return t == nil && !g.turnWaits() || t != nil && t.call.in && !t.call.exec && !t.call.entering
}

// turnWaits reports whether a thread is about to get the turn.
func (g *group) turnWaits() bool { return g.cur != nil && len(g.turns.ready) > 0 }

// endLive ends the snapshot, if one is being written, and says how.
func (s *session) endLive(err error) {
	if s.live == nil {
		return
	}
	for _, g := range s.groups {
		g.liveDue = false
		g.timer.ask(false)
	}
	if err != nil {
		s.live.out.abort()
	}
	s.live.asked.end(err)
	s.live = nil
}

// withLive has f write to the snapshot.
func (s *session) withLive(f func() error) error {
	out, written, missing, progress := s.out, s.written, s.result.Missing, s.opt.Progress
	s.out, s.written, s.opt.Progress = s.live.out, s.live.written, nil
	err := f()
	s.live.written = s.written
	s.out, s.written, s.result.Missing, s.opt.Progress = out, written, missing, progress
	return err
}

// writeWaiting writes a process whose threads all wait: its interval ends inside a call, and what
// that has written by now is not in its log.
func (g *group) writeWaiting() {
	list := slices.Clone(g.ring)
	sp, contexts := g.of.space, g.waitingContexts()
	m, err := sp.takeSnapshot()
	if err != nil {
		g.session.endLive(err)
		return
	}
	if g.cur != nil {
		cur := *g.cur
		cpu, err := g.cpuTime()
		if err != nil {
			cpu = cur.rec.CPUStart
		}
		cur.noPages = true
		cur.rec.End = checkpoint.End{Kind: checkpoint.EndStop, Contexts: contexts, CPUTime: cpu - cur.rec.CPUStart, Reason: liveReason}
		list = append(list, &cur)
	}
	g.writeLive(list, m, contexts)
}

// waitingContexts returns the states of the group's threads, all of which wait, the one that ran last
// by the log first.
func (g *group) waitingContexts() []checkpoint.Context {
	first := g.turns.logged
	if t := g.turns.has; t != nil {
		t.parked.regs = t.replayed()
		first = t
	}
	var list []checkpoint.Context
	for _, t := range g.turns.threads {
		c := t.parkedContext()
		if t == first {
			list = slices.Insert(list, 0, c)
		} else {
			list = append(list, c)
		}
	}
	return list
}

// liveReason says why the last interval of a snapshot ends.
const liveReason = "a snapshot was taken here; the program ran on"

// writeLive writes intervals, the last of which ends with memory m, to the snapshot.
func (g *group) writeLive(list []*interval, m *snapshot, contexts []checkpoint.Context) {
	s := g.session
	g.liveDue = false
	g.timer.ask(false)
	if len(list) == 0 {
		return
	}
	ring := g.ring
	defer func() { g.ring, m.stored, m.refs = ring, false, nil }()
	g.ring = copiesOf(list)
	last := &g.ring[len(g.ring)-1].rec.End
	last.Kind, last.Reason = checkpoint.EndStop, liveReason
	final := &checkpoint.Final{Maps: m.space.maps.mappings(), Contexts: contexts}
	err := m.space.keepDebuggerSet(&call{}, final)
	if err == nil {
		err = s.withLive(func() error { return g.writeEnd(m, final) })
	}
	if err != nil {
		s.endLive(err)
	}
}

// copiesOf returns copies of intervals, of which what is made when they are written can be changed.
func copiesOf(list []*interval) []*interval {
	out := make([]*interval, len(list))
	for i, iv := range list {
		c := *iv
		c.extra = maps.Clone(iv.extra)
		c.calls = slices.Clone(iv.calls)
		for i := range c.calls {
			c.calls[i].from = nil // the original's
		}
		if iv.hash != nil {
			h := *iv.hash
			c.hash = &h
		}
		out[i] = &c
	}
	return out
}
