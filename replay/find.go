package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"time"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Questions whose answers are shown to people: what was found together with the
// registers, the values before and after, and how far the search has come. The
// searching itself is that of search.go.

// Search is a question about the execution.
type Search struct {
	// Exec are addresses of instructions to be executed, Watches accesses to
	// memory, those that change nothing included.
	Exec    []uint64
	Watches []mem.Watch
	// From and Before bound the positions: From <= position < Before. The zero
	// Before means the end of the recording.
	From, Before checkpoint.Position
	// Most is how many hits are wanted, at least 1: the latest ones, or with
	// Oldest the earliest.
	Most   int
	Oldest bool
	// Progress, when set, is called now and then with how far the recording is known;
	// what is known is searched at once.
	Progress func(Progress)
}

// Hit is an answer to a Search.
type Hit struct {
	// Pos is the position before the instruction, where a debugger can be moved
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
}

// maxValue bounds Old and New of a Hit, in bytes.
const maxValue = 64

// Find answers a search, in the order of time. It leaves the cursor where it is.
// The errors are those of a movement; ctx's when it ended the search.
func (t *Timeline) Find(ctx context.Context, q *Search) ([]Hit, error) {
	defer t.reportProgress(q.Progress)()
	what := executing(q.Exec, nil)
	what.watches, what.everyStore = q.Watches, true
	from, before, o := q.From, q.Before, newest
	if from.Compare(t.index.begin) < 0 {
		from = t.index.begin
	}
	if before == (checkpoint.Position{}) {
		before = future
	}
	if q.Oldest {
		o = oldest
	}
	found, err := t.ask(ctx, what, from, before, o, q.Most)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if o == newest {
		slices.Reverse(found)
	}
	return t.details(ctx, found)
}

