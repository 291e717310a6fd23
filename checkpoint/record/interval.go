//go:build linux && amd64

package record

import (
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/replay/mem/rangemap"
)

// An interval while it is recorded: how it starts, how it ends, and when. A cut ends one and
// starts the next, at a stop of the program where system calls can be injected.

// interval is one that is recorded, or that stands in the ring.
type interval struct {
	rec      checkpoint.Interval // its events are without the agent's calls
	calls    []agentCalls
	space    *space            // of which it is
	src      pageReader        // memory at its start
	present  ranges            // private pages at its start
	delta    ranges            // of these, what differs from the interval before
	removed  ranges            // pages of the interval before that are gone
	views    ranges            // clean private views of changed files at its start
	extra    map[uint64][]byte // pages no fork would hold, where they differ from the interval before
	bytes    int64             // memory taken, about
	referred int64             // bytes that calls have read and the log refers to
	hash     *pendingHash      // of a forced end, until the pages of both ends were read
	jumps    ranges            // dirty at a forced end because of the agent's jumps alone: no part of that hash
	noPages  bool              // of its end
	made     int               // events by the agent
	atStart  int64             // of bytes, what its start takes
	retained int               // how many snapshots are being written of it
	closes   bool              // it was dropped meanwhile

	byOffset map[uint32]*rangemap.Overlaps[*checkpoint.Mapping] // see viewsAtStart
	files    map[fileID][]uint32                                // see filesAtStart
}

func (l *interval) close() {
	switch {
	case l == nil || l.src == nil:
	case l.retained > 0:
		l.closes = true
	default:
		l.src.close()
		l.src = nil
	}
}

// eventLimit is how many events an interval has, about, and dataLimit how many bytes from outside: what reads the recording holds
// those of one at a time, and refuses to hold more than some hundred MiB (checkpoint.Budget).
const (
	eventLimit = 200_000
	dataLimit  = 32 << 20
)

// eventCount is how many events the interval has, with the agent's.
func (l *interval) eventCount() int { return len(l.rec.Events) + l.made }

// isFull reports whether the interval has n times as much as one should have. What the log refers to counts by half: it takes no
// memory until the interval is written.
func (l *interval) isFull(n int) bool {
	return l.eventCount() > n*eventLimit || l.bytes-l.atStart+l.referred/2 > int64(n)*dataLimit
}

// overfull is from where on an interval ends though cuts are dear: one with more may not be read by default.
const overfull = 4

// intervalEnd says how an interval ends.
type intervalEnd struct {
	kind    checkpoint.EndKind
	forced  bool
	cpu     time.Duration // of the program, 0 is now
	signo   int
	code    int
	reason  string
	noPages bool // memory is not what it was at the end any more
	// contexts are the threads at the end, the one that runs first.
	contexts []checkpoint.Context
}

// cut ends the interval and starts the next at the same stop of t, where calls can be
// injected.
func (g *group) cut(t *thread, b intervalEnd) error {
	start := g.beginBorder()
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if b.forced {
		if err := t.passStored(); err != nil {
			return err
		}
	}
	b.contexts = g.contexts(t)
	if err := g.endInterval(m, b); err != nil {
		return err
	}
	if g.liveDue {
		g.writeLive(g.ring, m, b.contexts, nil)
	}
	g.between = m
	if err := g.startInterval(t, m, b.contexts); err != nil {
		return err
	}
	g.between = nil
	g.noteBorder(start, m)
	return nil
}

// endForced ends the interval where the thread is in its own code. The next begins when the group
// runs again.
func (t *thread) endForced() error {
	g := t.group()
	m, err := t.space().takeSnapshot()
	if err != nil {
		return err
	}
	if err := t.passStored(); err != nil {
		return err
	}
	g.paused = true
	return g.endInterval(m, intervalEnd{kind: checkpoint.EndForced, forced: true, contexts: g.contexts(t)})
}

