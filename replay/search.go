package replay

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"vplay/checkpoint"
)

// A search over the past is cut into tasks: the segments that can hold a stop, and
// what no segment covers yet. Tasks are done on machines of their own, several at
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

// order is the direction in which a search takes the segments.
type order bool

const (
	newest order = false
	oldest order = true
)

// task is a part of a search: from lo up to hi, all in one interval.
type task struct {
	lo, hi checkpoint.Position
	from   checkpoint.Position // stops before it do not count
	// fresh says that no segment covers it, so that going through it makes some.
	fresh bool
}

// tasks returns the parts of [from, to) that can hold a stop of q, by position. It looks at ctx before it reads an
// interval, and gives up when that ends.
func (x *index) tasks(ctx context.Context, q *stops, from, to checkpoint.Position) ([]task, error) {
	var out []task
	for _, id := range x.intervals {
		if id < from.Interval || id > to.Interval {
			continue
		}
		if ctx.Err() != nil {
			return nil, nil //nolint:nilerr // the caller looks at ctx
		}
		events, err := x.eventsFor(id, q)
		if err != nil {
			return nil, err
		}
		hi := checkpoint.Position{Interval: id, Instr: ^uint64(0)}
		if id == to.Interval {
			hi = to
		}
		out = append(out, x.tasksIn(ctx, id, q, events, from, hi)...)
	}
	return out, nil
}

// eventsFor returns the log of an interval where it can tell which segments may hold a stop of q, else nil: a recording may have
// millions of events, and to read them all takes longer than most searches.
func (x *index) eventsFor(id uint32, q *stops) ([]checkpoint.Event, error) {
	x.mu.Lock()
	covered := len(x.of(id).segments) > 0
	x.mu.Unlock()
	if !covered {
		return nil, nil
	}
	if sum, known := x.s.summary(id); known && !q.asks(sum) {
		return nil, nil
	}
	iv, err := x.s.interval(id)
	if err != nil {
		return nil, err
	}
	return iv.Events, nil
}

