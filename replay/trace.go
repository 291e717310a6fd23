package replay

import (
	"context"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Traces: a stretch of the timeline executed again with somebody who sees every
// instruction and event. Searches stop at what they look for; a trace is for questions
// about all that happened, as dynamic slices are.

// Stretch says which part of one interval is executed, and who is told.
type Stretch struct {
	From checkpoint.Position
	To   checkpoint.Position // in the same interval; behind its end: up to that
	// Begin is called with the machine at From, before anything is executed.
	Begin func(m *Machine)
	// Before is called before each instruction, After, when not nil, behind those for which *Pending is set and those that did not
	// come to ExitNone; see x86.TraceEngine. tag, where it is not nil, is a word of the tracing's owner for the instruction,
	// kept from one stretch to the next. A callback that keeps in makes a copy of it.
	Before  func(c *x86.CPU, in *x86.Inst, tag *uint32)
	After   func(c *x86.CPU, in *x86.Inst, e x86.Exit)
	Pending *bool
	// Event is called before each event is applied, with the machine as it was before.
	Event func(m *Machine, e *checkpoint.Event)
	// End is called with the machine where the stretch ended.
	End func(m *Machine)
}

// Tracing executes stretches of a timeline. It has two machines: one goes to where a
// stretch begins as fast as the machine of a search, the other one executes it instruction by instruction and
// keeps what it has decoded. It is used by one goroutine; Close gives the machines back.
type Tracing struct {
	t      *Timeline
	seek   *runner
	run    *runner
	engine *x86.TraceEngine // run's
}

// NewTracing returns a tracing. units, when it is not nil, is told of what is executed instead of Stretch.Before and After,
// but for what these must see; see x86.TraceEngine. Errors: as Session.Machine.
func (t *Timeline) NewTracing(units x86.UnitTracer) (*Tracing, error) {
	id := t.index.begin.Interval
	seek, err := newRunner(t.index, id, stops{noSignals: true})
	if err != nil {
		return nil, err
	}
	run, err := newRunner(t.index, id, stops{noSignals: true})
	if err != nil {
		seek.m.Close()
		return nil, err
	}
	engine := &x86.TraceEngine{Units: units}
	run.m.TraceBy(engine)
	return &Tracing{t, seek, run, engine}, nil
}

// Close gives the machines back.
func (x *Tracing) Close() {
	x.seek.m.Close()
	x.run.m.Close()
}

// End returns where interval id ends: before the fault that the program died of, at a
// crash. Errors: those of a movement.
func (x *Tracing) End(ctx context.Context, id uint32) (checkpoint.Position, error) {
	x.t.pause()
	defer x.t.resume()
	defer x.seek.guard(ctx)()
	if _, ok := x.t.index.endOf(id); !ok {
		// What is touched on the way there tells which stretches need no trace.
		if err := x.t.explore(ctx, id); err != nil || ctx.Err() != nil {
			return checkpoint.Position{}, errorOr(ctx.Err(), err)
		}
	}
	p, err := x.seek.endOf(ctx, id)
	if err == nil {
		err = ctx.Err()
	}
	return p, err
}

// Boundaries returns the positions that cut interval id into stretches of about n
// instructions, from its start to its end, both included. Replay can begin at each of
// them at small cost. Errors: those of a movement.
func (x *Tracing) Boundaries(ctx context.Context, id uint32, n uint64) ([]checkpoint.Position, error) {
	end, err := x.End(ctx, id)
	if err != nil {
		return nil, err
	}
	out := []checkpoint.Position{{Interval: id}}
	for i := n; i < end.Instr; i += n {
		out = append(out, checkpoint.Position{Interval: id, Instr: i})
	}
	return append(out, end), nil
}

// Run executes a stretch. Errors: those of a movement, and ctx's.
func (x *Tracing) Run(ctx context.Context, s Stretch) error {
	x.t.pause()
	defer x.t.resume()
	defer x.seek.guard(ctx)()
	defer x.run.guard(ctx)()
	if err := x.approach(ctx, s.From); err != nil {
		return err
	}
	m := x.run.m
	s.Begin(m)
	x.engine.Before, x.engine.After, x.engine.Pending = s.Before, s.After, s.Pending
	m.CPU.OnInst = func(in *x86.Inst) { s.Before(m.CPU, in, nil) }
	if s.After != nil {
		m.CPU.AfterInst = func(in *x86.Inst, e x86.Exit) {
			if e != x86.ExitNone || *s.Pending {
				s.After(m.CPU, in, e)
			}
		}
	}
	m.OnEvent = func(e *checkpoint.Event) { s.Event(m, e) }
	defer func() {
		x.engine.Before, x.engine.After, m.CPU.OnInst, m.CPU.AfterInst, m.OnEvent = nil, nil, nil, nil, nil
	}()
	if err := x.through(ctx, Target{s.To.Instr, s.To.Step}); err != nil {
		return err
	}
	if s.End != nil {
		s.End(m)
	}
	return nil
}

// approach brings the machine that executes to p, where nothing that is due has happened.
func (x *Tracing) approach(ctx context.Context, p checkpoint.Position) error {
	if err := x.seek.seek(ctx, p); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m := x.seek.m
	// The way to a forced end must be known: a machine that looks for it runs ahead.
	if m.iv.End.Forced && m.iv.endPoint() == nil {
		k := m.Save()
		_, err := x.seek.runToEnd(ctx, Never)
		m.Restore(k)
		k.Release()
		if err != nil {
			return err
		}
	}
	k := m.Save()
	defer k.Release()
	x.run.m.Restore(k)
	return ctx.Err()
}

// through executes up to goal, through signals, but not the fault that the program died of.
func (x *Tracing) through(ctx context.Context, goal Target) error {
	m := x.run.m
	for {
		why, err := m.Run(goal, true)
		switch {
		case err != nil:
			return errorOr(ctx.Err(), err)
		case why == StopInterrupt:
			return errorOr(ctx.Err(), errInterrupted)
		case why != StopSignal:
			return nil
		case x.run.crashes(m.Pending()):
			return nil
		}
		if err := m.Apply(); err != nil {
			return err
		}
	}
}

// Untouched reports whether it is known that nothing was written in [from, to) at the n
// bytes at address a.
func (t *Timeline) Untouched(from, to checkpoint.Position, a, n uint64) bool {
	x := t.index
	iv, err := x.s.interval(from.Interval)
	if err != nil {
		return false
	}
	w := stops{noSignals: true, watches: []mem.Watch{{Addr: a, Len: n, Kind: mem.WatchWrite}}}
	x.mu.Lock()
	defer x.mu.Unlock()
	l, reached := x.of(from.Interval), from
	for i := range l.segments {
		s := &l.segments[i]
		if s.to.Compare(reached) <= 0 {
			continue
		}
		if s.from.Compare(reached) > 0 || s.from.Compare(to) >= 0 {
			break
		}
		if s.mayHold(x.s.Pool, &w, iv.Events) {
			return false
		}
		reached = s.to
	}
	return reached.Compare(to) >= 0
}

// EndsInGap reports whether interval id ends with a call whose effects were not recorded.
func (t *Timeline) EndsInGap(id uint32) bool {
	iv, err := t.index.s.interval(id)
	return err == nil && len(iv.Events) > 0 && iv.Events[len(iv.Events)-1].Kind == checkpoint.EventGap
}

// Side is a process on one side of the seam between two intervals. Close gives its memory
// back.
type Side struct {
	Pos  checkpoint.Position
	Mem  *mem.Space
	Regs map[checkpoint.TID][16]uint64 // general registers of each thread
}

// Close gives the memory back.
func (s *Side) Close() { s.Mem.Close() }

// side returns what m is.
func side(m *Machine) *Side {
	k := m.Mem.Snapshot()
	defer k.Release()
	s := &Side{Pos: m.Position(), Mem: k.Open(), Regs: map[checkpoint.TID][16]uint64{}}
	for _, t := range m.Threads() {
		s.Regs[t.TID] = t.State.R
	}
	return s
}

// Seam returns the two sides of the seam behind interval prev, and the event that made it.
// Errors: those of a movement.
func (x *Tracing) Seam(ctx context.Context, prev, next uint32) (before, after *Side, gap checkpoint.Event, err error) {
	end, err := x.End(ctx, prev)
	if err != nil {
		return nil, nil, gap, err
	}
	x.t.pause()
	defer x.t.resume()
	defer x.seek.guard(ctx)()
	if err := x.seek.seek(ctx, end); err != nil {
		return nil, nil, gap, err
	}
	m, err := x.t.index.s.Machine(next)
	if err != nil {
		return nil, nil, gap, err
	}
	defer m.Close()
	events := x.seek.m.iv.Events
	return side(x.seek.m), side(m), events[len(events)-1], nil
}

// Look goes to positions, in their order, on a machine of its own: before is called at each,
// and after behind the instruction that stands there. It is quick where snapshots are near.
// The cursor stays where it is. Errors: those of a movement, and ctx's.
func (t *Timeline) Look(ctx context.Context, at []checkpoint.Position, before, after func(i int, m *Machine)) error {
	if len(at) == 0 {
		return nil
	}
	t.pause()
	defer t.resume()
	w, err := newWorker(t.index, at[0].Interval, stops{noSignals: true})
	if err != nil {
		return err
	}
	defer w.m.Close()
	defer w.guard(ctx)()
	for i, p := range at {
		if err := w.goTo(ctx, p); err != nil {
			return err
		}
		before(i, w.m)
		if _, err := w.through(ctx, Target{Instr: p.Instr + 1}); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		after(i, w.m)
	}
	return nil
}
