package replay

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"vplay/checkpoint"
)

// A search over the past is cut into tasks: the spans that can hold a stop, and
// what no span covers yet. Tasks are done on machines of their own, several at
// once, in the order in which their answers count; the answers are taken in that
// order too, so that the result is that of a search one after the other, and what
// can no longer matter is cancelled. The cursor's machine takes no part: it stays
// where it is until the answer is known.

// candidate is a place where a run stops.
type candidate struct {
	pos   checkpoint.Position // where the cursor goes: before an access, at a breakpoint
	after checkpoint.Position // where it was noticed: behind an access
	stop  Stop
	pc    uint64 // RIP at pos
}

// order is the direction in which a search takes the spans.
type order bool

const (
	newest order = false
	oldest order = true
)

// task is a part of a search: from lo up to hi, all in one interval.
type task struct {
	lo, hi checkpoint.Position
	from   checkpoint.Position // stops before it do not count
	// fresh says that no span covers it, so that going through it makes some.
	fresh bool
}

// tasks returns the parts of [from, to) that can hold a stop of q, by position.
func (c *chart) tasks(q *stops, from, to checkpoint.Position) ([]task, error) {
	var out []task
	for _, id := range c.intervals {
		if id < from.Interval || id > to.Interval {
			continue
		}
		iv, err := c.s.interval(id)
		if err != nil {
			return nil, err
		}
		hi := checkpoint.Position{Interval: id, Instr: ^uint64(0)}
		if id == to.Interval {
			hi = to
		}
		out = append(out, c.tasksIn(id, q, iv.Events, from, hi)...)
	}
	return out, nil
}

// tasksIn is tasks for one interval.
func (c *chart) tasksIn(id uint32, q *stops, events []checkpoint.Event, from, hi checkpoint.Position) []task {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.leg(id)
	var out []task
	for i := range l.spans {
		s := &l.spans[i]
		if s.from.Compare(hi) >= 0 || s.to.Compare(from) < 0 || !s.mayHold(c.s.Pool, q, events) {
			continue
		}
		t := task{lo: s.from, hi: earlier(s.to, hi), from: from}
		if t.lo.Compare(from) < 0 {
			t.lo = from
		}
		if n := len(out); n > 0 && out[n-1].hi == t.lo && !l.markBetween(out[n-1].lo, t.lo) {
			out[n-1].hi = t.hi // the way to its start leads through the one before
			continue
		}
		out = append(out, t)
	}
	if rest := l.frontier(id); !l.done && rest.Compare(hi) < 0 {
		out = append(out, task{lo: rest, hi: hi, from: from, fresh: true})
	}
	return out
}

// markBetween reports whether there is a mark behind a up to b.
func (l *leg) markBetween(a, b checkpoint.Position) bool {
	return slices.ContainsFunc(l.marks, func(k *Mark) bool { return k.Pos.Compare(a) > 0 && k.Pos.Compare(b) <= 0 })
}

func earlier(a, b checkpoint.Position) checkpoint.Position {
	if a.Compare(b) < 0 {
		return a
	}
	return b
}

