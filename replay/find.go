package replay

import (
	"context"
	"fmt"
	"runtime"
	"sort"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Queries over the past: the last stores to an address, the calls of a function,
// the first time an instruction was executed. Unlike a movement, a query leaves
// the cursor where it is and may have many answers. Each interval is run once,
// whatever the number of answers in it, on a machine of its own, and several at
// a time.

// Search is a question about the execution.
type Search struct {
	// Exec are addresses of instructions to be executed, Watches accesses to
	// memory, those that change nothing included.
	Exec    []uint64
	Watches []mem.Watch
	// From and Before bound the moments: From <= moment < Before. The zero
	// Before means the end of the recording.
	From, Before checkpoint.Position
	// Most is how many moments are wanted, at least 1: the latest ones, or with
	// Oldest the earliest.
	Most   int
	Oldest bool
	// Progress, when set, is told now and then which share of the work is done,
	// 0 to 1, counting only what has to be done if nothing more is found.
	Progress func(share float64)
}

// Moment is an answer to a Search.
type Moment struct {
	// Pos is the moment before the instruction, where a debugger can be moved
	// to: the instruction at RIP is about to be executed, or the event
	// behind it to take effect.
	Pos checkpoint.Position
	R   [16]uint64 // general registers, in the processor's order
	RIP uint64
	// Hit is the access, for Watches, and Old and New what the watched bytes
	// were before and after: at most 64 bytes of each, and only what is known.
	Hit      mem.Hit
	Old, New []byte
	// Return is the address that the stack pointer points to: the return
	// address, when the instruction is a function's first. 0 if not known.
	Return uint64

	after checkpoint.Position
}

// maxValue bounds Old and New of a Moment, in bytes.
const maxValue = 64

// Find answers a search, in the order of time. The errors are those of a
// movement; ctx's when it ended the search. What was found before an error is
// returned with it.
func (t *Timeline) Find(ctx context.Context, q *Search) ([]Moment, error) {
	ids := t.idsOf(q)
	ctx, cancel := context.WithCancel(ctx)
	answers := make([]chan findings, len(ids))
	started, taken := 0, 0
	start := func() {
		if started < len(ids) {
			answers[started] = make(chan findings, 1)
			go t.findAside(ctx, ids[started], q, answers[started])
			started++
		}
	}
	defer func() {
		cancel()
		for ; taken < started; taken++ {
			t.adopt(ids[taken], (<-answers[taken]).marks)
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		start()
	}
	weights := t.weights()
	all, done := 0.0, 0.0
	for _, id := range ids {
		all += weights[id]
	}
	var out []Moment
	for taken < started {
		f := <-answers[taken]
		t.adopt(ids[taken], f.marks)
		done += weights[ids[taken]]
		taken++
		out = join(out, f.moments, q)
		if f.err != nil || len(out) == q.Most {
			return out, f.err
		}
		if q.Progress != nil {
			q.Progress(done / all)
		}
		start()
	}
	return out, ctx.Err()
}

// idsOf returns the intervals that can hold an answer, in the order in which
// they are to be searched.
func (t *Timeline) idsOf(q *Search) []uint32 {
	var ids []uint32
	for _, id := range t.intervals {
		start := checkpoint.Position{Interval: id}
		if id >= q.From.Interval && (q.isOpen() || start.Compare(q.Before) < 0) {
			ids = append(ids, id)
		}
	}
	if !q.Oldest {
		for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
			ids[i], ids[j] = ids[j], ids[i]
		}
	}
	return ids
}

// isOpen reports whether the search goes to the end of the recording.
func (q *Search) isOpen() bool { return q.Before == checkpoint.Position{} }

// join puts the findings of the next interval to those of the ones before.
func join(have, more []Moment, q *Search) []Moment {
	if q.Oldest {
		have = append(have, more...)
		return have[:min(len(have), q.Most)]
	}
	out := append(more, have...)
	return out[max(0, len(out)-q.Most):]
}

// weights are the intervals' shares of the recording: their processor time.
func (t *Timeline) weights() map[uint32]float64 {
	out := map[uint32]float64{}
	for _, i := range t.s.Rec.Intervals() {
		out[i.ID] = max(float64(i.CPUTime), 1)
	}
	return out
}

// findings are the answer of the search of one interval.
type findings struct {
	moments []Moment
	err     error
	marks   []*Mark
}

// findAside searches one interval on a machine of its own.
func (t *Timeline) findAside(ctx context.Context, id uint32, q *Search, out chan<- findings) {
	m, err := t.s.Machine(id)
	if err != nil {
		out <- findings{err: err}
		return
	}
	defer m.Close()
	m.StopOnSignal = true
	w := &Timeline{
		s: t.s, m: m, intervals: t.intervals, begin: t.begin, marks: map[uint32][]*Mark{}, budget: t.budget, watches: q.Watches,
		breaks: map[uint64]struct{}{},
	}
	for _, a := range q.Exec {
		w.breaks[a] = struct{}{}
	}
	w.keep()
	f := findings{}
	f.moments, f.err = w.find(ctx, q)
	f.marks = w.marks[id]
	delete(w.marks, id)
	w.releaseMarks()
	out <- f
}

// releaseMarks gives the marks' memory back.
func (t *Timeline) releaseMarks() {
	for _, ms := range t.marks {
		for _, k := range ms {
			k.Release()
		}
	}
	t.marks = nil
}

// find runs through the machine's interval and keeps the moments asked for.
func (t *Timeline) find(ctx context.Context, q *Search) ([]Moment, error) {
	id := t.m.Interval()
	goal := checkpoint.Position{Interval: id, Instr: ^uint64(0)}
	if !q.isOpen() && q.Before.Interval == id {
		goal = q.Before
	}
	var found []Moment
	note := func(x Moment) (full bool) {
		if x.after.Compare(q.From) < 0 {
			return false
		}
		found = append(found, x)
		if len(found) >= 2*q.Most && !q.Oldest { // not at each: it moves them all
			found = append(found[:0], found[len(found)-q.Most:]...)
		}
		return q.Oldest && len(found) == q.Most
	}
	err := t.visit(ctx, goal, note)
	t.arm(false)
	if !q.Oldest {
		found = found[max(0, len(found)-q.Most):]
	}
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	return found, t.settleAll(ctx, found)
}

// visit runs to goal and reports the moments that are stopped at, with after
// and what else is known only then.
func (t *Timeline) visit(ctx context.Context, goal checkpoint.Position, note func(Moment) (full bool)) error {
	t.arm(true)
	skip := false
	for {
		r, err := t.run(ctx, Target{goal.Instr, goal.Step}, skip)
		if err != nil {
			return err
		}
		skip = false
		t.hits = t.hits[:0]
		switch r {
		case StopLimit, StopEnd, StopInterrupt:
			return nil
		case StopBreak:
			p := t.m.Position()
			if note(Moment{Pos: p, after: p, R: t.m.CPU.R, RIP: t.m.CPU.RIP, Return: t.returnAddress()}) {
				return nil
			}
			skip = true
		case StopWatch:
			t.hits = append(t.hits, t.m.Hits()...)
		case StopSignal:
			if t.crashes(t.m.Pending()) {
				return nil
			}
			if err := t.apply(); err != nil {
				return err
			}
		case StopSyscall:
		}
		if len(t.hits) > 0 && note(Moment{after: t.m.Position(), Hit: t.hits[0], New: t.peek(t.hits[0].Watch)}) {
			return nil
		}
	}
}

// settleAll fills in what is to be seen before the accesses.
func (t *Timeline) settleAll(ctx context.Context, found []Moment) error {
	for i := range found {
		x := &found[i]
		if x.Hit.Watch.Kind == 0 {
			continue
		}
		p, _, err := t.before(ctx, x.after)
		if err == nil {
			err = t.goTo(ctx, p)
		}
		if err != nil {
			return err
		}
		x.Pos, x.R, x.RIP = p, t.m.CPU.R, t.m.CPU.RIP
		x.Return, x.Old = t.returnAddress(), t.peek(x.Hit.Watch)
	}
	return nil
}

// peek returns what is known of the watched bytes.
func (t *Timeline) peek(w mem.Watch) []byte {
	b := make([]byte, min(w.Len, maxValue))
	n, _ := t.m.Mem.Peek(w.Addr, b)
	return b[:n]
}

// returnAddress is what the stack pointer points to, 0 if it is not known.
func (t *Timeline) returnAddress() (v uint64) {
	var b [8]byte
	if n, _ := t.m.Mem.Peek(t.m.CPU.R[x86.RSP], b[:]); n < len(b) {
		return 0
	}
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// EventPositions returns the moments before each of the events of interval id,
// up to its end or to before, when that lies in it and is not zero. It leaves the cursor where
// it is. Errors: as Find.
func (t *Timeline) EventPositions(ctx context.Context, id uint32, before checkpoint.Position) ([]checkpoint.Position, error) {
	m, err := t.s.Machine(id)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	m.StopOnSignal = true
	var out []checkpoint.Position
	m.OnEvent = func(*checkpoint.Event) { out = append(out, m.Position()) }
	w := &Timeline{s: t.s, m: m, intervals: t.intervals, begin: t.begin, marks: map[uint32][]*Mark{}, budget: 0}
	defer w.releaseMarks()
	goal := Never
	if before.Interval == id && before != (checkpoint.Position{}) {
		goal = Target{before.Instr, before.Step}
	}
	for {
		r, err := w.run(ctx, goal, true)
		switch {
		case err != nil || r == StopInterrupt:
			return out, errorOr(err, ctx.Err())
		case r != StopSignal:
			return out, nil
		case w.crashes(m.Pending()):
			return append(out, m.Position()), nil
		}
		if err := m.Apply(); err != nil {
			return out, err
		}
	}
}

func errorOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// EventCount returns how many events the timeline holds before interval id; for
// an ID above the last, all of them.
func (t *Timeline) EventCount(id uint32) (n int) {
	first := t.intervals[0]
	for _, i := range t.s.Rec.Intervals() {
		if i.ID >= first && i.ID < id {
			n += i.Events
		}
	}
	return n
}

// SeekEvent moves the cursor to before event n of the timeline, counted from 0.
// Errors: as Seek; an event that is not there is one.
func (t *Timeline) SeekEvent(ctx context.Context, n int) error {
	i := sort.Search(len(t.intervals), func(i int) bool { return t.EventCount(t.intervals[i]+1) > n })
	if n < 0 || i == len(t.intervals) {
		return fmt.Errorf("replay: there is no event %d: the recording has %d", n, t.EventCount(^uint32(0)))
	}
	id := t.intervals[i]
	all, err := t.EventPositions(ctx, id, checkpoint.Position{})
	if err != nil {
		return err
	}
	at := n - t.EventCount(id)
	if at >= len(all) {
		return fmt.Errorf("replay: event %d is not reached in interval %d", n, id)
	}
	return t.Seek(ctx, all[at])
}

// SeekFraction moves the cursor to where the share f of the recording lies
// behind it: 0 is the beginning, 1 the end. Intervals count by their processor
// time, and within one instructions count. Errors: as Seek.
func (t *Timeline) SeekFraction(ctx context.Context, f float64) error {
	if f <= 0 {
		return t.Seek(ctx, t.begin)
	}
	weights := t.weights()
	all := 0.0
	for _, id := range t.intervals {
		all += weights[id]
	}
	rest := f * all
	for _, id := range t.intervals {
		if rest < weights[id] {
			t.arm(false)
			end, err := t.endOf(ctx, id)
			if err != nil {
				return err
			}
			return t.Seek(ctx, checkpoint.Position{Interval: id, Instr: uint64(rest / weights[id] * float64(end.Instr))})
		}
		rest -= weights[id]
	}
	_, err := t.ToEnd(ctx)
	return err
}
