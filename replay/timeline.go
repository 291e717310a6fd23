package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// Timeline is a cursor in a recording that goes both ways. It keeps marks
// along what it has run, thinned to a budget of bytes, and finds everything
// else by running from the nearest one. It is used by one goroutine;
// cancelling the context given to a method ends it early with StopInterrupt.
//
// Methods that move return *DivergenceError, *NotCapturedError or
// *UnsupportedError where the recording does not replay, and
// *checkpoint.FormatError where the file is damaged.
type Timeline struct {
	s         *Session
	m         *Machine
	infos     []checkpoint.IntervalInfo // of Recording.LastImage
	intervals []uint32                  // their IDs, in order
	chart     *chart
	stops
	track   *tracker            // the span being collected, nil when none is
	from    checkpoint.Position // stops before it do not count
	survey  survey              // the cursor's only
	isAside bool                // a search's or the survey's, not the cursor's

	begin checkpoint.Position // the first settled moment
	hits  []mem.Hit           // of the movement under way
}

// stops is what a run stops at.
type stops struct {
	breaks  map[uint64]struct{}
	watches []mem.Watch
	filter  func(*Machine) bool
	signals func(signo int32) bool
	calls   func(nr int64) bool

	deaf       bool // signals stop nothing
	everyStore bool // watched stores that change nothing count
}

// markSpacing is the distance, in instructions, of the marks that a run
// leaves behind, unless told otherwise; near a backward goal they are denser. It
// is the length of spans as well.
const markSpacing = 2_000_000

// NewTimeline returns a timeline over the intervals of the recorded process since
// its last execve, with the cursor at the first. memory bounds what its marks keep, in bytes. A
// recording without intervals is an error.
func NewTimeline(s *Session, memory int64) (*Timeline, error) {
	return NewImageTimeline(s, s.Rec.LastImage(), memory)
}

// NewImageTimeline is NewTimeline for one of Recording.Images.
func NewImageTimeline(s *Session, infos []checkpoint.IntervalInfo, memory int64) (*Timeline, error) {
	if len(infos) == 0 {
		return nil, errors.New("replay: the recording holds no interval")
	}
	t := &Timeline{s: s, infos: infos}
	for _, i := range infos {
		t.intervals = append(t.intervals, i.ID)
	}
	t.chart = &chart{s: s, intervals: t.intervals, budget: memory, spacing: markSpacing, legs: map[uint32]*leg{}}
	m, err := s.Machine(t.intervals[0])
	if err != nil {
		return nil, err
	}
	t.m = m
	m.StopOnSignal, m.endFirst = true, true
	t.keep()
	if _, err := t.settle(); err != nil {
		t.Close()
		return nil, err
	}
	t.begin = t.m.Position()
	return t, nil
}

// Close releases the marks and the machine.
func (t *Timeline) Close() {
	t.pause()
	t.chart.close()
	t.m.Close()
}

// Machine returns the machine at the cursor, for reading.
func (t *Timeline) Machine() *Machine { return t.m }

// Position returns the cursor.
func (t *Timeline) Position() checkpoint.Position { return t.m.Position() }

// Begin returns the first moment of the recording.
func (t *Timeline) Begin() checkpoint.Position { return t.begin }

// Intervals returns the IDs of the intervals, in order.
func (t *Timeline) Intervals() []uint32 { return t.intervals }

// SetSpacing sets the distance, in instructions, of the marks that runs will leave
// behind, and with it the length of the stretches that searches tell apart. It is
// for recordings of unusual length.
// Preconditions: n is above 0, and the survey has not been started.
func (t *Timeline) SetSpacing(n uint64) { t.chart.spacing = n }

// SetBreakpoints replaces the addresses at which runs in both directions stop.
// filter, when not nil, is asked at each and may refuse it (conditions); searches
// ask it on several goroutines at once, each about a machine of its own.
func (t *Timeline) SetBreakpoints(addrs []uint64, filter func(*Machine) bool) {
	t.breaks = make(map[uint64]struct{}, len(addrs))
	for _, a := range addrs {
		t.breaks[a] = struct{}{}
	}
	t.filter = filter
}

// SetWatches replaces the watched ranges, which runs in both directions stop
// at.
func (t *Timeline) SetWatches(ws []mem.Watch) { t.watches = ws }

// SetSignals says which signals stop a run; nil means all.
func (t *Timeline) SetSignals(f func(signo int32) bool) { t.signals = f }

// SetSyscalls says which system calls stop a run; nil means none.
func (t *Timeline) SetSyscalls(f func(nr int64) bool) { t.calls = f }

