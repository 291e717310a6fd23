package replay

import (
	"context"
	"errors"

	"vplay/checkpoint"
)

// A position is settled when no event is due but a signal or a fault, and when it
// is not the end of an interval that has a next one: that end goes by its later
// name. Movements end at settled positions only, and steps lead from one to the
// next, so that steps back and forth visit the same ones.

// isStop reports whether e, which is due, is something that a position can be
// settled before. A fault that is handled and its signal's frame are one step.
func (r *runner) isStop(e *checkpoint.Event) bool {
	return e.Kind == checkpoint.EventFault || e.Kind == checkpoint.EventSignal && !r.afterFault()
}

// afterFault reports whether the event applied last was a fault.
func (r *runner) afterFault() bool {
	e := r.m.Applied()
	return e != nil && e.Kind == checkpoint.EventFault
}

// apply applies the event that is due and notes the watch hits it makes.
func (r *runner) apply() error {
	err := r.m.Apply()
	r.hits = append(r.hits, r.m.Hits()...)
	return err
}

// settle moves on to the next settled position, the present one if it is. n is
// the number of events applied on the way.
func (r *runner) settle() (n int, err error) {
	for {
		if e := r.m.Pending(); e != nil {
			if r.isStop(e) {
				return n, nil
			}
			if err := r.apply(); err != nil {
				return n, err
			}
			n++
			continue
		}
		if err := r.m.prepareEnd(); err != nil {
			return n, err
		}
		if !r.m.AtEnd() {
			return n, r.probe()
		}
		if ok, err := r.cross(); err != nil || !ok {
			return n, err
		}
	}
}

// probe finds out whether the instruction here makes the fault that
// the log has next, so that the fault is pending however the runner came here.
// Only a trial tells: the registers alone may be the same many times before.
func (r *runner) probe() error {
	if !r.m.mayFault() {
		return nil
	}
	k := r.m.Save()
	defer k.Release()
	watches := r.m.Mem.Watches()
	if len(watches) > 0 {
		r.m.Mem.SetWatches(nil)
		defer r.m.Mem.SetWatches(watches)
	}
	if err := r.m.stepOne(); err == nil && r.m.faulted {
		return nil
	}
	r.m.Restore(k)
	return nil
}

// atEnd reports whether this is the last position of the recording.
func (r *runner) atEnd() bool {
	if !r.index.isLast(r.m.Interval()) {
		return false
	}
	if e := r.m.Pending(); e != nil {
		return r.crashes(e)
	}
	return r.m.AtEnd()
}

// crashes reports whether e, which is due, is what the program died of.
func (r *runner) crashes(e *checkpoint.Event) bool {
	return r.index.isLast(r.m.Interval()) && r.m.next == len(r.m.iv.Events)-1 && e.Kind == checkpoint.EventFault
}

// step takes the smallest step forward: the signal that is pending, or one
// instruction or REP iteration, and the events behind it. From a position that
// is not settled it goes to the next that is. Reason is StopLimit when that is
// all that happened, StopWatch when watched bytes were touched, StopEnd when
// there is nothing behind it.
func (r *runner) step() (Reason, error) {
	r.hits = r.hits[:0]
	n, err := r.settle()
	switch {
	case err != nil:
		return 0, err
	case n > 0:
		return r.moved(), nil
	case r.atEnd():
		return StopEnd, nil
	}
	if r.m.Pending() != nil {
		err = r.apply()
	} else {
		err = r.m.stepOne()
		r.hits = append(r.hits, r.m.Hits()...)
	}
	if err != nil {
		return 0, err
	}
	if _, err := r.settle(); err != nil {
		return 0, err
	}
	return r.moved(), nil
}

// moved is the reason to stop after a step.
func (r *runner) moved() Reason {
	if len(r.hits) > 0 {
		return StopWatch
	}
	return StopLimit
}

// cross moves from the end of an interval to the start of the next; ok is
// false at the end of the recording.
func (r *runner) cross() (ok bool, err error) {
	next, ok := r.index.next(r.m.Interval())
	if !ok {
		return false, nil
	}
	return true, r.back(checkpoint.Position{Interval: next})
}