// reportProgress tells report how far the recording is known, until what it
// returns is called.
func (t *Timeline) reportProgress(report func(Progress)) (stop func()) {
	if report == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				report(t.Progress())
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// details goes to the hits, on a machine of its own.
func (t *Timeline) details(ctx context.Context, found []candidate) ([]Hit, error) {
	t.pause()
	defer t.resume()
	w, err := newWorker(t.index, found[0].pos.Interval, stops{})
	if err != nil {
		return nil, err
	}
	defer w.m.Close()
	defer w.guard(ctx)()
	out := make([]Hit, 0, len(found))
	for i := range found {
		c := &found[i]
		if err := w.goTo(ctx, c.pos); err != nil {
			return out, err
		}
		x := Hit{Pos: c.pos, R: w.m.CPU.R, RIP: w.m.CPU.RIP, Return: w.returnAddress()}
		if len(c.stop.Hits) > 0 {
			x.Hit = c.stop.Hits[0]
			x.Old = w.peek(x.Hit.Watch)
			if err := w.seek(ctx, c.after); err != nil {
				return out, err
			}
			x.New = w.peek(x.Hit.Watch)
		}
		out = append(out, x)
	}
	return out, ctx.Err()
}

// weights are the intervals' shares of the recording: their processor time.
func (t *Timeline) weights() map[uint32]float64 {
	out := map[uint32]float64{}
	for _, i := range t.index.infos {
		out[i.ID] = max(float64(i.CPUTime), 1)
	}
	return out
}

// peek returns what is known of the watched bytes.
func (r *runner) peek(w mem.Watch) []byte {
	b := make([]byte, min(w.Len, maxValue))
	n, _ := r.m.Mem.Peek(w.Addr, b)
	return b[:n]
}

// returnAddress is what the stack pointer points to, 0 if it is not known.
func (r *runner) returnAddress() (v uint64) {
	var b [8]byte
	if n, _ := r.m.Mem.Peek(r.m.CPU.R[x86.RSP], b[:]); n < len(b) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// EventPositions returns the positions before the events first up to last, last
// excluded, of interval id, counted from 0 in it; fewer when replay does not reach
// them all. visit, when not nil, is called at each with the event and the memory
// there. The cursor stays where it is. Errors: as Find.
func (t *Timeline) EventPositions(ctx context.Context, id uint32, first, last int, visit func(*checkpoint.Event, *mem.Space)) ([]checkpoint.Position, error) {
	t.pause()
	defer t.resume()
	w, err := newWorker(t.index, id, stops{})
	if err != nil {
		return nil, err
	}
	defer w.m.Close()
	defer w.guard(ctx)()
	m := w.m
	if k := t.index.beforeEvent(id, first); k != nil {
		m.Restore(k)
		k.Release()
	}
	var out []checkpoint.Position
	note := func(e *checkpoint.Event) {
		out = append(out, m.Position())
		if visit != nil {
			visit(e, m.Mem)
		}
	}
	m.OnEvent = func(e *checkpoint.Event) {
		if m.next >= first && m.next < last {
			note(e)
		}
		if m.next+1 >= last {
			m.CPU.Interrupt() // that is all
		}
	}
	for first < last {
		r, err := w.run(ctx, Never, true)
		switch {
		case err != nil || r == StopInterrupt:
			return out, errorOr(err, ctx.Err())
		case r != StopSignal:
			return out, nil
		case w.crashes(m.Pending()):
			note(m.Pending())
			return out, nil
		}
		if err := m.Apply(); err != nil {
			return out, err
		}
	}
	return out, nil
}

// beforeEvent returns the last snapshot of interval id from which event n is still to
// come, nil when there is none. The caller releases it.
func (x *index) beforeEvent(id uint32, n int) *Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	ms := x.of(id).snapshots
	i := sort.Search(len(ms), func(i int) bool { return ms[i].next > n })
	if i == 0 {
		return nil
	}
	return ms[i-1].hold()
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
	for _, i := range t.index.infos {
		if i.ID < id {
			n += i.Events
		}
	}
	return n
}

// eventPosition returns the position before event n of the timeline, counted from 0.
func (t *Timeline) eventPosition(ctx context.Context, n int) (p checkpoint.Position, err error) {
	ids := t.index.intervals
	i := sort.Search(len(ids), func(i int) bool { return t.EventCount(ids[i]+1) > n })
	if n < 0 || i == len(ids) {
		return p, fmt.Errorf("replay: there is no event %d: the recording has %d", n, t.EventCount(^uint32(0)))
	}
	at := n - t.EventCount(ids[i])
	found, err := t.EventPositions(ctx, ids[i], at, at+1, nil)
	if err != nil {
		return p, err
	}
	if len(found) == 0 {
		return p, fmt.Errorf("replay: event %d is not reached in interval %d", n, ids[i])
	}
	return found[0], nil
}

// fraction returns the position before which the share f of the timeline lies; ok is
// false when that is its end.
func (t *Timeline) fraction(ctx context.Context, f float64) (p checkpoint.Position, ok bool, err error) {
	if f <= 0 {
		return t.index.begin, true, nil
	}
	weights := t.weights()
	all := 0.0
	for _, id := range t.index.intervals {
		all += weights[id]
	}
	rest := f * all
	for _, id := range t.index.intervals {
		if rest < weights[id] {
			end, err := t.lengthOf(ctx, id)
			return checkpoint.Position{Interval: id, Instr: uint64(rest / weights[id] * float64(end.Instr))}, true, err
		}
		rest -= weights[id]
	}
	return p, false, nil
}

// Share returns how much of its interval's instructions lies before a position, 0 to 1: 0
// where the interval's end is not known yet. It replays nothing.
func (t *Timeline) Share(p checkpoint.Position) float64 {
	end, ok := t.index.endOf(p.Interval)
	if !ok || end.Instr == 0 {
		return 0
	}
	return min(float64(p.Instr)/float64(end.Instr), 1)
}

// lengthOf returns the end of interval id, running there when it is not known.
func (t *Timeline) lengthOf(ctx context.Context, id uint32) (checkpoint.Position, error) {
	if p, ok := t.index.endOf(id); ok {
		return p, nil
	}
	t.pause()
	defer t.resume()
	w, err := newWorker(t.index, id, stops{})
	if err != nil {
		return checkpoint.Position{}, err
	}
	defer w.m.Close()
	defer w.guard(ctx)()
	return w.endOf(ctx, id)
}
