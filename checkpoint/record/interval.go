//go:build linux && amd64

package record

import (
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/replay/mem/rangemap"
)

// An interval while it is recorded: how it starts, how it ends, and when.

// live is an interval that is recorded or stands in the ring.
type live struct {
	rec     checkpoint.Interval
	space   *space            // of which it is
	src     pageReader        // memory at its start
	present ranges            // private pages at its start
	delta   ranges            // of these, what differs from the interval before
	removed ranges            // pages of the interval before that are gone
	views   ranges            // clean private views of changed files at its start
	extra   map[uint64][]byte // pages no fork would hold, where they differ from the interval before
	bytes   int64             // memory taken, about
	hash    *pendingHash      // of a forced end, until the pages of both ends were read

	byOffset map[uint32]*rangemap.Overlaps[*checkpoint.Mapping] // see viewsAtStart
}

func (l *live) close() {
	if l != nil && l.src != nil {
		l.src.close()
		l.src = nil
	}
}

// border says how an interval ends.
type border struct {
	kind    checkpoint.EndKind
	forced  bool
	cpu     time.Duration // of the program, 0 is now
	signo   int
	code    int
	reason  string
	noPages bool // memory is not what it was at the end any more
	context *checkpoint.Context
}

// border ends the interval and starts the next at the same moment. The program
// is at a stop where calls can be injected.
func (g *group) border(t *thread, b border) error {
	start := time.Now()
	m, err := t.space().look()
	if err != nil {
		return err
	}
	ctx := t.context()
	b.context = &ctx
	if err := g.closeInterval(m, b); err != nil {
		return err
	}
	g.between = m
	if err := g.openInterval(t, m, ctx); err != nil {
		return err
	}
	g.between = nil
	g.session.result.Stats.Border += time.Since(start)
	return nil
}

// closeInterval ends the current interval. It becomes g.prev.
func (g *group) closeInterval(m *moment, b border) error {
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
		Contexts: []checkpoint.Context{*b.context}, CPUTime: b.cpu - cur.rec.CPUStart, Reason: b.reason,
	}
	if b.forced {
		cur.hash = m.space.beginHash(m, cur)
		g.session.result.Stats.ForcedEnds++
	}
	g.session.result.Stats.Intervals++
	g.prev, g.cur = cur, nil
	if !g.session.out.open() {
		g.ring = append(g.ring, cur)
		return g.evict(b.cpu)
	}
	if !b.noPages {
		if err := g.store(m, cur.hash); err != nil {
			return err
		}
		end.Pages = without(m.refs, m.changed)
	}
	cur.finishHash()
	g.unwritten = true
	return nil
}

// flush writes the interval that closeInterval has ended, when a file is
// written all along. Until the next one stands it may still become the last.
func (g *group) flush() error {
	if !g.unwritten || !g.session.out.open() {
		return nil
	}
	g.unwritten = false
	return g.session.out.interval(&g.prev.rec)
}

// store writes the pages that changed since the last shadow, and adds them to the
// hash of the end that they belong to, if that has one.
func (g *group) store(m *moment, h *pendingHash) error {
	if m.stored {
		return nil
	}
	m.stored = true
	err := eachPage(m.space.reader(), m.dirty, func(addr uint64, page []byte) error {
		h.add(addr, page)
		ref, err := g.session.out.page(page)
		m.refs = append(m.refs, checkpoint.PageEntry{Addr: addr, Ref: ref})
		return err
	})
	if err != nil {
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

// openInterval starts the next interval at moment m, with the thread in ctx.
func (g *group) openInterval(t *thread, m *moment, ctx checkpoint.Context) error {
	l := &live{space: m.space, present: m.private, delta: m.dirty, views: m.changed}
	if g.prev != nil {
		l.removed = m.space.removedFrom(m)
	}
	l.rec = checkpoint.Interval{
		ID: g.nextID, PID: int32(t.proc.pid), Image: m.space.image, Start: []checkpoint.Context{ctx},
		Maps: m.space.maps.mappings(), Brk: m.space.brk, Delta: g.prev != nil, Artefact: m.space.artefact,
		WallTime: time.Now(),
	}
	g.nextID++
	l.extra = m.space.changedCopies(m)
	l.bytes = int64(len(l.extra)+len(l.rec.Maps)) * checkpoint.PageSize / 2
	if g.session.out.open() {
		if err := g.store(m, nil); err != nil {
			return err
		}
		l.rec.Pages = append([]checkpoint.PageEntry(nil), m.refs...)
		if g.prev != nil {
			l.rec.Pages = append(l.rec.Pages, removedEntries(l.removed)...)
			sortEntries(l.rec.Pages)
		}
		g.prev.close()
	}
	l.bytes += int64(m.dirty.count()) * checkpoint.PageSize
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
	if err := g.flush(); err != nil {
		l.close()
		return err
	}
	g.cur, g.prev = l, nil
	m.space.accDirty, m.space.moved = nil, nil
	m.space.logged = map[uint64][]byte{}
	g.spacing = spacing(g.session.opt.Interval, g.borderTime()-m.began)
	g.preempt.interval(cpu + g.spacing + g.session.opt.ForceAfter)
	return nil
}

// borderTime returns the CPU time of the tracer's thread and of the program: what a
// border costs is a difference of it, whatever else the machine is doing.
func (g *group) borderTime() time.Duration {
	var own unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &own) // the clock exists
	cpu, _ := g.cpuTime()                                     // 0 for a program that is gone
	return time.Duration(own.Nano()) + cpu
}

// borderShare is how many times as long as the last border an interval lasts at
// least.
const borderShare = 8

// spacing returns the CPU time after which an interval that is meant to last
// interval ends, when the border before it took border. A border costs a fork and
// a look at every mapping: with tens of thousands of mappings that is more than the
// interval, and a program that had a border at each call would hardly run.
func spacing(interval, border time.Duration) time.Duration { return max(interval, borderShare*border) }

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