func (r *runner) stop(why Reason) Stop {
	s := Stop{Reason: why}
	switch why {
	case StopWatch:
		s.Hits = append(s.Hits, r.hits...)
	case StopSignal:
		s.Event = r.m.Pending()
	case StopEnd:
		s.Edge = true
		s.Event = r.m.Pending()
	case StopSyscall:
		s.Event = r.m.Applied()
	case StopLimit, StopBreak, StopInterrupt, StopSwitch:
	}
	return s
}

// forward runs to the next stop; a breakpoint where it begins is none.
func (r *runner) forward(ctx context.Context) (Stop, error) {
	skip, isElsewhere := true, false
	for {
		r.hits = r.hits[:0]
		from := r.m.Position()
		why, err := r.run(ctx, Never, skip)
		if err != nil {
			return Stop{}, err
		}
		skip, isElsewhere = false, isElsewhere || r.m.Position() != from
		switch why {
		case StopBreak:
			if !r.atBreak() {
				skip = true
				continue
			}
		case StopSignal:
			e := r.m.Pending()
			if r.crashes(e) {
				return r.stop(StopEnd), nil
			}
			if r.stopsAt(e) {
				return r.stop(StopSignal), nil
			}
			if err := r.apply(); err != nil {
				return Stop{}, err
			}
			if len(r.hits) == 0 {
				continue
			}
			why = StopWatch
		case StopEnd:
			ok, err := r.cross()
			if err != nil {
				return Stop{}, err
			}
			if ok {
				e, err := r.index.returned(r.m.Interval(), &r.stops)
				if err != nil || e != nil {
					return Stop{Reason: StopSyscall, Event: e}, err
				}
				switch {
				case r.onCaught():
					why = StopSwitch
				case isElsewhere && r.breaksAtSeam():
					why = StopBreak
				default:
					continue
				}
			}
		case StopWatch:
			r.hits = append(r.hits, r.m.Hits()...)
			if len(r.hits) == 0 {
				continue
			}
		case StopLimit, StopSyscall, StopInterrupt, StopSwitch:
		}
		if why != StopEnd && why != StopSyscall {
			if _, err := r.settle(); err != nil && (why != StopInterrupt || !errors.Is(err, errInterrupted)) {
				return Stop{}, err
			}
		}
		if why == StopSwitch && len(r.hits) > 0 {
			why = StopWatch
		}
		switch {
		case why != StopSwitch:
		case r.atEnd():
			why = StopEnd
		case !r.onCaught() && !r.lostCaught(): // events have switched on at once
			continue
		}
		return r.stop(why), nil
	}
}

// breaksAtSeam reports whether a breakpoint stands at an interval's beginning, where a run has
// come. An interval in which the program does nothing but jump to where it is has no
// instruction for replay, and a signal may end it.
func (r *runner) breaksAtSeam() bool {
	e := r.m.due()
	return r.atBreak() && (e == nil || r.isStop(e))
}

// onCaught reports whether the thread runs whose turns are stopped at.
func (r *runner) onCaught() bool { return r.m.Catch.Thread != 0 && r.m.TID() == r.m.Catch.Thread }

// lostCaught reports whether the thread has ended behind whose end a run stops.
func (r *runner) lostCaught() bool { return r.m.Catch.Exit != 0 && r.m.hasEnded(r.m.Catch.Exit) }

// stopsAt reports whether a run stops at the signal or fault e, which is due.
func (r *runner) stopsAt(e *checkpoint.Event) bool {
	return !r.noSignals && r.isStop(e) && (r.signals == nil || r.signals(e.Signo))
}

// atBreak reports whether a breakpoint that its condition lets through stands
// here.
func (r *runner) atBreak() bool {
	if _, ok := r.breaks[r.m.CPU.RIP]; !ok {
		return false
	}
	return r.filter == nil || r.filter(r.m)
}
