package replay

import (
	"context"
	"maps"
	"runtime"

	"vplay/checkpoint"
)

// Intervals are replayable by themselves, so that a backward search visits
// several at once: the newest on this goroutine's turn, older ones ahead of it.
// The answers are taken in order, so that the result is that of a search one
// after the other; what runs beyond the first hit is cancelled.

// found is the answer of the search of one interval.
type found struct {
	c     *candidate
	err   error
	marks []*Mark
}

// searchOlder returns the latest stop in the intervals ids, newest first, and
// nil when there is none.
func (t *Timeline) searchOlder(ctx context.Context, ids []uint32) (*candidate, error) {
	ctx, cancel := context.WithCancel(ctx)
	answers := make([]chan found, len(ids))
	started := 0
	start := func() {
		if started < len(ids) {
			answers[started] = make(chan found, 1)
			go t.searchAside(ctx, ids[started], answers[started])
			started++
		}
	}
	taken := 0
	defer func() {
		cancel()
		for ; taken < started; taken++ {
			t.adopt(ids[taken], (<-answers[taken]).marks)
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		start()
	}
	for taken < started {
		f := <-answers[taken]
		t.adopt(ids[taken], f.marks)
		taken++
		if f.err != nil || f.c != nil || ctx.Err() != nil {
			return f.c, f.err
		}
		start()
	}
	return nil, nil
}

// searchAside searches one interval on a machine of its own.
func (t *Timeline) searchAside(ctx context.Context, id uint32, out chan<- found) {
	m, err := t.s.Machine(id)
	if err != nil {
		out <- found{err: err}
		return
	}
	defer m.Close()
	m.StopOnSignal = true
	w := &Timeline{
		s: t.s, m: m, intervals: t.intervals, begin: t.begin, marks: map[uint32][]*Mark{}, budget: t.budget,
		breaks: maps.Clone(t.breaks), watches: t.watches, filter: t.filter, signals: t.signals, calls: t.calls,
	}
	c, err := w.searchInterval(ctx, id, checkpoint.Position{Interval: id, Instr: ^uint64(0)})
	marks := w.marks[id]
	delete(w.marks, id)
	for _, ms := range w.marks {
		for _, k := range ms {
			k.Release()
		}
	}
	out <- found{c, err, marks}
}

// adopt takes the marks that a search of interval id left behind, unless this
// timeline has been there itself.
func (t *Timeline) adopt(id uint32, marks []*Mark) {
	if len(t.marks[id]) > 1 || len(marks) == 0 {
		for _, k := range marks {
			k.Release()
		}
		return
	}
	for _, k := range t.marks[id] {
		k.Release()
	}
	t.marks[id] = marks
	t.thin()
}
