package replay

import (
	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// What runs stop at, and what they say when they have stopped. How a run finds that out is in
// runner.go and worker.go.

// stops is what a run stops at.
type stops struct {
	breaks  map[uint64]struct{}
	watches []mem.Watch
	filter  func(*Machine) bool
	// conditions are those of breaks: filter refuses a break where all of them are 0.
	conditions *x86.Conditions
	signals    func(signo int32) bool
	calls      func(nr int64) bool

	noSignals  bool // signals stop nothing
	everyStore bool // watched stores that change nothing count
}

// mayStopAt reports whether a run can stop at e.
func (q *stops) mayStopAt(e *checkpoint.Event) bool {
	switch e.Kind {
	case checkpoint.EventSignal, checkpoint.EventFault:
		return !q.noSignals && (q.signals == nil || q.signals(e.Signo))
	case checkpoint.EventEnter, checkpoint.EventExit:
		return q.calls != nil && q.calls(e.NR)
	default:
		return false
	}
}

// eventSummary is which kinds of events an interval has.
type eventSummary struct {
	signals, calls bool
	maps           bool // that change the memory map
}

// summarize returns what there is among events.
func summarize(events []checkpoint.Event) (sum eventSummary) {
	for i := range events {
		switch events[i].Kind {
		case checkpoint.EventSignal, checkpoint.EventFault:
			sum.signals = true
		case checkpoint.EventEnter, checkpoint.EventExit:
			sum.calls = true
		}
		sum.maps = sum.maps || len(events[i].Maps) > 0
	}
	return sum
}

// asks reports whether one of an interval's events may be a stop of q, or change what its watches are for.
func (q *stops) asks(sum eventSummary) bool {
	return sum.signals && !q.noSignals || sum.calls && q.calls != nil || sum.maps && len(q.watches) > 0
}

// Stop says why a movement of the cursor ended.
type Stop struct {
	Reason Reason
	Hits   []mem.Hit         // StopWatch
	Event  *checkpoint.Event // StopSignal: what is about to be delivered; StopSyscall: the event
	// Edge is set when the beginning or the end of the recording was reached.
	Edge bool
}
