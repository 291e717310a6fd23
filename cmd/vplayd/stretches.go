package main

import (
	"cmp"
	"context"
	"fmt"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/observe"
)

// Who ran when, as the log tells it: what vplayd schedule prints. Each interval says which
// thread runs at its start, and each sched event which one goes on.

// place is a moment of the log: in front of an event, by its number in the interval, or at the
// interval's end. Position is set where the interval was replayed.
type place struct {
	Interval uint32               `json:"interval"`
	Event    int                  `json:"event"`
	Position *checkpoint.Position `json:"position,omitempty"`
}

// String returns the position, or INTERVAL/EVENT where none is known.
func (p place) String() string {
	if p.Position != nil {
		return p.Position.String()
	}
	return fmt.Sprintf("%d/%d", p.Interval, p.Event)
}

// Why a stretch ended, where it is none of the words of checkpoint.SchedReason.
const (
	whyForced   = "forced"       // at an end of the interval that a timer forced
	whyUnknown  = "unknown"      // the log does not say
	whyRecorded = "end of range" // the recording, or what was asked for of it, ends here
)

// threadStretch is what a thread ran between two switches.
type threadStretch struct {
	PID          int32          `json:"pid"`
	TID          checkpoint.TID `json:"tid"`
	Name         string         `json:"name,omitempty"`
	From         place          `json:"from"`
	To           place          `json:"to"`
	Events       int            `json:"events"` // of the log, with the one that it began with
	Instructions *uint64        `json:"instructions,omitempty"`
	Why          string         `json:"why"`            // the next thread ran
	Call         string         `json:"call,omitempty"` // that this one waits in
}

// stretches goes through the intervals of a process and finds its stretches.
type stretches struct {
	pid   int32
	emit  func(*threadStretch) error
	cur   *threadStretch // nil at the start, and behind an end
	image uint32
	last  checkpoint.End            // of the interval before
	calls map[checkpoint.TID]int64  // that threads are inside
	names map[checkpoint.TID]string // that they have given themselves
	at    []switchPoint             // of the interval, where it was replayed
}

func newStretches(pid int32, emit func(*threadStretch) error) *stretches {
	return &stretches{pid: pid, emit: emit, calls: map[checkpoint.TID]int64{}, names: map[checkpoint.TID]string{}}
}

// begin starts a stretch.
func (s *stretches) begin(tid checkpoint.TID, at place) {
	s.cur = &threadStretch{PID: s.pid, TID: tid, From: at}
	if at.Position != nil {
		s.cur.Instructions = new(uint64)
	}
}

// end ends the stretch, if there is one.
func (s *stretches) end(at place, why string) error {
	x := s.cur
	if x == nil {
		return nil
	}
	s.cur = nil
	x.To, x.Why = at, why
	if x.Name == "" {
		x.Name = s.names[x.TID]
	}
	if nr, in := s.calls[x.TID]; in && why == checkpoint.SchedBlocked.String() {
		x.Call = abi.Name(nr)
	}
	return s.emit(x)
}

// place returns the place in front of event n of an interval, the i-th place in at.
func (s *stretches) place(iv *checkpoint.Interval, n, i int) place {
	p := place{Interval: iv.ID, Event: n}
	if i < len(s.at) {
		p.Position = &s.at[i].at
	}
	return p
}

// noteThreads takes what an interval's start and end say of the threads. What a thread calls
// itself in between is not in the log, so that the name at the end counts.
func (s *stretches) noteThreads(iv *checkpoint.Interval) {
	for i := range iv.Start {
		c := &iv.Start[i]
		if delete(s.calls, c.TID); c.InCall {
			s.calls[c.TID] = c.OrigRAX
		}
	}
	for _, list := range [][]checkpoint.Context{iv.Start, iv.End.Contexts} {
		for i := range list {
			if c := &list[i]; c.Name != "" {
				s.names[c.TID] = c.Name
			}
		}
	}
}

// noteEvent takes what an event says of a thread's call or of its name.
func (s *stretches) noteEvent(e *checkpoint.Event) {
	switch {
	case e.Kind == checkpoint.EventEnter:
		s.calls[e.TID] = e.NR
	case e.Kind == checkpoint.EventExit:
		delete(s.calls, e.TID)
	case e.Kind == checkpoint.EventThread && e.Thread == checkpoint.ThreadStart && s.names[e.TID] == "":
		s.names[e.TID] = s.names[e.Parent] // prctl(2), PR_SET_NAME: inherited
	}
}

