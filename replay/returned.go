package replay

import (
	"context"

	"vplay/checkpoint"
)

// A call that ends an interval (vfork, or one that the recorder does not know)
// has no exit in the log: it returns where the next interval starts.

// returned returns the call that returned where interval id starts, as an exit
// event, nil when none did or q does not ask for it.
func (x *index) returned(id uint32, q *stops) (*checkpoint.Event, error) {
	prev, ok := x.previous(id)
	if !ok || q.calls == nil {
		return nil, nil
	}
	var ivs [2]*interval
	for i, id := range [...]uint32{prev, id} {
		iv, err := x.s.interval(id)
		if err != nil {
			return nil, err
		}
		ivs[i] = iv
	}
	before, after := ivs[0].Events, ivs[1].Events
	for len(before) > 0 && before[len(before)-1].Kind == checkpoint.EventGap { // says why the interval ends
		before = before[:len(before)-1]
	}
	if len(before) == 0 || len(after) > 0 && after[0].Kind == checkpoint.EventExit {
		return nil, nil
	}
	e := &before[len(before)-1]
	if e.Kind != checkpoint.EventEnter || !q.calls(e.NR) {
		return nil, nil
	}
	result := int64(ivs[1].first.cpu.R[0])
	return &checkpoint.Event{Kind: checkpoint.EventExit, TID: e.TID, NR: e.NR, Args: e.Args, Result: result}, nil
}

// newestReturned returns the newest return of a call at an interval's start between
// from, or c where there is one, and to; c itself when there is none.
func (x *index) newestReturned(ctx context.Context, q *stops, c *candidate, from, to checkpoint.Position) (*candidate, error) {
	if q.calls == nil {
		return c, nil
	}
	if c != nil {
		from = c.pos
	}
	id := to.Interval
	for ok := true; ok && id > from.Interval && ctx.Err() == nil; id, ok = x.previous(id) {
		p := checkpoint.Position{Interval: id}
		if p.Compare(to) >= 0 {
			continue
		}
		e, err := x.returned(id, q)
		if err != nil {
			return nil, err
		}
		if e != nil {
			return &candidate{pos: p, after: p, stop: Stop{Reason: StopSyscall, Event: e}}, nil
		}
	}
	return c, nil
}
