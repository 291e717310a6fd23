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
// without. Pages that are kept meanwhile wait for that one, too. A process stands still until what its memory is there is written,
// and the rest is written beside it, by another thread, from shadows that stay until then.

// live is a snapshot that is being written.
type live struct {
	asked   *request
	out     *output
	written []*process
	pasts   []past     // of the processes whose memory is written
	over    chan error // gets the error of writing them, once that is done; nil before it begins
}

// errNoRing says that there is nothing to take a snapshot of.
var errNoRing = errors.New("it keeps everything (--keep always), which is in its file when it ends; snapshots are of a ring")

// errOwnPath says that a snapshot would be replaced at the end.
var errOwnPath = errors.New("the recording itself goes to this file when the program crashes; choose another name")

// ErrNothingYet says that no process was in a state in which it could be written.
var ErrNothingYet = errors.New("nothing is recorded at this moment: a program is being executed, or all are let go")

// ErrBusy says that one snapshot has begun, of processes that are not at a place yet where they can be written.
var ErrBusy = errors.New("another snapshot is being taken")

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
	case len(s.live.pasts) == 0:
		s.endLive(ErrNothingYet)
	default:
		s.writeBeside()
	}
}

// besideLimit is how many snapshots are written at once.
const besideLimit = 4

// writeBeside has the snapshot written by another thread, which says when it has. Other snapshots may begin.
func (s *session) writeBeside() {
	if len(s.beside) >= besideLimit {
		s.finishLive(s.beside[0])
	}
	l := s.live
	l.over = make(chan error, 1)
	s.live, s.beside = nil, append(s.beside, l)
	go func() {
		var err error
		for i := range l.pasts {
			if err == nil {
				err = l.pasts[i].write()
			}
		}
		l.over <- err
		s.asks.ask(&request{written: l})
	}()
}

// finishLive waits until a snapshot is written, and makes it whole.
func (s *session) finishLive(l *live) {
	i := slices.Index(s.beside, l)
	if i < 0 {
		return // it was waited for
	}
	s.beside = slices.Delete(s.beside, i, i+1)
	err := <-l.over
	for i := range l.pasts {
		p := &l.pasts[i]
		if p.begun {
			l.written = append(l.written, p.group.of)
		}
		if err == nil && slices.ContainsFunc(p.from, func(iv *interval) bool { return isLost(iv.src) }) {
			err = ErrLost // and was perhaps read as empty
		}
	}
	if err == nil {
		err = s.withLive(l, s.writeManifest)
	}
	s.closeLive(l, err)
}

// finishBeside waits for the snapshots that hold shadows of a group, or for all if that is nil.
func (s *session) finishBeside(of *group) {
	for _, l := range slices.Clone(s.beside) {
		if of == nil || l.has(of) {
			s.finishLive(l)
		}
	}
}

// has reports whether the snapshot has something of the group.
func (l *live) has(g *group) bool {
	for i := range l.pasts { // of which another thread may be writing
		if l.pasts[i].group == g {
			return true
		}
	}
	return false
}

// waitsInCall reports whether nothing of the group runs its own code. One that executes a program,
// or is at a stop between, does not wait.
func (g *group) waitsInCall() bool {
	t := g.turns.has
	return t == nil && !g.turnWaits() || t != nil && t.call.in && !t.call.exec && !t.call.entering
}

// turnWaits reports whether a thread is about to get the turn.
func (g *group) turnWaits() bool { return g.cur != nil && len(g.turns.ready) > 0 }

// endLive ends the snapshot that has begun, if one has, which is not written then.
func (s *session) endLive(err error) {
	if s.live == nil {
		return
	}
	for _, g := range s.groups {
		g.liveDue = false
		g.timer.ask(false)
	}
	l := s.live
	s.live = nil
	s.closeLive(l, err)
}

// closeLive says how a snapshot has ended, and gives up what was held for it.
func (s *session) closeLive(l *live, err error) {
	if err != nil {
		l.out.abort()
	}
	for i := range l.pasts {
		s.unretain(l.pasts[i].from)
	}
	l.asked.end(err)
}

// withLive has f write to a snapshot.
func (s *session) withLive(l *live, f func() error) error {
	out, written, missing, progress := s.out, s.written, s.result.Missing, s.opt.Progress
	s.out, s.written, s.opt.Progress = l.out, l.written, nil
	err := f()
	l.written = s.written
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
	cur := g.cur
	if cur == nil {
		g.writeLive(list, m, contexts, nil)
		return
	}
	cpu, err := g.cpuTime()
	if err != nil {
		cpu = cur.rec.CPUStart
	}
	end := checkpoint.End{Contexts: contexts, CPUTime: cpu - cur.rec.CPUStart}
	g.writeLive(append(list, cur), m, contexts, &end)
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

// writeLive has intervals, the last of which ends with memory m, written to the snapshot. Where that has not ended,
// end is how it does there.
func (g *group) writeLive(list []*interval, m *snapshot, contexts []checkpoint.Context, end *checkpoint.End) {
	s := g.session
	g.liveDue = false
	g.timer.ask(false)
	if len(list) == 0 {
		return
	}
	if err := g.takeLive(list, *m, contexts, end); err != nil {
		s.endLive(err)
	}
}

// takeLive takes what the snapshot has of the group. m is a copy: the pages that are written here are not in the recording.
func (g *group) takeLive(list []*interval, m snapshot, contexts []checkpoint.Context, end *checkpoint.End) error {
	s := g.session
	list, err := s.dropLost(list)
	if err != nil {
		return err
	}
	ring := slices.DeleteFunc(slices.Clone(list), func(iv *interval) bool { return iv == g.cur })
	defer func() { g.ring = ring }()
	g.ring = copiesOf(list)
	last := g.ring[len(g.ring)-1]
	if end != nil {
		last.rec.End, last.noPages = *end, true
	}
	last.rec.End.Kind, last.rec.End.Reason = checkpoint.EndStop, liveReason
	final := &checkpoint.Final{Maps: m.space.maps.mappings(), Contexts: contexts}
	if err := m.space.keepDebuggerSet(&call{}, final); err != nil {
		return err
	}
	var p past
	err = s.withLive(s.live, func() (err error) {
		p, err = g.takePast(&m, final)
		return err
	})
	if err != nil {
		return err
	}
	p.from = list
	s.retain(list)
	s.live.pasts = append(s.live.pasts, p)
	return nil
}

// copiesOf returns copies of intervals, of which what is made when they are written can be changed, beside the session.
func copiesOf(list []*interval) []*interval {
	out := make([]*interval, len(list))
	for i, iv := range list {
		c := *iv
		c.retained, c.closes = 0, false
		if sh, ok := iv.src.(*shadow); ok {
			c.src = sh.memReader // its window is the tracer's
		}
		c.extra = maps.Clone(iv.extra)
		c.calls = slices.Clone(iv.calls)
		for i := range c.calls {
			c.calls[i].from, c.calls[i].held = nil, nil // the original's
		}
		if iv.hash != nil {
			h := *iv.hash
			c.hash = &h
		}
		out[i] = &c
	}
	return out
}

// retain has intervals keep their memory until they are not retained any more.
func (s *session) retain(list []*interval) {
	for _, iv := range list {
		iv.retained++
	}
}

// unretain has them give it up that were dropped meanwhile.
func (s *session) unretain(list []*interval) {
	for _, iv := range list {
		if iv.retained--; iv.retained == 0 && iv.closes {
			iv.close()
			s.dropLog(iv)
		}
	}
	s.logMemory.trim()
}