// search returns up to n stops of q in [from, to), in the order that is asked
// for.
func (t *Timeline) search(ctx context.Context, q stops, from, to checkpoint.Position, o order, n int) ([]candidate, error) {
	tasks, err := t.chart.tasks(&q, from, to)
	if err != nil {
		return nil, err
	}
	if o == newest {
		slices.Reverse(tasks)
	}
	s := &searching{t: t, q: q, o: o, n: n, tasks: tasks, answers: make([]*answer, len(tasks)), limit: len(tasks)}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		wg.Go(func() { s.work(ctx) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, nil //nolint:nilerr // the caller looks at ctx
	}
	return s.result()
}

// searching is a search under way.
type searching struct {
	t     *Timeline
	q     stops
	o     order
	n     int
	tasks []task

	mu      sync.Mutex
	next    int       // the first task nobody has taken
	limit   int       // tasks from here on do not matter
	answers []*answer // of tasks that are begun
}

// answer is what became of a task.
type answer struct {
	cancel context.CancelFunc
	done   bool
	found  []candidate // in the search's order
	err    error
}

// take returns the next task that matters.
func (s *searching) take(ctx context.Context) (i int, of context.Context, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= s.limit || ctx.Err() != nil {
		return 0, nil, false
	}
	i = s.next
	s.next++
	of, cancel := context.WithCancel(ctx)
	s.answers[i] = &answer{cancel: cancel}
	return i, of, true
}

// put notes the answer of task i and cancels what does not matter any more: all
// behind the point where there are enough stops without a hole.
func (s *searching) put(i int, found []candidate, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[i]
	a.cancel()
	a.done, a.found, a.err = true, found, err
	have := 0
	for j := 0; j < s.limit && s.answers[j] != nil && s.answers[j].done; j++ {
		if have += len(s.answers[j].found); have >= s.n || s.answers[j].err != nil {
			s.limit = j + 1
		}
	}
	if len(found) >= s.n { // enough by itself, whatever comes before it
		s.limit = min(s.limit, i+1)
	}
	for _, a := range s.answers[s.limit:] {
		if a != nil {
			a.cancel()
		}
	}
}

// result joins the answers.
func (s *searching) result() ([]candidate, error) {
	var out []candidate
	for _, a := range s.answers[:s.limit] {
		if a.err != nil {
			return out, a.err
		}
		out = append(out, a.found...)
	}
	return out[:min(len(out), s.n)], nil
}

// work does tasks on a machine of its own until none is left that matters.
func (s *searching) work(ctx context.Context) {
	var w *Timeline
	for {
		i, of, ok := s.take(ctx)
		if !ok {
			break
		}
		var found []candidate
		var err error
		if w == nil {
			w, err = s.t.aside(s.tasks[i].lo.Interval, s.q)
		}
		if err == nil {
			found, err = w.do(of, s.tasks[i], s.o, s.n)
		}
		s.put(i, found, err)
	}
	if w != nil {
		w.m.Close()
	}
}

// aside returns a timeline with a machine of its own that shares the chart.
func (t *Timeline) aside(id uint32, q stops) (*Timeline, error) {
	m, err := t.s.Machine(id)
	if err != nil {
		return nil, err
	}
	m.StopOnSignal = true
	return &Timeline{s: t.s, m: m, intervals: t.intervals, chart: t.chart, begin: t.begin, stops: q, isAside: true}, nil
}

// do returns up to n stops of a task, in the order asked for.
func (t *Timeline) do(ctx context.Context, k task, o order, n int) ([]candidate, error) {
	defer t.guard(ctx)()
	t.m.endFirst = false
	found, err := t.sweep(ctx, k, o, n)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	t.m.endFirst = true
	for i := range found {
		if err := t.finish(ctx, &found[i]); err != nil || ctx.Err() != nil {
			return nil, err
		}
	}
	if o == newest {
		slices.Reverse(found)
	}
	return found, nil
}

// sweep returns the stops of a task that count, by position.
func (t *Timeline) sweep(ctx context.Context, k task, o order, n int) ([]candidate, error) {
	if err := t.back(k.lo); err != nil {
		return nil, err
	}
	if r, err := t.through(ctx, Target{k.lo.Instr, k.lo.Step}); err != nil || r == StopInterrupt {
		return nil, err
	}
	if k.fresh {
		t.beginSpan()
		defer t.dropSpan()
	}
	t.from = k.from
	return t.scan(ctx, k.hi, o, n)
}

// crowd is how many stops a scan makes before it looks at the later half of what
// is left first.
const crowd = 1024

// scan runs to hi with everything armed and returns the stops on the way that
// count: the first n, or the last.
func (t *Timeline) scan(ctx context.Context, hi checkpoint.Position, o order, n int) ([]candidate, error) {
	t.arm(true)
	defer t.arm(false)
	var found []candidate
	for skip, stopped := false, 0; ; stopped++ {
		if o == newest && stopped == crowd && t.track != nil {
			return t.outrun(ctx, found, hi, n)
		}
		if t.isCrowded(stopped, hi, o) {
			return t.halves(ctx, found, hi, n)
		}
		r, err := t.run(ctx, Target{hi.Instr, hi.Step}, skip)
		if err != nil || r == StopInterrupt {
			return nil, err
		}
		c, over, err := t.consider(r, hi)
		switch {
		case err != nil:
			return nil, err
		case c != nil && c.after.Compare(t.from) < 0:
		case c != nil && len(found) == n && o == newest:
			copy(found, found[1:])
			found[n-1] = *c
		case c != nil:
			found = append(found, *c)
		}
		if over || o == oldest && len(found) == n {
			return found, nil
		}
		skip = r == StopBreak
	}
}

// consider turns the end of a run into a candidate, if it is one, and goes past
// it. over says that there is nothing more before hi.
func (t *Timeline) consider(r Reason, hi checkpoint.Position) (c *candidate, over bool, err error) {
	t.hits = t.hits[:0]
	switch r {
	case StopLimit:
		return nil, true, nil
	case StopEnd:
		t.reachedEnd()
		return nil, true, nil
	case StopInterrupt: // the caller looks at ctx
	case StopBreak:
		if t.AtBreak() {
			c = t.candidate(Stop{Reason: StopBreak})
		}
	case StopWatch:
		t.hits = append(t.hits, t.m.Hits()...)
	case StopSyscall:
		if t.m.Position().Compare(hi) < 0 {
			c = t.candidate(Stop{Reason: StopSyscall, Event: t.m.Applied()})
		}
	case StopSignal:
		e := t.m.Pending()
		if t.crashes(e) {
			t.reachedEnd()
			return nil, true, nil
		}
		if t.stopsAt(e) {
			c = t.candidate(Stop{Reason: StopSignal, Event: e})
		}
		if err := t.apply(); err != nil {
			return nil, false, err
		}
	}
	if len(t.hits) > 0 {
		c = t.candidate(Stop{Reason: StopWatch})
		c.stop.Hits = slices.Clone(t.hits)
	}
	return c, false, nil
}

func (t *Timeline) candidate(s Stop) *candidate {
	p := t.m.Position()
	return &candidate{pos: p, after: p, stop: s, pc: t.m.CPU.RIP}
}

// reachedEnd notes that the machine stands at the end of its interval.
func (t *Timeline) reachedEnd() {
	t.chart.foundEnd(t.m.Position())
	if t.track != nil {
		t.endSpan(true)
		t.m.CPU.OnCode = nil
		t.m.Mem.Track(nil)
	}
}

// isCrowded reports whether a scan for the newest stops would do better to begin
// at the middle of what is left.
func (t *Timeline) isCrowded(stopped int, hi checkpoint.Position, o order) bool {
	if stopped < crowd || stopped%crowd != 0 || o == oldest || t.track != nil {
		return false
	}
	if end, ok := t.chart.endOf(hi.Interval); ok {
		hi = earlier(hi, end)
	}
	return hi.Instr != ^uint64(0) && hi.Instr > t.m.CPU.Retired+crowd
}

// halves goes on with a scan for the newest stops that has made many: the later
// half first, the other one only when that does not have enough.
func (t *Timeline) halves(ctx context.Context, found []candidate, hi checkpoint.Position, n int) ([]candidate, error) {
	if end, ok := t.chart.endOf(hi.Interval); ok {
		hi = earlier(hi, end)
	}
	here := t.m.Save()
	defer here.Release()
	mid := checkpoint.Position{Interval: hi.Interval, Instr: here.Pos.Instr + (hi.Instr-here.Pos.Instr)/2}
	t.arm(false)
	if r, err := t.through(ctx, Target{Instr: mid.Instr}); err != nil || r == StopInterrupt {
		return nil, err
	}
	later, err := t.scan(ctx, hi, newest, n)
	if err != nil || ctx.Err() != nil || len(later) >= n {
		return later, err
	}
	t.m.Restore(here)
	middle, err := t.scan(ctx, mid, newest, n)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	all := slices.Concat(found, middle, later)
	return all[max(0, len(all)-n):], nil
}

// outrun goes on with a scan for the newest stops, over ground that no span covers,
// that has made many: to hi without stopping, and then back by the spans.
func (t *Timeline) outrun(ctx context.Context, found []candidate, hi checkpoint.Position, n int) ([]candidate, error) {
	here := t.m.Position()
	t.arm(false)
	r, err := t.through1(ctx, Target{hi.Instr, hi.Step})
	if err != nil || r == StopInterrupt {
		return nil, err
	}
	if r == StopEnd {
		t.reachedEnd()
	}
	t.dropSpan()
	rest := t.chart.tasksIn(here.Interval, &t.stops, t.m.iv.Events, here, hi)
	var later []candidate
	for i := len(rest) - 1; i >= 0 && len(later) < n; i-- {
		rest[i].fresh = false
		got, err := t.sweep(ctx, rest[i], newest, n-len(later))
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		later = append(got, later...)
	}
	for len(found) > 0 && len(later) > 0 && found[len(found)-1].after.Compare(later[0].after) >= 0 {
		found = found[:len(found)-1] // a breakpoint at here is found from here again
	}
	all := slices.Concat(found, later)
	return all[max(0, len(all)-n):], nil
}

// finish turns a candidate into a place to stop: a watch stops before the access.
func (t *Timeline) finish(ctx context.Context, c *candidate) error {
	if c.stop.Reason != StopWatch {
		return nil
	}
	t.arm(false)
	p, _, err := t.before(ctx, c.after)
	if err == nil {
		err = t.goTo(ctx, p)
	}
	c.pos, c.pc = p, t.m.CPU.RIP
	return err
}