// endInterval ends the current interval. It becomes g.prev.
func (g *group) endInterval(m *snapshot, b intervalEnd) error {
	cur := g.cur
	if b.cpu == 0 {
		cpu, err := g.cpuTime()
		if err != nil {
			cpu = cur.rec.CPUStart
		}
		b.cpu = cpu
	}
	end := &cur.rec.End
	*end = checkpoint.End{
		Kind: b.kind, Forced: b.forced, Signo: int32(b.signo), ExitCode: int32(b.code),
		Contexts: b.contexts, CPUTime: b.cpu - cur.rec.CPUStart, Reason: b.reason,
	}
	if b.forced {
		cur.hash = m.space.beginHash(m, cur)
		g.session.result.Stats.ForcedEnds++
	}
	g.session.result.Stats.Intervals++
	g.prev, g.cur = cur, nil
	cur.noPages = b.noPages
	if !g.session.streams() {
		g.ring = append(g.ring, cur)
		g.evict(b.cpu)
		return nil
	}
	if !b.noPages {
		if err := g.store(m, cur.hash); err != nil {
			return err
		}
		end.Pages = without(m.refs, m.changed.union(cur.jumps))
	}
	m.space.subtractStart(cur.hash)
	cur.finishHash()
	g.unwritten = true
	return nil
}

// flush writes the interval that endInterval has ended, when a file is
// written all along. Until the next one stands it may still become the last.
func (g *group) flush() error {
	if !g.unwritten || !g.session.streams() {
		return nil
	}
	g.unwritten = false
	defer g.session.dropLog(g.prev)
	g.session.noteWritten(g.of)
	rec, err := g.session.asWritten(g.prev)
	if err != nil {
		return err
	}
	return g.session.out.interval(rec)
}

// store writes the pages that changed since the last shadow, and adds them to the
// hash of the end that they belong to, if that has one.
func (g *group) store(m *snapshot, h *pendingHash) error {
	if m.stored {
		return nil
	}
	m.stored = true
	var err error
	note := h.add
	if g.session.streams() { // what stands there now is subtracted when it has changed
		m.sums = map[uint64]uint64{}
		note = func(addr, n uint64, page []byte) {
			for i := addr / checkpoint.PageSize; n > 0; i, n = i+1, n-1 {
				m.sums[i] = checkpoint.HashPage(i*checkpoint.PageSize, page)
				h.addSum(i, m.sums[i])
			}
		}
	}
	if m.refs, err = g.session.out.storePages(m.reader(), m.dirty, note); err != nil {
		return err
	}
	for a, p := range m.space.changedCopies(m) {
		ref, err := g.session.out.page(p)
		if err != nil {
			return err
		}
		m.refs = append(m.refs, checkpoint.PageEntry{Addr: a, Ref: ref})
	}
	sortEntries(m.refs)
	return nil
}

// startInterval starts the next interval with memory m and with thread t running, the first
// of start.
func (g *group) startInterval(t *thread, m *snapshot, start []checkpoint.Context) error {
	l := &interval{space: m.space, present: m.private, delta: m.dirty, views: m.changed}
	var copies time.Duration // what it took the kernel to copy pages because a shadow held them
	if g.prev != nil {
		l.removed = m.space.removedFrom(m)
		copies = time.Duration(m.dirty.intersect(g.prev.present).count()) * pageCopy
	}
	l.rec = checkpoint.Interval{
		ID: g.session.intervals, PID: int32(g.of.pid), Image: m.space.image, Start: start,
		Maps: m.space.maps.mappings(), Brk: m.space.brk, Delta: g.prev != nil, Artefact: m.space.artefact,
		WallTime: time.Now(),
	}
	g.session.intervals++
	l.extra = m.space.changedCopies(m)
	l.bytes = int64(len(l.extra)+len(l.rec.Maps)) * checkpoint.PageSize / 2
	if g.session.streams() {
		if err := g.store(m, nil); err != nil {
			return err
		}
		l.rec.Pages = append([]checkpoint.PageEntry(nil), m.refs...)
		if g.prev != nil {
			l.rec.Pages = append(l.rec.Pages, removedEntries(l.removed)...)
			sortEntries(l.rec.Pages)
		}
		m.space.noteStart(m)
		g.prev.close()
	}
	l.bytes += int64(m.dirty.count()) * checkpoint.PageSize
	l.atStart = l.bytes
	m.space.sharedNow = m.copies
	var err error
	if l.src, err = m.space.newSource(t, m.private); err != nil {
		return err
	}
	// The fork is the recorder's work, not the program's.
	cpu, err := g.cpuTime()
	if err != nil {
		l.close()
		return err
	}
	l.rec.CPUStart = cpu
	cut := g.cpuSpent() - m.began // not what the log of the one before costs, which is the longer the longer that was
	if err := g.flush(); err != nil {
		l.close()
		return err
	}
	g.cur, g.prev = l, nil
	g.turns.logged = t
	m.space.dirtyBeforeFork, m.space.moved = nil, nil
	m.space.logged = nil
	m.space.noteSwitches()
	m.space.tsc.looked = false // code that was made may be gone
	g.spacing, g.leastSpacing = spacing(g.session.opt.Interval, cut, copies), fullShare*cut
	g.timer.interval(cpu, cpu+g.spacing, cpu+g.spacing+g.session.opt.ForceAfter)
	return nil
}