// mayStopAt reports whether a run can stop at e.
func (q *stops) mayStopAt(e *checkpoint.Event) bool {
	switch e.Kind {
	case checkpoint.EventSignal, checkpoint.EventFault:
		return !q.deaf && (q.signals == nil || q.signals(e.Signo))
	case checkpoint.EventEnter, checkpoint.EventExit:
		return q.calls != nil && q.calls(e.NR)
	default:
		return false
	}
}

// arm gives the machine what to stop at, or nothing.
func (t *Timeline) arm(on bool) {
	t.m.everyStore, t.m.pass = on && t.everyStore, nil
	if !on {
		t.disarmBreaks()
		t.watch(nil)
		t.m.CatchSyscall = nil
		return
	}
	addrs := make([]uint64, 0, len(t.breaks))
	for a := range t.breaks {
		addrs = append(addrs, a)
	}
	t.m.pass = t.filter
	t.m.SetBreakpoints(addrs)
	t.watch(t.watches)
	t.m.CatchSyscall = t.calls
}

// disarmBreaks takes breakpoints from the machine. Changing them costs it all
// decoded code.
func (t *Timeline) disarmBreaks() {
	if len(t.m.breaks) > 0 {
		t.m.SetBreakpoints(nil)
	}
}

// watch makes ws the watches of the machine.
func (t *Timeline) watch(ws []mem.Watch) {
	if !slices.Equal(t.m.Mem.Watches(), ws) {
		t.m.Mem.SetWatches(ws)
	}
}

// keep leaves a mark at the cursor unless one is there.
func (t *Timeline) keep() {
	if !t.chart.has(t.m.Position()) {
		t.chart.add(t.m.Save())
	}
}

// back makes the machine what it is at the last mark at or before p.
func (t *Timeline) back(p checkpoint.Position) error {
	k, err := t.chart.nearest(p)
	if err != nil {
		return err
	}
	t.m.Restore(k)
	k.Release()
	return nil
}

// nextInterval returns the interval after id, ok false when it is the last.
func (t *Timeline) nextInterval(id uint32) (uint32, bool) {
	i := sort.Search(len(t.intervals), func(i int) bool { return t.intervals[i] > id })
	if i == len(t.intervals) {
		return 0, false
	}
	return t.intervals[i], true
}

func (t *Timeline) prevInterval(id uint32) (uint32, bool) {
	i := sort.Search(len(t.intervals), func(i int) bool { return t.intervals[i] >= id })
	if i == 0 {
		return 0, false
	}
	return t.intervals[i-1], true
}

// isFirst and isLast say whether p's interval is at a border of the timeline.
func (t *Timeline) isLast(id uint32) bool { return t.intervals[len(t.intervals)-1] == id }

// run runs the machine within its interval to goal, leaving marks behind. Stops
// other than at goal are returned as they are.
// Preconditions: guard watches ctx.
func (t *Timeline) run(ctx context.Context, goal Target, skip bool) (Reason, error) {
	for {
		if ctx.Err() != nil {
			return StopInterrupt, nil //nolint:nilerr // it is the reason
		}
		leg := goal
		if next := (t.m.CPU.Retired/t.chart.spacing + 1) * t.chart.spacing; next < goal.Instr {
			leg = Target{Instr: next}
		}
		r, err := t.m.Run(leg, skip)
		if errors.Is(err, errInterrupted) {
			return StopInterrupt, nil
		}
		if err != nil || r != StopLimit || leg == goal {
			return r, err
		}
		skip = false
		t.keep()
		if t.track != nil {
			t.endSpan(false)
			t.beginSpan()
		}
	}
}

// through runs like run, but through signals.
func (t *Timeline) through(ctx context.Context, goal Target) (Reason, error) {
	for {
		r, err := t.run(ctx, goal, true)
		if err != nil || r != StopSignal {
			return r, err
		}
		if err := t.m.Apply(); err != nil {
			return 0, err
		}
	}
}

// Seek moves the cursor to p, which may lie between the events of one count. When
// p is the end of its interval or lies behind it, the cursor goes to the start of
// the next. Besides what every movement may return, an interval that is not there
// is an error.
func (t *Timeline) Seek(ctx context.Context, p checkpoint.Position) error {
	if i := sort.Search(len(t.intervals), func(i int) bool { return t.intervals[i] >= p.Interval }); i == len(t.intervals) || t.intervals[i] != p.Interval {
		return fmt.Errorf("replay: interval %d is not in the recording (it has %d to %d)", p.Interval, t.intervals[0], t.intervals[len(t.intervals)-1])
	}
	defer t.move(ctx)()
	t.arm(false)
	if p.Compare(t.begin) < 0 {
		p = t.begin
	}
	if err := t.seek(ctx, p); err != nil {
		return err
	}
	if e := t.m.Pending(); e != nil {
		return nil
	}
	_, err := t.settle()
	if errors.Is(err, errInterrupted) {
		err = ctx.Err()
	}
	return err
}

