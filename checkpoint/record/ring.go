//go:build linux && amd64

package record

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/replay/mem/rangemap"
)

// live is an interval that is recorded or stands in the ring.
type live struct {
	rec     checkpoint.Interval
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

// moment is what the recorder sees of a stopped program's memory.
type moment struct {
	began   time.Duration // borderTime when the recorder began to look
	private ranges
	dirty   ranges            // changed since the last shadow
	gone    ranges            // private pages of the interval's start that are no longer there
	copies  map[uint64][]byte // shared pages, and those a fork would not hold
	changed ranges            // those of copies that belong to changed files
	refs    []checkpoint.PageEntry
	stored  bool
}

// Bits of rflags that belong to the tracer and to fault delivery.
const (
	flagTF = 1 << 8
	flagRF = 1 << 16
)

// context returns the thread's state at the current stop.
func (t *tracer) context() checkpoint.Context {
	c := checkpoint.Context{TID: int32(t.pid), Regs: regsOf(&t.regs), OrigRAX: -1}
	c.Regs.RFLAGS &^= flagTF | flagRF
	if t.call.in {
		c.InCall, c.OrigRAX = true, t.call.nr
		c.Regs = t.entryRegs()
	}
	x, err := getXState(t.pid)
	if err != nil {
		t.log.Error().Err(err).Msg("extended state")
	}
	c.XState = x
	return c
}

// look takes stock of the program's memory.
func (t *tracer) look() (*moment, error) {
	began := t.borderTime()
	list, err := readMaps(t.pid, &t.objs)
	if err != nil {
		return nil, err
	}
	if d := t.maps.differs(list); d != "" {
		t.result.Stats.MapDrift++
		t.result.Stats.MapDriftNote = d
		t.log.Debug().Str("what", d).Msg("map model corrected")
	}
	t.maps.adopt(list)
	c, err := t.pmap.takeCensus(t.maps.all(), t.objs.list)
	if err != nil {
		return nil, err
	}
	c.shared = c.shared.union(t.hiddenShared(c.shared))
	if err := t.keepFilePages(c.file); err != nil {
		return nil, err
	}
	if err := errors.Join(t.keepReadShared(c.shared), t.keepHoles(c.shared)); err != nil {
		return nil, err
	}
	if err := t.keepOriginals(t.maps.all(), c.private); err != nil {
		return nil, err
	}
	m := &moment{began: began, private: c.private, dirty: c.dirty, changed: c.changed, copies: map[uint64][]byte{}}
	for _, set := range []ranges{c.shared, c.unforkd, c.changed} {
		cp, err := copyPages(t.reader(), set)
		if err != nil {
			return nil, err
		}
		for a, b := range cp.pages {
			m.copies[a] = b
		}
	}
	if t.outsideFresh {
		// What a child has stored since the call's exit belongs to the next one.
		for a, p := range t.outside {
			if _, ok := m.copies[a]; ok {
				m.copies[a] = p
			}
		}
	}
	last := t.cur
	if last == nil {
		last = t.prev
	}
	if last == nil {
		m.dirty = m.private
		return m, nil
	}
	m.gone = last.present.minus(m.private)
	if cp, ok := last.src.(*copySource); ok {
		m.dirty = t.compare(cp, m.private)
	}
	if paranoid && !isLost(last.src) {
		defer func() { t.verifyClean(m, last) }()
	}
	m.dirty = m.dirty.union(t.accDirty).union(t.moved).intersect(m.private).union(m.private.minus(last.present))
	return m, nil
}

// paranoid makes every border compare the pages that are held to be clean with
// those of the interval's start. Tests set it.
var paranoid bool

// verifyClean counts clean pages that are not what they were.
func (t *tracer) verifyClean(m *moment, last *live) {
	now, was := make([]byte, checkpoint.PageSize), make([]byte, checkpoint.PageSize)
	_ = m.private.minus(m.dirty).each(func(page uint64) error {
		addr := page * checkpoint.PageSize
		if t.readMem(addr, now) != len(now) || last.src.readPage(addr, was) != nil || string(now) != string(was) {
			t.result.Stats.MissedPages++
			t.log.Error().Uint64("addr", addr).Msg("page changed without being dirty")
		}
		return nil
	})
}

// compare returns the pages that differ from their copies.
func (t *tracer) compare(cp *copySource, set ranges) ranges {
	var out ranges
	b := make([]byte, checkpoint.PageSize)
	_ = set.each(func(page uint64) error {
		old, ok := cp.pages[page*checkpoint.PageSize]
		if !ok || t.readMem(page*checkpoint.PageSize, b) != len(b) || string(old) != string(b) {
			out.add(page, page+1)
		}
		return nil
	})
	return out
}

// changedCopies returns the copied pages that differ from those before.
func (t *tracer) changedCopies(m *moment) map[uint64][]byte {
	out := map[uint64][]byte{}
	for a, b := range m.copies {
		if old, ok := t.sharedNow[a]; !ok || string(old) != string(b) {
			out[a] = b
		}
	}
	return out
}

// startContent reads a page as it was at the interval's start; false when it
// was not mapped, or was zero because nobody had touched it. Replay must find the
// same: a page of a file that was mapped there and never touched is kept now.
func (t *tracer) startContent(cur *live, addr uint64, b []byte) bool {
	present := cur.present.has(addr / checkpoint.PageSize)
	if m := mappedAt(cur.rec.Maps, addr); m == nil || !present && m.Object == 0 && m.Flags&checkpoint.MapShared == 0 {
		return false
	}
	if cur.src.readPage(addr, b) != nil {
		return false
	}
	if present {
		return true
	}
	if k := cur.keyAt(addr); k.object != 0 && !t.objs.list[k.object-1].Changed {
		if err := t.keepObjectPage(k, append([]byte(nil), b...)); err != nil {
			t.log.Error().Err(err).Msg("page of a file")
		}
	}
	return true
}

// border ends the interval and starts the next at the same moment. The program
// is at a stop where calls can be injected.
func (t *tracer) border(b border) error {
	start := time.Now()
	m, err := t.look()
	if err != nil {
		return err
	}
	ctx := t.context()
	b.context = &ctx
	if err := t.closeInterval(m, b); err != nil {
		return err
	}
	t.between = m
	if err := t.openInterval(m, ctx); err != nil {
		return err
	}
	t.between = nil
	t.result.Stats.Border += time.Since(start)
	return nil
}

// closeInterval ends the current interval. It becomes t.prev.
func (t *tracer) closeInterval(m *moment, b border) error {
	cur := t.cur
	if b.cpu == 0 {
		cpu, err := cpuTime(t.pid)
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
		cur.hash = t.beginHash(m, cur)
		t.result.Stats.ForcedEnds++
	}
	t.result.Stats.Intervals++
	t.prev, t.cur = cur, nil
	if !t.out.open() {
		t.ring = append(t.ring, cur)
		return t.evict(b.cpu)
	}
	if !b.noPages {
		if err := t.store(m, cur.hash); err != nil {
			return err
		}
		end.Pages = without(m.refs, m.changed)
	}
	cur.finishHash()
	t.unwritten = true
	return nil
}

// flush writes the interval that closeInterval has ended, when a file is
// written all along. Until the next one stands it may still become the last.
func (t *tracer) flush() error {
	if !t.unwritten || !t.out.open() {
		return nil
	}
	t.unwritten = false
	return t.out.interval(&t.prev.rec)
}

// store writes the pages that changed since the last shadow, and adds them to the
// hash of the end that they belong to, if that has one.
func (t *tracer) store(m *moment, h *pendingHash) error {
	if m.stored {
		return nil
	}
	m.stored = true
	err := eachPage(t.reader(), m.dirty, func(addr uint64, page []byte) error {
		h.add(addr, page)
		ref, err := t.out.page(page)
		m.refs = append(m.refs, checkpoint.PageEntry{Addr: addr, Ref: ref})
		return err
	})
	if err != nil {
		return err
	}
	for a, p := range t.changedCopies(m) {
		ref, err := t.out.page(p)
		if err != nil {
			return err
		}
		m.refs = append(m.refs, checkpoint.PageEntry{Addr: a, Ref: ref})
	}
	sortEntries(m.refs)
	return nil
}

// openInterval starts the next interval at moment m, with the thread in ctx.
func (t *tracer) openInterval(m *moment, ctx checkpoint.Context) error {
	l := &live{present: m.private, delta: m.dirty, views: m.changed}
	if t.prev != nil {
		l.removed = t.removedFrom(m)
	}
	l.rec = checkpoint.Interval{
		ID: t.nextID, PID: int32(t.pid), Image: t.image, Start: []checkpoint.Context{ctx},
		Maps: t.maps.mappings(), Brk: t.brk, Delta: t.prev != nil, Artefact: t.artefact,
		WallTime: time.Now(),
	}
	t.nextID++
	l.extra = t.changedCopies(m)
	l.bytes = int64(len(l.extra)+len(l.rec.Maps)) * checkpoint.PageSize / 2
	if t.out.open() {
		if err := t.store(m, nil); err != nil {
			return err
		}
		l.rec.Pages = append([]checkpoint.PageEntry(nil), m.refs...)
		if t.prev != nil {
			l.rec.Pages = append(l.rec.Pages, removedEntries(l.removed)...)
			sortEntries(l.rec.Pages)
		}
		t.prev.close()
	}
	l.bytes += int64(m.dirty.count()) * checkpoint.PageSize
	t.sharedNow = m.copies
	var err error
	if l.src, err = t.newSource(m.private); err != nil {
		return err
	}
	// The fork is the recorder's work, not the program's.
	cpu, err := cpuTime(t.pid)
	if err != nil {
		l.close()
		return err
	}
	l.rec.CPUStart = cpu
	if err := t.flush(); err != nil {
		l.close()
		return err
	}
	t.cur, t.prev = l, nil
	t.accDirty, t.moved = nil, nil
	t.logged = map[uint64][]byte{}
	t.spacing = spacing(t.opt.Interval, t.borderTime()-m.began)
	t.preempt.interval(cpu + t.spacing + t.opt.ForceAfter)
	return nil
}

// borderTime returns the CPU time of the tracer's thread and of the program: what a
// border costs is a difference of it, whatever else the machine is doing.
func (t *tracer) borderTime() time.Duration {
	var own unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &own) // the clock exists
	cpu, _ := cpuTime(t.pid)                                  // 0 for a program that is gone
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

// removedFrom returns the pages that the next table does not have any more.
func (t *tracer) removedFrom(m *moment) ranges {
	out := m.gone
	for a := range m.copies {
		p := a / checkpoint.PageSize
		if out.has(p) {
			out = out.minus(ranges{{p, p + 1}})
		}
	}
	for a := range t.sharedNow {
		p := a / checkpoint.PageSize
		if _, ok := m.copies[a]; !ok && !m.private.has(p) {
			out = out.union(ranges{{p, p + 1}})
		}
	}
	return out
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

// evict drops the oldest intervals while the ring is over its bounds; the
// newest always stays.
func (t *tracer) evict(now time.Duration) error {
	keep := time.Duration(t.opt.KeepSeconds * float64(time.Second))
	var bytes int64
	for _, iv := range t.ring {
		bytes += iv.bytes
	}
	for len(t.ring) > 1 {
		first, second := t.ring[0], t.ring[1]
		if bytes <= t.opt.RingBytes && now-second.rec.CPUStart < keep {
			return nil
		}
		bytes -= first.bytes
		t.dropOldest()
	}
	return nil
}

// dropOldest drops the first interval of the ring, which has a second.
func (t *tracer) dropOldest() {
	first, second := t.ring[0], t.ring[1]
	for a, p := range first.extra {
		if _, ok := second.extra[a]; !ok && !second.isGone(a) {
			second.extra[a] = p
		}
	}
	first.close()
	t.ring = t.ring[1:]
}

// isGone reports whether a copied page of the interval before is not part of
// this one: its range is no longer mapped.
func (l *live) isGone(addr uint64) bool { return mappedAt(l.rec.Maps, addr) == nil }

// beginGap ends the interval at the entry of a call whose effects cannot be
// listed.
func (t *tracer) beginGap(why string) error {
	t.log1(checkpoint.Event{Kind: checkpoint.EventGap, NR: t.call.nr, Reason: why})
	m, err := t.look()
	if err != nil {
		return err
	}
	ctx := t.context()
	t.call.gap = true
	t.result.Stats.Gaps++
	return t.closeInterval(m, border{kind: checkpoint.EndGap, reason: why, context: &ctx})
}

// endGap starts the next interval at the exit of the call.
func (t *tracer) endGap(ret int64) error {
	c := &t.call
	if c.sharing {
		return t.stopSharing()
	}
	interrupted := isRestart(ret)
	ctx := t.context()
	if interrupted {
		// Its exit is the new interval's first event.
		ctx.InCall, ctx.OrigRAX = true, c.nr
		ctx.Regs.R[0] = uint64(c.nr)
		c.pending = true
	}
	m, err := t.look()
	if err != nil {
		return err
	}
	c.gap = false
	if interrupted {
		// No call can be injected here without losing the restart.
		return t.openCopied(m, ctx)
	}
	if err := t.openInterval(m, ctx); err != nil {
		return err
	}
	if err := t.afterCall(ret); err != nil {
		return err
	}
	return t.syncPoint()
}

// openCopied is openInterval where nothing can be injected: the pages are
// copied.
func (t *tracer) openCopied(m *moment, ctx checkpoint.Context) error {
	was := t.noShadow
	t.noShadow = true
	err := t.openInterval(m, ctx)
	t.noShadow = was
	return err
}

// lateGap is for a call that turned out, at its exit, to have effects that
// cannot be listed.
func (t *tracer) lateGap(why string) error {
	c := &t.call
	t.log1(checkpoint.Event{Kind: checkpoint.EventGap, NR: c.nr, Reason: why})
	ctx := t.context()
	before := ctx
	before.Regs = regsOf(&c.entry)
	before.Regs.R[0] = uint64(c.nr)
	before.InCall, before.OrigRAX = true, c.nr
	t.result.Stats.Gaps++
	if err := t.renewObjects(); err != nil {
		return err
	}
	m, err := t.look()
	if err != nil {
		return err
	}
	if err := t.closeInterval(m, border{kind: checkpoint.EndGap, reason: why, context: &before, noPages: true}); err != nil {
		return err
	}
	if err := t.openInterval(m, ctx); err != nil {
		return err
	}
	if err := t.afterCall(int64(t.regs.Rax)); err != nil {
		return err
	}
	return t.syncPoint()
}

// onForced is the stop that the timer has asked for.
func (t *tracer) onForced() (action, error) {
	if t.sig.draining || t.done {
		t.sig.draining = false
		return action{}, nil
	}
	if err := getRegs(t.pid, &t.regs); err != nil {
		return action{}, err
	}
	if t.signalDue() {
		return action{}, nil // that comes first; the timer asks again
	}
	t.sig.syncPending = false
	if t.forcedAt = append(t.forcedAt, time.Now()); len(t.forcedAt) > forcedRate {
		t.forcedAt = t.forcedAt[1:]
	}
	if err := t.border(border{kind: checkpoint.EndForced, forced: true}); err != nil {
		return action{}, err
	}
	t.sig.atExit = t.regs
	t.sendHeld()
	return action{}, nil
}

// onExitEvent is PTRACE_EVENT_EXIT: the program dies, its memory still there.
func (t *tracer) onExitEvent() (action, error) {
	if t.done {
		return action{}, nil
	}
	msg, err := eventMsg(t.pid)
	if err != nil {
		return action{}, err
	}
	sig := int(msg & 0x7f)
	if t.cur == nil {
		return t.crashBetween(sig)
	}
	if err := getRegs(t.pid, &t.regs); err != nil {
		return action{}, err
	}
	forced := !t.call.in && !t.call.pending
	if t.call.pending {
		t.finishPending(t.asIs())
	}
	if _, err := t.crash(sig, nil, forced); err != nil {
		return action{}, err
	}
	return action{}, nil
}

// prepareExec keeps what the end of this image looks like, in case the execve
// that is about to run succeeds.
func (t *tracer) prepareExec() error {
	t.execEnd = nil
	if !t.out.open() {
		return nil
	}
	m, err := t.look()
	if err != nil {
		return err
	}
	if err := t.store(m, nil); err != nil {
		return err
	}
	if err := t.keepWhole(t.maps.all(), m.private); err != nil {
		return err
	}
	ctx := t.context()
	if err := t.keepDebuggerSet(&checkpoint.Final{Maps: t.maps.mappings(), Contexts: []checkpoint.Context{ctx}}); err != nil {
		return err
	}
	cpu, err := cpuTime(t.pid)
	if err != nil {
		return err
	}
	t.execEnd = &pendingEnd{m, border{kind: checkpoint.EndExec, context: &ctx, cpu: cpu}}
	return nil
}

// pendingEnd is an end that takes place if the execve succeeds.
type pendingEnd struct {
	m *moment
	b border
}

// finishExecEnd ends the last interval of the image before.
func (t *tracer) finishExecEnd() {
	end := t.execEnd
	t.execEnd = nil
	if end == nil || t.cur == nil {
		return
	}
	if err := errors.Join(t.closeInterval(end.m, end.b), t.flush()); err != nil {
		t.log.Error().Err(err).Msg("end of the image before execve")
	}
}

// onExitCall is the entry of exit or exit_group.
func (t *tracer) onExitCall() error {
	if t.opt.Keep == KeepCrash {
		t.abandon()
	} else if err := t.endAt(border{kind: checkpoint.EndExit, code: int(uint8(t.call.args[0]))}); err != nil {
		return err
	}
	t.done = true
	t.preempt.off()
	return nil
}

// crash ends the recording at the signal that kills the program.
func (t *tracer) crash(sig int, si *siginfo, forced bool) (action, error) {
	t.manifest.Crash, t.manifest.Signo = true, int32(sig)
	b := border{kind: checkpoint.EndCrash, forced: forced, signo: sig}
	var info []byte
	if si != nil {
		info = append(info, si[:]...)
	}
	if err := t.endWith(b, info); err != nil {
		// The program gets its end whatever becomes of the recording.
		t.log.Debug().Err(err).Msg("recording not written")
		t.result.Reason, t.result.Err = err.Error(), err
		t.abandon()
	}
	t.done = true
	t.preempt.off()
	return action{sig: sig}, nil
}

// endAt ends the recording here.
func (t *tracer) endAt(b border) error { return t.endWith(b, nil) }

func (t *tracer) endWith(b border, info []byte) error {
	if t.cur == nil {
		return errors.New("no interval to end")
	}
	t.noteFilesChanged()
	m, err := t.look()
	if err != nil {
		return err
	}
	ctx := t.context()
	b.context = &ctx
	t.manifest.ExitCode = int32(b.code)
	if err := t.closeInterval(m, b); err != nil {
		return err
	}
	final := &checkpoint.Final{Maps: t.maps.mappings(), Contexts: []checkpoint.Context{ctx}, Siginfo: info, Signo: int32(b.signo)}
	if err := t.keepDebuggerSet(final); err != nil {
		return err
	}
	if err := t.write(m, final); err != nil {
		return err
	}
	t.result.Recorded, t.result.Path = true, t.opt.Path
	return nil
}