// tasksIn is tasks for one interval. It looks at ctx before each segment. Without events there are none that q asks for.
func (x *index) tasksIn(ctx context.Context, id uint32, q *stops, events []checkpoint.Event, from, hi checkpoint.Position) []task {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of(id)
	var out []task
	for i := range l.segments {
		s := &l.segments[i]
		if ctx.Err() != nil {
			return nil
		}
		if s.from.Compare(hi) >= 0 || s.to.Compare(from) < 0 || !s.mayHold(x.s.Pool, q, events) {
			continue
		}
		t := task{lo: s.from, hi: earlier(s.to, hi), from: from}
		if t.lo.Compare(from) < 0 {
			t.lo = from
		}
		if n := len(out); n > 0 && out[n-1].hi == t.lo && !l.snapshotBetween(out[n-1].lo, t.lo) {
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

// nearSpacings is how many times the distance of snapshots a search for the newest stops goes back through ground that no
// segment covers, before it goes through that from its start on.
const nearSpacings = 32

// nearFirst has a search for the newest stops that begins in ground which no segment covers look through the end of that first, from
// snapshot to snapshot. Segments are made from the ground's start on, and most of what is asked for is near. It is a quarter of the
// ground at most, so after a few searches there is none left.
func (x *index) nearFirst(tasks []task) []task {
	if len(tasks) == 0 || !tasks[0].fresh {
		return tasks
	}
	rest, end := tasks[0], tasks[0].hi
	if p, ok := x.endOf(end.Interval); ok {
		end = earlier(end, p)
	}
	if end.Instr == ^uint64(0) || end.Compare(rest.lo) <= 0 { // where it ends is not known
		return tasks
	}
	least := end.Instr - min(nearSpacings*x.spacing, (end.Instr-rest.lo.Instr)/4)
	var out []task
	x.mu.Lock()
	defer x.mu.Unlock()
	ms, i := x.from(end)
	for i--; i >= 0 && ms[i].Pos.Instr >= least && ms[i].Pos.Compare(rest.lo) > 0; i-- {
		out = append(out, task{lo: ms[i].Pos, hi: end, from: rest.from})
		end, rest.hi = ms[i].Pos, ms[i].Pos
	}
	return append(append(out, rest), tasks[1:]...)
}

// mostJoined is how many instructions tasks that are made one have at most.
const mostJoined = 32_000_000

// joinTasks makes neighbours among tasks one, which are in the order of a search. Each task goes back to a snapshot, and has
// the pages that it stores to copied, so many small ones take longer; but of a large one all is
// executed, though the stop is in its newest part. So what is joined is a quarter of what was searched before.
func joinTasks(tasks []task) []task {
	var out []task
	before := uint64(0)
	for _, t := range tasks {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if last.isBeside(&t) && last.size()+t.size() <= min(before/4, mostJoined) {
				last.lo, last.hi = earlier(last.lo, t.lo), later(last.hi, t.hi)
				continue
			}
			if !last.fresh {
				before += last.size()
			}
		}
		out = append(out, t)
	}
	return out
}

// size is how many instructions a task has that segments cover.
func (k *task) size() uint64 { return k.hi.Instr - k.lo.Instr }

// isBeside reports whether one of two tasks ends where the other begins, and segments cover both.
func (k *task) isBeside(other *task) bool {
	return !k.fresh && !other.fresh && (k.lo == other.hi || k.hi == other.lo)
}

// snapshotBetween reports whether there is a snapshot behind a up to b.
func (l *intervalIndex) snapshotBetween(a, b checkpoint.Position) bool {
	return slices.ContainsFunc(l.snapshots, func(k *Snapshot) bool { return k.Pos.Compare(a) > 0 && k.Pos.Compare(b) <= 0 })
}

func earlier(a, b checkpoint.Position) checkpoint.Position {
	if a.Compare(b) < 0 {
		return a
	}
	return b
}

func later(a, b checkpoint.Position) checkpoint.Position {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// find returns up to n stops of q in [from, to), in the order that is asked for.
// When ctx ends there are none, and no error.
func (s *search) find(ctx context.Context, from, to checkpoint.Position) ([]candidate, error) {
	s.index.awaitClosed()
	tasks, err := s.index.tasks(ctx, &s.q, from, to)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	if s.o == newest {
		slices.Reverse(tasks)
		tasks = s.index.nearFirst(tasks)
	}
	tasks = joinTasks(tasks)
	s.tasks, s.answers, s.limit = tasks, make([]*answer, len(tasks)), len(tasks)
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

// newestStop returns the latest stop of q in [from, before), nil when there is none.
func newestStop(ctx context.Context, x *index, q stops, from, before checkpoint.Position) (*candidate, error) {
	s := &search{index: x, q: q, o: newest, n: 1}
	found, err := s.find(ctx, from, before)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	var c *candidate
	if len(found) > 0 {
		c = &found[0]
	}
	return x.newestReturned(ctx, &q, c, from, before)
}

// search is a search: for up to n stops of q, in an order. The rest is filled in by find.
type search struct {
	index *index
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
func (s *search) take(ctx context.Context) (i int, of context.Context, ok bool) {
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
func (s *search) put(i int, found []candidate, err error) {
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
func (s *search) result() ([]candidate, error) {
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
func (s *search) work(ctx context.Context) {
	var w *worker
	isWhole := true
	for {
		i, of, ok := s.take(ctx)
		if !ok {
			break
		}
		var found []candidate
		var err error
		if w == nil {
			w, err = s.index.worker(s.tasks[i].lo.Interval, s.q)
		}
		if err == nil {
			found, err = w.do(of, s.tasks[i], s.o, s.n)
		}
		isWhole = isWhole && err == nil
		s.put(i, found, err)
	}
	switch {
	case w == nil:
	case isWhole:
		s.index.park(w)
	default: // it may stand in the middle of something
		s.index.closeLater(w.m)
	}
}