// add goes through the next interval of the process.
func (s *stretches) add(iv *checkpoint.Interval, at []switchPoint) error {
	s.at = at
	start := place{Interval: iv.ID}
	if len(at) > 0 {
		start.Position = &checkpoint.Position{Interval: iv.ID}
	}
	switch {
	case s.cur != nil && iv.Image != s.image:
		if err := s.end(start, "execve"); err != nil {
			return err
		}
	case s.cur != nil && len(iv.Start) > 0 && s.cur.TID != iv.Start[0].TID:
		if err := s.end(start, whyUnknown); err != nil {
			return err
		}
	}
	s.image = iv.Image
	s.noteThreads(iv)
	if s.cur == nil && len(iv.Start) > 0 {
		s.begin(iv.Start[0].TID, start)
	}
	switches, counted := 0, uint64(0)
	count := func() {
		if switches < len(at) && s.cur != nil && s.cur.Instructions != nil {
			now := at[switches].at.Instr
			*s.cur.Instructions += now - counted
			counted, s.cur.Name = now, at[switches].name
		}
	}
	for i := range iv.Events {
		e := &iv.Events[i]
		s.noteEvent(e)
		if e.Kind == checkpoint.EventSched {
			here := s.place(iv, i, switches)
			count()
			if err := s.end(here, s.why(e, i)); err != nil {
				return err
			}
			s.begin(e.TID, here)
			switches++
		}
		if s.cur != nil {
			s.cur.Events++
		}
	}
	count()
	s.last = iv.End
	if why := endOf(&iv.End); why != "" {
		return s.end(s.place(iv, len(iv.Events), switches), why)
	}
	if s.cur != nil { // in case that it is the last
		s.cur.To = s.place(iv, len(iv.Events), switches)
	}
	return nil
}

// why returns why the stretch that event e, number n of its interval, ends has ended.
func (s *stretches) why(e *checkpoint.Event, n int) string {
	switch {
	case e.Why == 0:
		return whyUnknown
	case e.Why == checkpoint.SchedSlice && n == 0 && s.last.Forced:
		return whyForced
	}
	return e.Why.String()
}

// endOf returns in words how an interval ends the process, or the recording of it; "" when it
// goes on.
func endOf(e *checkpoint.End) string {
	switch e.Kind {
	case checkpoint.EndCrash:
		return "killed by " + abi.Signal(e.Signo).String()
	case checkpoint.EndExit:
		return fmt.Sprintf("exit code %d", e.ExitCode)
	case checkpoint.EndStop:
		return "recording stopped"
	default:
		return ""
	}
}

// finish ends the last stretch.
func (s *stretches) finish() error {
	if s.cur == nil {
		return nil
	}
	return s.end(s.cur.To, whyRecorded)
}

// switchPoint is the position of a sched event, or of an interval's end, and the name of the
// thread that ran before.
type switchPoint struct {
	at   checkpoint.Position
	name string
}

// switchPoints replays an interval and returns those of its sched events, and of its end.
func switchPoints(ctx context.Context, s *replay.Session, id uint32) ([]switchPoint, error) {
	var list []switchPoint
	ended := "" // the name of the thread that has just ended, which is not there any more at the switch
	note := func(v *observe.View) {
		list = append(list, switchPoint{v.Position(), cmp.Or(runningName(v.Machine()), ended)})
		ended = ""
	}
	event := func(v *observe.View, e *checkpoint.Event) {
		switch {
		case e.Kind == checkpoint.EventSched:
			note(v)
		case e.Kind == checkpoint.EventThread && e.Thread == checkpoint.ThreadExit:
			ended = runningName(v.Machine())
		}
	}
	err := observeInterval(ctx, s, id, &observe.Observer{Event: event, Done: note})
	return list, err
}

// runningName returns what the thread that runs calls itself, "" where it is not known.
func runningName(m *replay.Machine) string {
	for _, t := range m.Threads() {
		if t.TID == m.TID() {
			return t.Name
		}
	}
	return ""
}