// goTo moves the cursor to p, which is a settled moment.
func (t *Timeline) goTo(ctx context.Context, p checkpoint.Position) error {
	if err := t.seek(ctx, p); err != nil {
		return err
	}
	_, err := t.settle()
	return err
}

func (t *Timeline) seek(ctx context.Context, p checkpoint.Position) error {
	k, err := t.chart.nearest(p)
	if err != nil {
		return err
	}
	if cur := t.m.Position(); cur.Interval != p.Interval || cur.Compare(p) > 0 || cur.Compare(k.Pos) < 0 {
		t.m.Restore(k)
	}
	k.Release()
	r, err := t.through(ctx, Target{p.Instr, p.Step})
	if err == nil && r == StopInterrupt {
		return ctx.Err()
	}
	return err
}

// Stop says why a movement of the cursor ended.
type Stop struct {
	Reason Reason
	Hits   []mem.Hit         // StopWatch
	Event  *checkpoint.Event // StopSignal: what is about to be delivered; StopSyscall: the event
	// Edge is set when the beginning or the end of the recording was reached.
	Edge bool
}

// A moment is settled when no event is due but a signal or a fault, and when it
// is not the end of an interval that has a next one: that end goes by its later
// name. Movements end at settled moments only, and steps lead from one to the
// next, so that steps back and forth visit the same ones.

// isStop reports whether e, which is due, is something that a moment can be
// settled before. A fault that is handled and its signal's frame are one step.
func (t *Timeline) isStop(e *checkpoint.Event) bool {
	return e.Kind == checkpoint.EventFault || e.Kind == checkpoint.EventSignal && !t.afterFault()
}

// afterFault reports whether the event applied last was a fault.
func (t *Timeline) afterFault() bool {
	e := t.m.Applied()
	return e != nil && e.Kind == checkpoint.EventFault
}

// apply applies the event that is due and notes the watch hits it makes.
func (t *Timeline) apply() error {
	err := t.m.Apply()
	t.hits = append(t.hits, t.m.Hits()...)
	return err
}

// settle moves on to the next settled moment, the present one if it is. n is
// the number of events applied on the way.
func (t *Timeline) settle() (n int, err error) {
	for {
		if e := t.m.Pending(); e != nil {
			if t.isStop(e) {
				return n, nil
			}
			if err := t.apply(); err != nil {
				return n, err
			}
			n++
			continue
		}
		if err := t.m.prepareEnd(); err != nil {
			return n, err
		}
		if !t.m.AtEnd() {
			return n, t.probe()
		}
		if ok, err := t.cross(); err != nil || !ok {
			return n, err
		}
	}
}

// probe finds out whether the instruction at the cursor makes the fault that
// the log has next, so that the fault is pending however the cursor came here.
// Only a trial tells: the registers alone may be the same many times before.
func (t *Timeline) probe() error {
	if !t.m.mayFault() {
		return nil
	}
	k := t.m.Save()
	defer k.Release()
	watches := t.m.Mem.Watches()
	if len(watches) > 0 {
		t.m.Mem.SetWatches(nil)
		defer t.m.Mem.SetWatches(watches)
	}
	if err := t.m.stepOne(); err == nil && t.m.faulted {
		return nil
	}
	t.m.Restore(k)
	return nil
}

// atEnd reports whether the cursor is at the last moment of the recording.
func (t *Timeline) atEnd() bool {
	if !t.isLast(t.m.Interval()) {
		return false
	}
	if e := t.m.Pending(); e != nil {
		return t.crashes(e)
	}
	return t.m.AtEnd()
}

// micro takes the smallest step forward: the signal that is pending, or one
// instruction or REP iteration, and the events behind it. From a moment that
// is not settled it goes to the next that is. Reason is StopLimit when that is
// all that happened, StopWatch when watched bytes were touched, StopEnd when
// there is nothing behind the cursor.
func (t *Timeline) micro() (Reason, error) {
	t.hits = t.hits[:0]
	n, err := t.settle()
	switch {
	case err != nil:
		return 0, err
	case n > 0:
		return t.moved(), nil
	case t.atEnd():
		return StopEnd, nil
	}
	if t.m.Pending() != nil {
		err = t.apply()
	} else {
		err = t.m.stepOne()
		t.hits = append(t.hits, t.m.Hits()...)
	}
	if err != nil {
		return 0, err
	}
	if _, err := t.settle(); err != nil {
		return 0, err
	}
	return t.moved(), nil
}

