package export

import (
	"bufio"
	"fmt"
	"io"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/debug"
	"vplay/replay/debug/text"
	"vplay/replay/observe"
)

// System calls and signals as strace -f -o prints them: a thread's number and what it did, a line each. A call stands where it has returned, or at the
// end of its thread where it has not. The last line says how the process ended.

// strace writes it.
type strace struct {
	out    *bufio.Writer
	inside map[int32]*straced // calls that have not returned
	fault  *checkpoint.Event  // no signal has come of it yet
}

// straced is a call that has not returned.
type straced struct {
	nr   int64
	args [6]uint64
	text string // as at its entry
}

func writeStrace(w *walk, out io.Writer) error {
	s := &strace{out: bufio.NewWriter(out), inside: map[int32]*straced{}}
	err := w.run(observe.Options{
		Ordered: true,
		Begin: func(*observe.View) (*observe.Observer, error) {
			return &observe.Observer{Event: s.before, Applied: s.applied, Done: func(v *observe.View) { w.sum += v.CPU().Retired }}, nil
		},
	})
	if err != nil {
		return err
	}
	if s.fault != nil {
		s.line(int32(s.fault.TID), debug.SignalText(s.fault))
	}
	for _, tid := range sortedKeys(s.inside) {
		s.unfinished(tid)
	}
	s.ended(w)
	return s.out.Flush()
}

// ended writes how the process has ended, where that is in what is exported.
func (s *strace) ended(w *walk) {
	e := w.s.Rec.Ending(w.o.PID)
	switch {
	case w.ids[len(w.ids)-1] != w.images[len(w.images)-1].last:
	case e.Kind == checkpoint.EndExit:
		s.line(w.o.PID, fmt.Sprintf("+++ exited with %d +++", e.ExitCode))
	case e.Kind == checkpoint.EndCrash:
		s.line(w.o.PID, fmt.Sprintf("+++ %s +++", debug.EndText(e)))
	default: // It ran on.
	}
}

// line writes a line.
func (s *strace) line(tid int32, what string) {
	fmt.Fprintf(s.out, "%d %s\n", tid, text.Printable(what)) // Flush has the error
}

func (s *strace) unfinished(tid int32) {
	if call, ok := s.inside[tid]; ok {
		delete(s.inside, tid)
		s.line(tid, call.text+" = ?")
	}
}

func (s *strace) before(v *observe.View, e *checkpoint.Event) {
	switch e.Kind {
	case checkpoint.EventEnter:
		s.inside[int32(e.TID)] = &straced{e.NR, e.Args, abi.Format(memoryOf(v), e.NR, e.Args)}
	case checkpoint.EventFault: // the signal follows, unless the process dies of it
		s.fault = e
	case checkpoint.EventSignal:
		s.fault = nil
		s.line(int32(e.TID), debug.SignalText(e))
	default: // Not what strace prints.
	}
}

func (s *strace) applied(v *observe.View, e *checkpoint.Event) {
	tid := int32(e.TID)
	switch e.Kind {
	case checkpoint.EventExit:
		s.returned(v, tid, e)
	case checkpoint.EventThread:
		if e.Thread == checkpoint.ThreadExit {
			s.unfinished(tid)
			s.line(tid, fmt.Sprintf("+++ exited with %d +++", e.Status))
		}
	default: // Not what strace prints.
	}
}

// returned writes a call that has returned: with what it has read, where it has succeeded.
func (s *strace) returned(v *observe.View, tid int32, e *checkpoint.Event) {
	call := s.inside[tid]
	delete(s.inside, tid)
	switch {
	case call == nil:
		s.line(tid, abi.Name(e.NR)+"(...) = "+abi.FormatResult(e.NR, e.Result))
	case e.Result >= 0 && call.nr == e.NR:
		s.line(tid, abi.FormatCall(memoryOf(v), call.nr, call.args, e.Result))
	default:
		s.line(tid, call.text+" = "+abi.FormatResult(e.NR, e.Result))
	}
}

// memoryOf is what a call's strings and structures are read from.
func memoryOf(v *observe.View) debug.ReadAt {
	return debug.ReadAt{Memory: debug.Memory{Space: v.Machine().Mem}}
}
