package replay

import (
	"context"
	"slices"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// worker is a runner that does the tasks of a search, and collects the segments of
// ground that the index does not cover. It never is the cursor.
type worker struct {
	runner
	from    checkpoint.Position // stops before it do not count
	segment *collector          // what is touched from the last snapshot on, nil when nobody wants to know
	draft   *draft              // of an explorer that may guess
}

// newWorker returns a worker in interval id that looks for q.
func newWorker(x *index, id uint32, q stops) (*worker, error) {
	r, err := newRunner(x, id, q)
	if err != nil {
		return nil, err
	}
	w := &worker{runner: *r}
	w.passed = w.nextSegment
	return w, nil
}

// mostIdle is how many workers wait for the next search.
const mostIdle = 2

// worker returns a worker in any interval that looks for q: one that has waited, or a new one, which begins in interval id.
func (x *index) worker(id uint32, q stops) (*worker, error) {
	x.mu.Lock()
	n := len(x.idle) - 1
	if n < 0 {
		x.mu.Unlock()
		return newWorker(x, id, q)
	}
	w := x.idle[n]
	x.idle = x.idle[:n]
	x.mu.Unlock()
	w.stops = q
	if w.m.release == nil {
		w.m.engage(x.s.Engine)
	}
	return w, nil
}

// park has a worker wait for the next search: its processor knows the code that was executed, which most searches of a session
// execute again. Its memory is given back, and its engine if others may need that one's, while nobody waits for it.
func (x *index) park(w *worker) {
	x.later(func() {
		if e, ok := w.m.CPU.Engine().(x86.PooledEngine); ok && e.IsWanted() {
			w.m.interpret()
		}
		start := x.before(checkpoint.Position{Interval: w.m.iv.ID})
		if start != nil {
			w.m.Restore(start)
			start.Release()
		}
		x.mu.Lock()
		isKept := start != nil && len(x.idle) < mostIdle
		if isKept {
			x.idle = append(x.idle, w)
		}
		x.mu.Unlock()
		if !isKept {
			w.m.Close()
		}
	})
}

// do returns up to n stops of a task, in the order asked for.
func (w *worker) do(ctx context.Context, k task, o order, n int) ([]candidate, error) {
	defer w.guard(ctx)()
	w.m.endFirst = false
	found, err := w.sweep(ctx, k, o, n)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	w.m.endFirst = true
	for i := range found {
		if err := w.finish(ctx, &found[i]); err != nil || ctx.Err() != nil {
			return nil, err
		}
	}
	if o == newest {
		slices.Reverse(found)
	}
	return found, nil
}

// sweep returns the stops of a task that count, by position.
func (w *worker) sweep(ctx context.Context, k task, o order, n int) ([]candidate, error) {
	if err := w.back(k.lo); err != nil {
		return nil, err
	}
	if why, err := w.through(ctx, Target{k.lo.Instr, k.lo.Step}); err != nil || why == StopInterrupt {
		return nil, err
	}
	if k.fresh {
		w.beginSegment()
		defer w.dropSegment()
	}
	w.from = k.from
	return w.scan(ctx, k.hi, o, n)
}

// manyStops is how many stops a scan makes before it looks at the later half of what
// is left first.
const manyStops = 1024

// scan runs to hi with everything armed and returns the stops on the way that
// count: the first n, or the last.
func (w *worker) scan(ctx context.Context, hi checkpoint.Position, o order, n int) ([]candidate, error) {
	w.arm(true)
	defer w.arm(false)
	var found []candidate
	for skip, stopped := false, 0; ; stopped++ {
		if o == newest && stopped == manyStops && w.segment != nil {
			return w.runThenSearch(ctx, found, hi, n)
		}
		if w.hasMany(stopped, hi, o) {
			return w.halves(ctx, found, hi, n)
		}
		why, err := w.run(ctx, Target{hi.Instr, hi.Step}, skip)
		if err != nil || why == StopInterrupt {
			return nil, err
		}
		c, over, err := w.consider(why, hi)
		switch {
		case err != nil:
			return nil, err
		case c != nil && c.after.Compare(w.from) < 0:
		case c != nil && len(found) == n && o == newest:
			copy(found, found[1:])
			found[n-1] = *c
		case c != nil:
			found = append(found, *c)
		}
		if over || o == oldest && len(found) == n {
			return found, nil
		}
		skip = why == StopBreak
	}
}

// consider turns the end of a run into a candidate, if it is one, and goes past
// it. over says that there is nothing more before hi.
func (w *worker) consider(why Reason, hi checkpoint.Position) (c *candidate, over bool, err error) {
	w.hits = w.hits[:0]
	switch why {
	case StopLimit:
		return nil, true, nil
	case StopEnd:
		w.reachedEnd()
		return nil, true, nil
	case StopInterrupt: // the caller looks at ctx
	case StopSwitch: // only the cursor's runs ask for it
	case StopBreak:
		if w.atBreak() {
			c = w.candidate(Stop{Reason: StopBreak})
		}
	case StopWatch:
		w.hits = append(w.hits, w.m.Hits()...)
	case StopSyscall:
		if w.m.Position().Compare(hi) < 0 {
			c = w.candidate(Stop{Reason: StopSyscall, Event: w.m.Applied()})
		}
	case StopSignal:
		e := w.m.Pending()
		if w.crashes(e) {
			w.reachedEnd()
			return nil, true, nil
		}
		if w.stopsAt(e) {
			c = w.candidate(Stop{Reason: StopSignal, Event: e})
		}
		if err := w.apply(); err != nil {
			return nil, false, err
		}
	}
	if len(w.hits) > 0 {
		c = w.candidate(Stop{Reason: StopWatch})
		c.stop.Hits = slices.Clone(w.hits)
	}
	return c, false, nil
}

func (w *worker) candidate(s Stop) *candidate {
	p := w.m.Position()
	return &candidate{pos: p, after: p, stop: s, pc: w.m.CPU.RIP}
}

// reachedEnd notes that the machine stands at the end of its interval.
func (w *worker) reachedEnd() {
	if !w.unsure() {
		w.index.foundEnd(w.m.Position())
	}
	if w.segment != nil {
		w.endSegment(true)
		w.m.CPU.OnCode = nil
		w.m.Mem.Track(nil)
	}
}

// hasMany reports whether a scan for the newest stops would do better to begin
// at the middle of what is left.
func (w *worker) hasMany(stopped int, hi checkpoint.Position, o order) bool {
	if stopped < manyStops || stopped%manyStops != 0 || o == oldest || w.segment != nil {
		return false
	}
	if end, ok := w.index.endOf(hi.Interval); ok {
		hi = earlier(hi, end)
	}
	return hi.Instr != ^uint64(0) && hi.Instr > w.m.CPU.Retired+manyStops
}

// halves goes on with a scan for the newest stops that has made many: the later
// half first, the other one only when that does not have enough.
func (w *worker) halves(ctx context.Context, found []candidate, hi checkpoint.Position, n int) ([]candidate, error) {
	if end, ok := w.index.endOf(hi.Interval); ok {
		hi = earlier(hi, end)
	}
	here := w.m.Save()
	defer here.Release()
	mid := checkpoint.Position{Interval: hi.Interval, Instr: here.Pos.Instr + (hi.Instr-here.Pos.Instr)/2}
	w.arm(false)
	if why, err := w.through(ctx, Target{Instr: mid.Instr}); err != nil || why == StopInterrupt {
		return nil, err
	}
	last, err := w.scan(ctx, hi, newest, n)
	if err != nil || ctx.Err() != nil || len(last) >= n {
		return last, err
	}
	w.m.Restore(here)
	middle, err := w.scan(ctx, mid, newest, n)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	return newestOf(n, found, middle, last), nil
}

// runThenSearch goes on with a scan for the newest stops, over ground that no segment covers,
// that has made many: to hi without stopping, and then back by the segments.
func (w *worker) runThenSearch(ctx context.Context, found []candidate, hi checkpoint.Position, n int) ([]candidate, error) {
	here := w.m.Position()
	from := later(w.from, here)
	w.arm(false)
	why, err := w.runToEnd(ctx, Target{hi.Instr, hi.Step})
	if err != nil || why == StopInterrupt {
		return nil, err
	}
	if why == StopEnd {
		w.reachedEnd()
	}
	w.dropSegment()
	rest := w.index.tasksIn(ctx, here.Interval, &w.stops, w.m.iv.Events, from, hi)
	var newer []candidate
	for i := len(rest) - 1; i >= 0 && len(newer) < n; i-- {
		rest[i].fresh = false
		got, err := w.sweep(ctx, rest[i], newest, n-len(newer))
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		newer = append(got, newer...)
	}
	return newestOf(n, found, newer), nil
}

// newestOf joins lists of stops, each by position and behind the one before it, and returns
// the last n. A breakpoint where one list ends may begin the next one.
func newestOf(n int, lists ...[]candidate) []candidate {
	var all []candidate
	for _, l := range lists {
		for len(all) > 0 && len(l) > 0 && all[len(all)-1].after.Compare(l[0].after) >= 0 {
			all = all[:len(all)-1]
		}
		all = append(all, l...)
	}
	return all[max(0, len(all)-n):]
}

// finish turns a candidate into a place to stop: a watch stops before the access.
func (w *worker) finish(ctx context.Context, c *candidate) error {
	if c.stop.Reason != StopWatch {
		return nil
	}
	w.arm(false)
	p, _, err := w.before(ctx, c.after)
	if err == nil {
		err = w.goTo(ctx, p)
	}
	c.pos, c.pc = p, w.m.CPU.RIP
	return err
}

// beginSegment starts to collect what is touched from here on.
func (w *worker) beginSegment() {
	w.segment = &collector{sets: mem.NewSets(), code: &codeSet{}, from: w.m.Position(), first: w.m.next, regions: w.m.Mem.AddressMap()}
	w.m.CPU.OnCode = w.segment.code.add
	w.m.Mem.Track(w.segment.sets)
}

// dropSegment gives up what was collected.
func (w *worker) dropSegment() {
	if w.segment != nil {
		w.segment = nil
		w.m.CPU.OnCode = nil
		w.m.Mem.Track(nil)
	}
}

// endSegment adds what was collected to the index. atEnd says that the interval
// ends here.
func (w *worker) endSegment(atEnd bool) {
	k := w.segment
	s := segment{
		from: k.from, to: w.m.Position(), first: k.first, last: w.m.next, regions: k.regions,
		read: sorted(k.sets.Read), written: sorted(k.sets.Written), code: k.code.code(),
	}
	if w.m.Mem.AddressMap() != k.regions {
		s.remapped = touchesShared(s.read) || touchesShared(s.written)
	}
	w.segment = nil
	if w.unsure() {
		w.draft.segments = append(w.draft.segments, s)
		w.draft.atEnd = atEnd
		return
	}
	w.index.addSegment(s, atEnd)
}

// nextSegment ends the segment at a snapshot and begins the next.
func (w *worker) nextSegment() {
	if w.segment != nil {
		w.endSegment(false)
		w.beginSegment()
	}
}
