package replay

import (
	"context"

	"vplay/checkpoint"
)

// StepBack moves the cursor to the moment before, as reverse-stepi does. Edge
// is set at the beginning of the recording.
func (t *Timeline) StepBack(ctx context.Context) (Stop, error) {
	defer t.move(ctx)()
	t.arm(false)
	origin := t.m.Save()
	defer origin.Release()
	p, ok, err := t.before(ctx, origin.Pos)
	stop := Stop{Reason: StopLimit, Edge: !ok}
	if !ok {
		p = t.begin
	}
	if err == nil {
		err = t.goTo(ctx, p)
	}
	if err != nil {
		return t.interrupted(ctx, origin, err)
	}
	return stop, nil
}

// before returns the last settled moment before p; ok is false at the
// beginning. The cursor ends up near p.
func (t *Timeline) before(ctx context.Context, p checkpoint.Position) (checkpoint.Position, bool, error) {
	if p.Compare(t.begin) <= 0 {
		return t.begin, false, nil
	}
	if p.Instr == 0 && p.Step == 0 {
		return t.endOfPrevious(ctx, p.Interval)
	}
	if p.Step > 0 { // the moment before it may be a REP iteration
		q := checkpoint.Position{Interval: p.Interval, Instr: p.Instr, Step: p.Step - 1}
		if err := t.settleAt(ctx, q); err != nil {
			return q, false, err
		}
		if t.m.Position() == q {
			return q, true, nil
		}
	}
	from := checkpoint.Position{Interval: p.Interval}
	if p.Instr > 0 {
		from.Instr = p.Instr - 1
	}
	if err := t.settleAt(ctx, from); err != nil {
		return from, false, err
	}
	last := t.m.Position()
	if last.Compare(p) >= 0 { // nothing but events since the interval's start
		return t.endOfPrevious(ctx, p.Interval)
	}
	for {
		r, err := t.micro()
		now := t.m.Position()
		if err != nil || r == StopEnd || now.Compare(p) >= 0 {
			return last, true, err
		}
		last = now
		if ctx.Err() != nil {
			return last, true, ctx.Err()
		}
	}
}

// settleAt moves the cursor to the first settled moment at or after p.
func (t *Timeline) settleAt(ctx context.Context, p checkpoint.Position) error {
	if err := t.approach(ctx, p); err != nil {
		return err
	}
	_, err := t.settle()
	return err
}

// approach seeks p, leaving denser and denser marks on the way, for the
// backward steps that follow.
func (t *Timeline) approach(ctx context.Context, p checkpoint.Position) error {
	if !t.isAside {
		t.chart.moved(p)
	}
	for _, d := range [...]uint64{1 << 18, 1 << 14, 1 << 10, 1 << 6} {
		if p.Instr <= d {
			continue
		}
		q := checkpoint.Position{Interval: p.Interval, Instr: (p.Instr - d) &^ (d - 1)}
		k, err := t.chart.nearest(p)
		if err != nil {
			return err
		}
		near := k.Pos.Compare(q) >= 0
		k.Release()
		if near {
			continue
		}
		if err := t.seek(ctx, q); err != nil {
			return err
		}
		t.keep()
	}
	return t.seek(ctx, p)
}

// endOfPrevious returns the last settled moment of the interval before id,
// which is the one before its end: the end itself is the start of id.
func (t *Timeline) endOfPrevious(ctx context.Context, id uint32) (checkpoint.Position, bool, error) {
	prev, ok := t.prevInterval(id)
	if !ok {
		return checkpoint.Position{}, false, nil
	}
	end, err := t.endOf(ctx, prev)
	if err != nil {
		return checkpoint.Position{}, false, err
	}
	return t.before(ctx, end)
}

// endOf returns the position of interval id's end. Where it is not known yet, the
// cursor runs there.
func (t *Timeline) endOf(ctx context.Context, id uint32) (checkpoint.Position, error) {
	if p, ok := t.chart.endOf(id); ok {
		return p, nil
	}
	if err := t.back(checkpoint.Position{Interval: id, Instr: ^uint64(0)}); err != nil {
		return checkpoint.Position{}, err
	}
	for {
		r, err := t.through1(ctx, Never)
		if err != nil {
			return checkpoint.Position{}, err
		}
		if r == StopInterrupt {
			return checkpoint.Position{}, ctx.Err()
		}
		if r == StopEnd {
			t.keep()
			t.chart.foundEnd(t.m.Position())
			return t.m.Position(), nil
		}
	}
}

// through1 runs to goal through signals, stopping with StopEnd at the interval's
// end and before the fault that the program died of.
func (t *Timeline) through1(ctx context.Context, goal Target) (Reason, error) {
	for {
		r, err := t.run(ctx, goal, true)
		if err != nil || r != StopSignal {
			return r, err
		}
		if t.crashes(t.m.Pending()) {
			return StopEnd, nil
		}
		if err := t.m.Apply(); err != nil {
			return 0, err
		}
	}
}

// ToEnd moves the cursor to the last moment of the recording: the crash, the
// exit, or where recording ended.
func (t *Timeline) ToEnd(ctx context.Context) (Stop, error) {
	defer t.move(ctx)()
	t.arm(false)
	id := t.intervals[len(t.intervals)-1]
	p, err := t.endOf(ctx, id)
	if err != nil {
		return Stop{}, err
	}
	if err := t.goTo(ctx, p); err != nil {
		return Stop{}, err
	}
	return t.stop(StopEnd), nil
}

// ReverseContinue moves the cursor back to the latest thing before it to stop
// at, or to the beginning.
func (t *Timeline) ReverseContinue(ctx context.Context) (Stop, error) {
	defer t.move(ctx)()
	origin := t.m.Position()
	if origin.Compare(t.begin) <= 0 {
		return Stop{Reason: StopLimit, Edge: true}, nil
	}
	from := t.m.Save()
	defer from.Release()
	stop, err := t.reverse(ctx, origin)
	if err != nil || ctx.Err() != nil {
		return t.interrupted(ctx, from, err)
	}
	return stop, nil
}

func (t *Timeline) reverse(ctx context.Context, origin checkpoint.Position) (Stop, error) {
	t.arm(false)
	var c *candidate
	found, err := t.search(ctx, t.stops, t.begin, origin, newest, 1)
	if len(found) > 0 {
		c = &found[0]
	}
	if err == nil && ctx.Err() == nil {
		c, err = t.later(ctx, c, origin)
	}
	switch {
	case err != nil || ctx.Err() != nil:
		return Stop{}, err
	case c == nil || c.pos.Compare(t.begin) < 0:
		return Stop{Reason: StopLimit, Edge: true}, t.goTo(ctx, t.begin)
	case c.stop.Reason == StopSyscall: // may be between the call's events
		return c.stop, t.seek(ctx, c.pos)
	default:
		return c.stop, t.goTo(ctx, c.pos)
	}
}

// interrupted ends a movement early: the cursor goes back to where it came from.
func (t *Timeline) interrupted(ctx context.Context, from *Mark, err error) (Stop, error) {
	t.arm(false)
	t.m.Restore(from)
	if ctx.Err() != nil {
		err = nil
	}
	return Stop{Reason: StopInterrupt}, err
}
