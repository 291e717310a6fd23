package replay

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The cursor's movements, in both directions, and what they stop at. Questions that
// need no movement are in query.go. How a machine gets to a place is in runner.go, how
// stops in the past are found in search.go.

// Cursor is a place on a timeline that moves both ways, with the breakpoints and
// watchpoints that its runs stop at. Several may move along one timeline at once.
// A cursor is used by one goroutine; cancelling the context given to a method ends
// it early with StopInterrupt.
//
// Methods that move return the errors of [Timeline].
type Cursor struct {
	t *Timeline
	runner
}

// NewCursor returns a cursor at the first position; Close gives it back.
func (t *Timeline) NewCursor() (*Cursor, error) {
	r, err := newRunner(t.index, t.index.begin.Interval, stops{})
	if err != nil {
		return nil, err
	}
	r.isCursor = true
	c := &Cursor{t: t, runner: *r}
	if err := c.goTo(context.Background(), t.index.begin); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close gives the cursor's machine back.
func (c *Cursor) Close() {
	c.index.left(&c.runner)
	c.m.Close()
}

// Timeline returns what the cursor moves along.
func (c *Cursor) Timeline() *Timeline { return c.t }

// Machine returns the machine at the cursor, for reading.
func (c *Cursor) Machine() *Machine { return c.m }

// Position returns where the cursor is.
func (c *Cursor) Position() checkpoint.Position { return c.m.Position() }

// AtEnd reports whether the cursor is at the last position: the crash, the exit, or
// where recording ended.
func (c *Cursor) AtEnd() bool { return c.atEnd() }

// AtBreak reports whether a breakpoint that its condition lets through stands
// at the cursor.
func (c *Cursor) AtBreak() bool { return c.atBreak() }

// SetBreakpoints replaces the addresses at which runs in both directions stop.
// filter, when not nil, is asked at each and may refuse it (conditions); searches
// ask it on several goroutines at once, each about a machine of its own.
func (c *Cursor) SetBreakpoints(addrs []uint64, filter func(*Machine) bool) {
	q := executing(addrs, filter)
	c.breaks, c.filter, c.conditions = q.breaks, q.filter, nil
}

// SetConditions says that the filter of the present breakpoints refuses one where all of its conditions are 0: runs then pass it
// without asking. Breakpoints that have none are asked about.
func (c *Cursor) SetConditions(s *x86.Conditions) { c.conditions = s }

// SetWatches replaces the watched ranges, which runs in both directions stop
// at.
func (c *Cursor) SetWatches(ws []mem.Watch) { c.watches = ws }

// SetSignals says which signals stop a run; nil means all.
func (c *Cursor) SetSignals(f func(signo int32) bool) { c.signals = f }

// SetSyscalls says which system calls stop a run; nil means none.
func (c *Cursor) SetSyscalls(f func(nr int64) bool) { c.calls = f }

// move says that a movement begins; what it returns is called at its end.
func (c *Cursor) move(ctx context.Context) func() {
	c.t.pause()
	unguard := c.guard(ctx)
	return func() {
		unguard()
		c.index.moved(&c.runner, c.m.Position())
		c.t.resume()
	}
}

// Seek moves the cursor to p, which may lie between the events of one count. When
// p is the end of its interval or lies behind it, the cursor goes to the start of
// the next. An interval that is not there is an error.
func (c *Cursor) Seek(ctx context.Context, p checkpoint.Position) error {
	ids := c.index.intervals
	if i := sort.Search(len(ids), func(i int) bool { return ids[i] >= p.Interval }); i == len(ids) || ids[i] != p.Interval {
		return fmt.Errorf("replay: interval %d is not in the recording (it has %d to %d)", p.Interval, ids[0], ids[len(ids)-1])
	}
	defer c.move(ctx)()
	c.arm(false)
	if p.Compare(c.index.begin) < 0 {
		p = c.index.begin
	}
	if err := c.approach(ctx, p); err != nil {
		return err
	}
	if e := c.m.Pending(); e != nil {
		return nil
	}
	_, err := c.settle()
	if errors.Is(err, errInterrupted) {
		err = ctx.Err()
	}
	return err
}

// SeekEvent moves the cursor to before event n of the timeline, counted from 0.
// Errors: as Seek; an event that is not there is one.
func (c *Cursor) SeekEvent(ctx context.Context, n int) error {
	p, err := c.t.eventPosition(ctx, n)
	if err != nil {
		return err
	}
	return c.Seek(ctx, p)
}

// SeekFraction moves the cursor to where the share f of the recording lies
// behind it: 0 is the beginning, 1 the end. Intervals count by their processor
// time, and within one instructions count. Errors: as Seek.
func (c *Cursor) SeekFraction(ctx context.Context, f float64) error {
	p, ok, err := c.t.fraction(ctx, f)
	if err != nil {
		return err
	}
	if ok {
		return c.Seek(ctx, p)
	}
	_, err = c.ToEnd(ctx)
	return err
}

// ToEnd moves the cursor to the last position: the crash, the exit, or where recording
// ended.
func (c *Cursor) ToEnd(ctx context.Context) (Stop, error) {
	defer c.move(ctx)()
	c.arm(false)
	p, err := c.endOf(ctx, c.index.last())
	if err != nil {
		return Stop{}, err
	}
	if err := c.goTo(ctx, p); err != nil {
		return Stop{}, err
	}
	return c.stop(StopEnd), nil
}

// StepForward takes one step as stepi does.
func (c *Cursor) StepForward(ctx context.Context) (Stop, error) {
	defer c.move(ctx)()
	// One step asks no breakpoint. The watches stay, for the next step: whatever else
	// moves begins by arming or disarming.
	c.disarmBreaks()
	c.watch(c.watches)
	r, err := c.step()
	if errors.Is(err, errInterrupted) {
		return Stop{Reason: StopInterrupt}, nil
	}
	return c.stop(r), err
}

// StepBack moves the cursor to the position before, as reverse-stepi does. Edge
// is set at the beginning.
func (c *Cursor) StepBack(ctx context.Context) (Stop, error) {
	defer c.move(ctx)()
	c.arm(false)
	origin := c.m.Save()
	defer origin.Release()
	p, ok, err := c.before(ctx, origin.Pos)
	stop := Stop{Reason: StopLimit, Edge: !ok}
	if !ok {
		p = c.index.begin
	}
	if err == nil {
		err = c.goTo(ctx, p)
	}
	if err != nil {
		return c.interrupted(ctx, origin, err)
	}
	return stop, nil
}

// Continue runs forward to the next thing to stop at, or the end. A signal that is
// pending at the cursor is delivered, not reported again.
func (c *Cursor) Continue(ctx context.Context) (Stop, error) {
	defer c.move(ctx)()
	c.arm(true)
	defer c.arm(false)
	if c.atEnd() {
		return c.stop(StopEnd), nil
	}
	if e := c.m.Pending(); e != nil && c.isStop(e) {
		if r, err := c.step(); err != nil || r != StopLimit {
			return c.stop(r), err
		}
		if c.atBreak() {
			return Stop{Reason: StopBreak}, nil
		}
		if c.onCaught() {
			return Stop{Reason: StopSwitch}, nil
		}
	}
	return c.forward(ctx)
}

// ReverseContinue moves the cursor back to the latest thing before it to stop
// at, or to the beginning.
func (c *Cursor) ReverseContinue(ctx context.Context) (Stop, error) {
	defer c.move(ctx)()
	if c.m.Position().Compare(c.index.begin) <= 0 {
		return Stop{Reason: StopLimit, Edge: true}, nil
	}
	from := c.m.Save()
	defer from.Release()
	c.arm(false)
	hit, err := newestStop(ctx, c.index, c.stops, c.index.begin, from.Pos)
	var stop Stop
	if err == nil && ctx.Err() == nil {
		stop, err = c.stopAt(ctx, hit)
	}
	if err != nil || ctx.Err() != nil {
		return c.interrupted(ctx, from, err)
	}
	return stop, nil
}

// stopAt moves the cursor to what a search backward has found, or to the beginning
// when that is nothing.
func (c *Cursor) stopAt(ctx context.Context, hit *candidate) (Stop, error) {
	switch {
	case hit == nil || hit.pos.Compare(c.index.begin) < 0:
		return Stop{Reason: StopLimit, Edge: true}, c.goTo(ctx, c.index.begin)
	case hit.stop.Reason == StopSyscall: // may be between the call's events
		return hit.stop, c.seek(ctx, hit.pos)
	default:
		return hit.stop, c.goTo(ctx, hit.pos)
	}
}

// interrupted ends a movement early: the cursor goes back to where it came from.
func (c *Cursor) interrupted(ctx context.Context, from *Snapshot, err error) (Stop, error) {
	c.arm(false)
	c.m.Restore(from)
	if ctx.Err() != nil {
		err = nil
	}
	return Stop{Reason: StopInterrupt}, err
}
