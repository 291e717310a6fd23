package replay

import (
	"context"

	"vplay/checkpoint"
)

// The position before another one, and where intervals end: all that a runner needs to go
// backward. What it stops at on the way is found by a search (search.go).

// before returns the last settled position before p; ok is false at the
// beginning. The cursor ends up near p.
func (r *runner) before(ctx context.Context, p checkpoint.Position) (checkpoint.Position, bool, error) {
	if p.Compare(r.index.begin) <= 0 {
		return r.index.begin, false, nil
	}
	if p.Instr == 0 && p.Step == 0 {
		return r.endOfPrevious(ctx, p.Interval)
	}
	if p.Step > 0 { // the position before it may be a REP iteration
		q := checkpoint.Position{Interval: p.Interval, Instr: p.Instr, Step: p.Step - 1}
		if err := r.settleAt(ctx, q); err != nil {
			return q, false, err
		}
		if r.m.Position() == q {
			return q, true, nil
		}
	}
	from := checkpoint.Position{Interval: p.Interval}
	if p.Instr > 0 {
		from.Instr = p.Instr - 1
	}
	if err := r.settleAt(ctx, from); err != nil {
		return from, false, err
	}
	last := r.m.Position()
	if last.Compare(p) >= 0 { // nothing but events since the interval's start
		return r.endOfPrevious(ctx, p.Interval)
	}
	for {
		why, err := r.step()
		now := r.m.Position()
		if err != nil || why == StopEnd || now.Compare(p) >= 0 {
			return last, true, err
		}
		last = now
		if ctx.Err() != nil {
			return last, true, ctx.Err()
		}
	}
}

// settleAt moves to the first settled position at or after p.
func (r *runner) settleAt(ctx context.Context, p checkpoint.Position) error {
	if err := r.approach(ctx, p); err != nil {
		return err
	}
	_, err := r.settle()
	return err
}

// approach seeks p, leaving denser and denser snapshots on the way, for the
// backward steps that follow. It does not go back for one where it can go on from
// where it is.
func (r *runner) approach(ctx context.Context, p checkpoint.Position) error {
	if r.isCursor {
		r.index.moved(r, p)
	}
	for _, d := range [...]uint64{1 << 18, 1 << 14, 1 << 10, 1 << 6} {
		if p.Instr <= d {
			continue
		}
		q := checkpoint.Position{Interval: p.Interval, Instr: (p.Instr - d) &^ (d - 1)}
		k, err := r.index.nearest(p)
		if err != nil {
			return err
		}
		near := k.Pos.Compare(q) >= 0 || r.goesOn(k.Pos, p) && r.m.Position().Compare(q) >= 0
		k.Release()
		if near {
			continue
		}
		if err := r.seek(ctx, q); err != nil {
			return err
		}
		r.keep()
	}
	return r.seek(ctx, p)
}

// endOfPrevious returns the last settled position of the interval before id,
// which is the one before its end: the end itself is the start of id.
func (r *runner) endOfPrevious(ctx context.Context, id uint32) (checkpoint.Position, bool, error) {
	prev, ok := r.index.previous(id)
	if !ok {
		return checkpoint.Position{}, false, nil
	}
	end, err := r.endOf(ctx, prev)
	if err != nil {
		return checkpoint.Position{}, false, err
	}
	return r.before(ctx, end)
}

// endOf returns the position of interval id's end. Where it is not known yet, a machine of its own runs there
// first (findEnd).
func (r *runner) endOf(ctx context.Context, id uint32) (checkpoint.Position, error) {
	for {
		if p, ok := r.index.endOf(id); ok {
			return p, nil
		}
		if err := r.index.findEnd(ctx, id); err != nil {
			return checkpoint.Position{}, err
		}
	}
}

// runToEnd runs to goal through signals, stopping with StopEnd at the interval's
// end and before the fault that the program died of.
func (r *runner) runToEnd(ctx context.Context, goal Target) (Reason, error) {
	for {
		why, err := r.run(ctx, goal, true)
		if err != nil || why != StopSignal {
			return why, err
		}
		if r.crashes(r.m.Pending()) {
			return StopEnd, nil
		}
		if err := r.m.Apply(); err != nil {
			return 0, err
		}
	}
}