// moved is the reason to stop after a step.
func (t *Timeline) moved() Reason {
	if len(t.hits) > 0 {
		return StopWatch
	}
	return StopLimit
}

// crashes reports whether e, which is due, is what the program died of.
func (t *Timeline) crashes(e *checkpoint.Event) bool {
	return t.isLast(t.m.Interval()) && t.m.next == len(t.m.iv.Events)-1 && e.Kind == checkpoint.EventFault
}

// AtEnd reports whether the cursor is at the last moment of the recording:
// the crash, the exit, or where recording ended.
func (t *Timeline) AtEnd() bool { return t.atEnd() }

// cross moves from the end of an interval to the start of the next; ok is
// false at the end of the recording.
func (t *Timeline) cross() (ok bool, err error) {
	next, ok := t.nextInterval(t.m.Interval())
	if !ok {
		return false, nil
	}
	return true, t.back(checkpoint.Position{Interval: next})
}

// StepForward takes one step as stepi does.
func (t *Timeline) StepForward(ctx context.Context) (Stop, error) {
	defer t.move(ctx)()
	// One step asks no breakpoint. The watches stay, for the next step: whatever else
	// moves begins by arming or disarming.
	t.disarmBreaks()
	t.watch(t.watches)
	r, err := t.micro()
	if errors.Is(err, errInterrupted) {
		return Stop{Reason: StopInterrupt}, nil
	}
	return t.stop(r), err
}

func (t *Timeline) stop(r Reason) Stop {
	s := Stop{Reason: r}
	switch r {
	case StopWatch:
		s.Hits = append(s.Hits, t.hits...)
	case StopSignal:
		s.Event = t.m.Pending()
	case StopEnd:
		s.Edge = true
		s.Event = t.m.Pending()
	case StopSyscall:
		s.Event = t.m.Applied()
	case StopLimit, StopBreak, StopInterrupt:
	}
	return s
}

// Continue runs forward to the next thing to stop at, or the recording's end.
// A signal that is pending at the cursor is delivered, not reported again.
func (t *Timeline) Continue(ctx context.Context) (Stop, error) {
	defer t.move(ctx)()
	t.arm(true)
	defer t.arm(false)
	if t.atEnd() {
		return t.stop(StopEnd), nil
	}
	if e := t.m.Pending(); e != nil && t.isStop(e) {
		if r, err := t.micro(); err != nil || r != StopLimit {
			return t.stop(r), err
		}
		if t.AtBreak() {
			return Stop{Reason: StopBreak}, nil
		}
	}
	return t.forward(ctx)
}

// forward runs to the next stop; a breakpoint at the cursor is none.
func (t *Timeline) forward(ctx context.Context) (Stop, error) {
	skip := true
	for {
		t.hits = t.hits[:0]
		r, err := t.run(ctx, Never, skip)
		if err != nil {
			return Stop{}, err
		}
		skip = false
		switch r {
		case StopBreak:
			if !t.AtBreak() {
				skip = true
				continue
			}
		case StopSignal:
			e := t.m.Pending()
			if t.crashes(e) {
				return t.stop(StopEnd), nil
			}
			if t.stopsAt(e) {
				return t.stop(StopSignal), nil
			}
			if err := t.apply(); err != nil {
				return Stop{}, err
			}
			if len(t.hits) == 0 {
				continue
			}
			r = StopWatch
		case StopEnd:
			ok, err := t.cross()
			if err != nil {
				return Stop{}, err
			}
			if ok {
				e, err := t.returned(t.m.Interval())
				if err != nil || e != nil {
					return Stop{Reason: StopSyscall, Event: e}, err
				}
				continue
			}
		case StopWatch:
			t.hits = append(t.hits, t.m.Hits()...)
			if len(t.hits) == 0 {
				continue
			}
		case StopLimit, StopSyscall, StopInterrupt:
		}
		if r != StopEnd && r != StopSyscall {
			if _, err := t.settle(); err != nil && (r != StopInterrupt || !errors.Is(err, errInterrupted)) {
				return Stop{}, err
			}
		}
		return t.stop(r), nil
	}
}

// stopsAt reports whether a run stops at the signal or fault e, which is due.
func (t *Timeline) stopsAt(e *checkpoint.Event) bool {
	return !t.deaf && t.isStop(e) && (t.signals == nil || t.signals(e.Signo))
}

// AtBreak reports whether a breakpoint that its condition lets through stands
// at the cursor.
func (t *Timeline) AtBreak() bool {
	if _, ok := t.breaks[t.m.CPU.RIP]; !ok {
		return false
	}
	return t.filter == nil || t.filter(t.m)
}
