package replay

import (
	"context"
	"fmt"

	"vplay/checkpoint"
)

// A debugger steps a thread that the user has chosen, and only one thread runs at a time.
// So the cursor can move to where a thread goes on, and back to where it ran last: the
// log says when. On the way the other threads run as recorded, and what they meet stops
// the cursor as it does any run.

// ContinueTo is Continue that also stops where thread tid goes on, at the first position
// from which it executes its next instruction; Reason is then StopSwitch. The thread is
// not the one that runs at the cursor. When it never goes on, that is a Continue.
func (c *Cursor) ContinueTo(ctx context.Context, tid checkpoint.TID) (Stop, error) {
	c.m.Catch.Thread = tid
	defer func() { c.m.Catch.Thread = 0 }()
	return c.Continue(ctx)
}

// ContinueWith is Continue that also stops where thread tid has ended; Reason is then
// StopSwitch.
func (c *Cursor) ContinueWith(ctx context.Context, tid checkpoint.TID) (Stop, error) {
	c.m.Catch.Exit = tid
	defer func() { c.m.Catch.Exit = 0 }()
	return c.Continue(ctx)
}

// ReverseTo is ReverseContinue that goes no further than to the last position from which
// thread tid executed an instruction; Reason is then StopSwitch. The thread is not the
// one that runs at the cursor. When it has not run before, that is a ReverseContinue.
func (c *Cursor) ReverseTo(ctx context.Context, tid checkpoint.TID) (Stop, error) {
	defer c.move(ctx)()
	from := c.m.Save()
	defer from.Release()
	c.arm(false)
	p, ok, err := c.lastTurn(ctx, tid)
	var hit *candidate
	if err == nil && ctx.Err() == nil {
		hit, err = newestStop(ctx, c.index, c.stops, p, from.Pos)
	}
	stop := Stop{Reason: StopSwitch}
	switch isThere := hit != nil && !(ok && hit.pos == p && hit.stop.Reason == StopBreak); {
	case err != nil || ctx.Err() != nil:
	case isThere || !ok:
		stop, err = c.stopAt(ctx, hit)
	default:
		err = c.goTo(ctx, p)
	}
	if err != nil || ctx.Err() != nil {
		return c.interrupted(ctx, from, err)
	}
	return stop, nil
}

// lastTurn returns the last settled position before the present one at which thread tid
// runs; when there is none, ok is false and p is the beginning. It moves the machine.
func (c *Cursor) lastTurn(ctx context.Context, tid checkpoint.TID) (p checkpoint.Position, ok bool, err error) {
	for {
		id, event, ok, err := c.index.turnEnd(ctx, tid, c.m.Interval(), c.m.next)
		if err != nil || !ok {
			return c.index.begin, false, err
		}
		end, err := c.positionOf(ctx, id, event)
		if err != nil {
			return p, false, err
		}
		if p, ok, err = c.before(ctx, end); err != nil || !ok {
			return p, false, err
		}
		if err := c.goTo(ctx, p); err != nil {
			return p, false, err
		}
		if c.m.TID() == tid {
			return p, true, nil
		}
	}
}

// positionOf returns the position before an event of interval id, or the interval's end
// where it has no such event.
func (c *Cursor) positionOf(ctx context.Context, id uint32, event int) (p checkpoint.Position, err error) {
	iv, err := c.index.s.interval(id)
	if err != nil {
		return p, err
	}
	if event == len(iv.Events) {
		return c.endOf(ctx, id)
	}
	found, err := c.t.EventPositions(ctx, id, event, event+1, nil)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("replay: event %d is not reached in interval %d", event, id)
	}
	if err != nil {
		return p, err
	}
	return found[0], nil
}

// turnEnd returns where the last turn of thread tid ended that began before event n of
// interval id: before an event of an interval, which lets another thread go on, or at
// the interval's end, after all of its events. ok is false when there was none.
func (x *index) turnEnd(ctx context.Context, tid checkpoint.TID, id uint32, n int) (interval uint32, event int, ok bool, err error) {
	for whole := false; ctx.Err() == nil; whole = true {
		iv, err := x.s.interval(id)
		if err != nil {
			return 0, 0, false, err
		}
		if whole {
			n = len(iv.Events)
		}
		running := iv.first.tid
		for i := range iv.Events[:n] {
			if e := &iv.Events[i]; e.Kind == checkpoint.EventSched {
				if running == tid && e.TID != tid {
					event, ok = i, true
				}
				running = e.TID
			}
		}
		if whole && running == tid {
			event, ok = n, true
		}
		if ok {
			return id, event, true, nil
		}
		if id, ok = x.previous(id); !ok {
			return 0, 0, false, nil
		}
	}
	return 0, 0, false, ctx.Err()
}