// firstPage is what a page of a file that is in memory adds to the first cut: it is read, and kept. Later cuts keep those that are new.
const firstPage = 2 * time.Microsecond

// goesOnFirst reports whether the first interval, which has lasted as long as it is meant to, goes on, because its cut will be dear:
// many programs have ended by then. What the cut will take is guessed once, from what is in memory; of later ones it is known.
func (g *group) goesOnFirst(t *thread, cpu time.Duration) bool {
	if g.cur.rec.Delta || g.guessed {
		return false
	}
	g.guessed = true
	status, err := statusOf(t.proc.live)
	if err != nil {
		return false
	}
	pages := func(field string) time.Duration {
		return time.Duration(status.Number(field) << 10 / checkpoint.PageSize)
	}
	s := spacing(g.session.opt.Interval, pages("RssFile")*firstPage, pages("RssAnon")*pageCopy)
	if cpu >= g.cur.rec.CPUStart+s {
		return false
	}
	g.spacing = s
	g.timer.interval(cpu, g.cur.rec.CPUStart+s, g.cur.rec.CPUStart+s+g.session.opt.ForceAfter)
	return true
}

// cpuSpent returns the CPU time of the tracer's thread and of the program: what a cut
// costs is a difference of it, whatever else the machine is doing.
func (g *group) cpuSpent() time.Duration {
	var own unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &own) // the clock exists
	cpu, _ := g.cpuTime()                                     // 0 for a program that is gone
	return time.Duration(own.Nano()) + cpu
}

// intervalShare is how many times as long as the last cut took an interval lasts at least, fullShare one that is full;
// cutShare is the like for what is done between intervals.
const (
	intervalShare = 16
	fullShare     = 2
	cutShare      = 8
)

// pageCopy is what the first write to a page that a shadow holds takes: a fault, and a copy.
// Copies make an interval copiesStretch times as long as it is meant to be at most: those of a
// program that writes everywhere are as many in a longer one.
const (
	pageCopy      = 3 * time.Microsecond
	copiesStretch = 4
)

// spacing returns the CPU time after which an interval that is meant to last wanted ends,
// when the cut before it took cut, and the copies of pages in the one before it took copies. A cut
// costs a fork and a look at every mapping: with tens
// of thousands of mappings that is more than the interval, and a program that had a cut at
// each call would hardly run.
func spacing(wanted, cut, copies time.Duration) time.Duration {
	return max(wanted, intervalShare*cut, min(intervalShare*(cut+copies), copiesStretch*wanted))
}

// without returns the rows that are not in set. Clean private views of a file
// are part of the next table but not of an end: stores through a shared view of
// the same file reach them, and replay need not follow that.
func without(rows []checkpoint.PageEntry, set ranges) []checkpoint.PageEntry {
	if len(set) == 0 {
		return rows
	}
	out := make([]checkpoint.PageEntry, 0, len(rows))
	for _, r := range rows {
		if !set.has(r.Addr / checkpoint.PageSize) {
			out = append(out, r)
		}
	}
	return out
}

// removedEntries are the rows of a delta table for removed pages.
func removedEntries(set ranges) []checkpoint.PageEntry {
	out := make([]checkpoint.PageEntry, 0, set.count())
	_ = set.each(func(page uint64) error {
		out = append(out, checkpoint.PageEntry{Addr: page * checkpoint.PageSize, Ref: checkpoint.PageRef{Kind: checkpoint.PageRemoved}})
		return nil
	})
	return out
}
