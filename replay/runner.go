package replay

import (
	"context"
	"errors"
	"slices"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// runner is a machine that moves within a recording, forward by running, backward by
// going to a snapshot and running from there. On its way it leaves snapshots in the
// index. The cursor is one, and each worker of a search: what a runner does depends
// on nothing but its position and what it is to stop at.
//
// It is used by one goroutine.
type runner struct {
	index *index
	m     *Machine
	stops
	hits []mem.Hit // of the movement under way

	// isCursor makes the index keep the snapshots around the runner longest.
	isCursor bool
	// keeps, when set, is asked first whether it takes a snapshot here.
	keeps func() bool
	// stretch is how many times the index's spacing lies between the snapshots that a run leaves.
	stretch uint64
	// passed, when set, is called at each snapshot that a run leaves at its place.
	passed func()
}

// newRunner returns a runner at the start of interval id. Errors: as
// Session.Machine.
func newRunner(x *index, id uint32, q stops) (*runner, error) {
	m, err := x.s.Machine(id)
	if err != nil {
		return nil, err
	}
	m.Catch.Signal, m.endFirst = true, true
	return &runner{index: x, m: m, stops: q, stretch: 1}, nil
}

// guard interrupts the machine when ctx ends, until what it returns is called.
func (r *runner) guard(ctx context.Context) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		r.m.CPU.Interrupt()
		close(interrupted)
	})
	return func() {
		if !stop() {
			<-interrupted
			r.m.CPU.Interrupted()
		}
	}
}

// arm gives the machine what to stop at, or nothing.
func (r *runner) arm(on bool) {
	r.m.everyStore, r.m.pass, r.m.conditions = on && r.everyStore, nil, nil
	if !on {
		r.disarmBreaks()
		r.watch(nil)
		r.m.Catch.Syscall = nil
		return
	}
	addrs := make([]uint64, 0, len(r.breaks))
	for a := range r.breaks {
		addrs = append(addrs, a)
	}
	r.m.pass, r.m.conditions = r.filter, r.conditions
	r.m.SetBreakpoints(addrs)
	r.watch(r.watches)
	r.m.Catch.Syscall = r.calls
}

// disarmBreaks takes breakpoints from the machine. Changing them costs it all
// decoded code.
func (r *runner) disarmBreaks() {
	if len(r.m.breaks) > 0 {
		r.m.SetBreakpoints(nil)
	}
}

// watch makes ws the watches of the machine.
func (r *runner) watch(ws []mem.Watch) {
	if !slices.Equal(r.m.Mem.Watches(), ws) {
		r.m.Mem.SetWatches(ws)
	}
}

// keep leaves a snapshot here unless one is there.
func (r *runner) keep() {
	if r.keeps != nil && r.keeps() {
		return
	}
	if !r.index.has(r.m.Position()) {
		r.index.add(r.m.Save())
	}
}

// back makes the machine what it is at the last snapshot at or before p.
func (r *runner) back(p checkpoint.Position) error {
	k, err := r.index.nearest(p)
	if err != nil {
		return err
	}
	r.m.Restore(k)
	k.Release()
	return nil
}

// run runs the machine within its interval to goal, leaving snapshots behind. Stops
// other than at goal are returned as they are.
// Preconditions: guard watches ctx.
func (r *runner) run(ctx context.Context, goal Target, skip bool) (Reason, error) {
	for {
		if ctx.Err() != nil {
			return StopInterrupt, nil //nolint:nilerr // it is the reason
		}
		part, distance := goal, r.stretch*r.index.spacing
		if next := (r.m.CPU.Retired/distance + 1) * distance; next < goal.Instr {
			part = Target{Instr: next}
		}
		why, err := r.m.Run(part, skip)
		if errors.Is(err, errInterrupted) {
			return StopInterrupt, nil
		}
		if err != nil || why != StopLimit || part == goal {
			return why, err
		}
		skip = false
		if r.index.isOfUse(r.m.Position()) {
			r.keep()
		}
		if r.passed != nil {
			r.passed()
		}
	}
}

// through runs like run, but through signals.
func (r *runner) through(ctx context.Context, goal Target) (Reason, error) {
	for {
		why, err := r.run(ctx, goal, true)
		if err != nil || why != StopSignal {
			return why, err
		}
		if err := r.m.Apply(); err != nil {
			return 0, err
		}
	}
}

func (r *runner) seek(ctx context.Context, p checkpoint.Position) error {
	k, err := r.index.nearest(p)
	if err != nil {
		return err
	}
	if !r.goesOn(k.Pos, p) {
		r.m.Restore(k)
	}
	k.Release()
	why, err := r.through(ctx, Target{p.Instr, p.Step})
	if err == nil && why == StopInterrupt {
		return ctx.Err()
	}
	return err
}

// goesOn reports whether the way to p is to go on from where the machine is, and not from the last snapshot before p.
func (r *runner) goesOn(snapshot, p checkpoint.Position) bool {
	cur := r.m.Position()
	return cur.Interval == p.Interval && cur.Compare(p) <= 0 && cur.Compare(snapshot) >= 0
}

// goTo moves to p, which is a settled position.
func (r *runner) goTo(ctx context.Context, p checkpoint.Position) error {
	if err := r.seek(ctx, p); err != nil {
		return err
	}
	_, err := r.settle()
	return err
}
