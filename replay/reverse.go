package replay

import (
	"context"
	"errors"
	"sort"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// StepBack moves the cursor to the moment before, as reverse-stepi does. Edge
// is set at the beginning of the recording.
func (t *Timeline) StepBack(ctx context.Context) (Stop, error) {
	t.arm(false)
	origin := t.m.Position()
	p, ok, err := t.before(ctx, origin)
	if err != nil {
		return t.interrupted(ctx, origin, err)
	}
	if !ok {
		return Stop{Reason: StopLimit, Edge: true}, t.goTo(ctx, t.begin)
	}
	return Stop{Reason: StopLimit}, t.goTo(ctx, p)
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
	for _, d := range [...]uint64{1 << 18, 1 << 14, 1 << 10, 1 << 6} {
		if p.Instr <= d {
			continue
		}
		q := checkpoint.Position{Interval: p.Interval, Instr: (p.Instr - d) &^ (d - 1)}
		if k, err := t.nearest(p); err != nil || k.Pos.Compare(q) >= 0 {
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

// endOf returns the position of interval id's end, running there.
func (t *Timeline) endOf(ctx context.Context, id uint32) (checkpoint.Position, error) {
	ms := t.marks[id]
	if len(ms) > 0 && ms[len(ms)-1].Pos.Interval == id && t.atEndMark(ms[len(ms)-1]) {
		return ms[len(ms)-1].Pos, nil
	}
	if len(ms) > 0 {
		t.m.Restore(ms[len(ms)-1])
	} else if k, err := t.nearest(checkpoint.Position{Interval: id}); err != nil {
		return checkpoint.Position{}, err
	} else {
		t.m.Restore(k)
	}
	for {
		r, err := t.through1(ctx)
		if err != nil {
			return checkpoint.Position{}, err
		}
		if r == StopInterrupt {
			return checkpoint.Position{}, ctx.Err()
		}
		if r == StopEnd {
			t.keep()
			return t.m.Position(), nil
		}
	}
}

// atEndMark reports whether mark k stands at its interval's end.
func (t *Timeline) atEndMark(k *Mark) bool {
	return k.next == len(k.iv.Events) && (!k.iv.End.Forced || k.ended) || k.atCrash()
}

// atCrash reports whether the mark stands at the fault that ends its interval.
func (k *Mark) atCrash() bool {
	return k.fault && k.next == len(k.iv.Events)-1 && k.iv.End.Kind == checkpoint.EndCrash
}

// through1 runs to the interval's end through signals, stopping with StopEnd
// before the fault that the program died of.
func (t *Timeline) through1(ctx context.Context) (Reason, error) {
	for {
		r, err := t.run(ctx, Never, true)
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

// candidate is a place where a backward run stops.
type candidate struct {
	pos  checkpoint.Position
	stop Stop
}

// ReverseContinue moves the cursor back to the latest thing before it to stop
// at, or to the beginning.
func (t *Timeline) ReverseContinue(ctx context.Context) (Stop, error) {
	origin := t.m.Position()
	if origin.Compare(t.begin) <= 0 {
		return Stop{Reason: StopLimit, Edge: true}, nil
	}
	c, err := t.searchInterval(ctx, origin.Interval, origin)
	if c == nil && err == nil && ctx.Err() == nil {
		c, err = t.searchOlder(ctx, t.older(origin.Interval))
	}
	if err == nil && ctx.Err() == nil {
		c, err = t.later(ctx, c, origin)
	}
	if err != nil || ctx.Err() != nil {
		return t.interrupted(ctx, origin, err)
	}
	t.arm(false)
	switch {
	case c == nil || c.pos.Compare(t.begin) < 0:
		return Stop{Reason: StopLimit, Edge: true}, t.goTo(ctx, t.begin)
	case c.stop.Reason == StopSyscall: // may be between the call's events
		return c.stop, t.seek(ctx, c.pos)
	default:
		return c.stop, t.goTo(ctx, c.pos)
	}
}

// older returns the intervals before id, the newest first.
func (t *Timeline) older(id uint32) []uint32 {
	var out []uint32
	for {
		prev, ok := t.prevInterval(id)
		if !ok {
			return out
		}
		out = append(out, prev)
		id = prev
	}
}

// interrupted ends a movement early: the cursor goes back to where it came from.
func (t *Timeline) interrupted(ctx context.Context, from checkpoint.Position, err error) (Stop, error) {
	t.arm(false)
	if ctx.Err() != nil {
		err = nil
	}
	return Stop{Reason: StopInterrupt}, errors.Join(err, t.goTo(context.WithoutCancel(ctx), from))
}

// searchInterval returns the latest stop of interval id before goal, nil when
// there is none. It searches from mark to mark, the last stretch first.
func (t *Timeline) searchInterval(ctx context.Context, id uint32, goal checkpoint.Position) (*candidate, error) {
	if _, err := t.nearest(checkpoint.Position{Interval: id}); err != nil {
		return nil, err
	}
	upper := goal
	for {
		ms := t.marks[id]
		i := sort.Search(len(ms), func(i int) bool { return ms[i].Pos.Compare(upper) >= 0 })
		if i == 0 {
			return nil, nil
		}
		from := ms[i-1]
		c, err := t.searchStretch(ctx, from, upper)
		if err != nil || c != nil || ctx.Err() != nil {
			return c, err
		}
		upper = from.Pos
		if upper.Instr == 0 && upper.Step == 0 {
			return nil, nil
		}
	}
}

// searchStretch runs from a mark to upper and returns the last stop before
// upper. A run over new ground leaves marks behind for the next search.
func (t *Timeline) searchStretch(ctx context.Context, from *Mark, upper checkpoint.Position) (*candidate, error) {
	t.m.Restore(from)
	t.arm(true)
	defer t.arm(false)
	var last *candidate
	skip := false
	for {
		r, err := t.run(ctx, Target{upper.Instr, upper.Step}, skip)
		if err != nil {
			return nil, err
		}
		skip = false
		t.hits = t.hits[:0]
		switch r {
		case StopLimit, StopEnd, StopInterrupt:
			return t.finish(ctx, last)
		case StopBreak:
			if t.AtBreak() {
				last = &candidate{t.m.Position(), Stop{Reason: StopBreak}}
			}
			skip = true
		case StopWatch:
			t.hits = append(t.hits, t.m.Hits()...)
		case StopSyscall:
			if p := t.m.Position(); p.Compare(upper) < 0 {
				last = &candidate{p, Stop{Reason: StopSyscall, Event: t.m.Applied()}}
			}
		case StopSignal:
			e := t.m.Pending()
			if t.crashes(e) {
				return t.finish(ctx, last)
			}
			if t.stopsAt(e) {
				last = &candidate{t.m.Position(), Stop{Reason: StopSignal, Event: e}}
			}
			if err := t.apply(); err != nil {
				return nil, err
			}
		}
		if worthStop(t.hits) {
			last = &candidate{t.m.Position(), Stop{Reason: StopWatch, Hits: append([]mem.Hit(nil), t.hits...)}}
		}
	}
}

// finish turns the last hit of a stretch into a place to stop: a watch stops
// before the access.
func (t *Timeline) finish(ctx context.Context, c *candidate) (*candidate, error) {
	if c == nil || c.stop.Reason != StopWatch {
		return c, nil
	}
	t.arm(false)
	p, _, err := t.before(ctx, c.pos)
	if err != nil {
		return nil, err
	}
	c.pos = p
	return c, nil
}
