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
// end of its thread where it has not. The text is that of vplayd dump --strings.

// strace writes it.
type strace struct {
	out    *bufio.Writer
	inside map[int32]string // calls that have not returned
}

func writeStrace(w *walk, out io.Writer) error {
	s := &strace{out: bufio.NewWriter(out), inside: map[int32]string{}}
	err := w.run(observe.Options{
		Ordered: true,
		Begin: func(*observe.View) (*observe.Observer, error) {
			return &observe.Observer{Event: s.before, Applied: s.applied, Done: func(v *observe.View) { w.sum += v.CPU().Retired }}, nil
		},
	})
	if err != nil {
		return err
	}
	for _, tid := range sortedKeys(s.inside) {
		s.unfinished(tid)
	}
	return s.out.Flush()
}

// line writes a line.
func (s *strace) line(tid int32, what string) {
	fmt.Fprintf(s.out, "%d %s\n", tid, text.Printable(what)) // Flush has the error
}

func (s *strace) unfinished(tid int32) {
	if call, ok := s.inside[tid]; ok {
		delete(s.inside, tid)
		s.line(tid, call+" = ?")
	}
}

func (s *strace) before(v *observe.View, e *checkpoint.Event) {
	switch e.Kind {
	case checkpoint.EventEnter:
		s.inside[int32(e.TID)] = abi.Format(debug.ReadAt{Memory: debug.Memory{Space: v.Machine().Mem}}, e.NR, e.Args)
	case checkpoint.EventSignal:
		s.line(int32(e.TID), debug.SignalText(e))
	default: // Not what strace prints.
	}
}

func (s *strace) applied(_ *observe.View, e *checkpoint.Event) {
	tid := int32(e.TID)
	switch e.Kind {
	case checkpoint.EventExit:
		call, ok := s.inside[tid]
		if !ok {
			call = abi.Name(e.NR) + "(...)"
		}
		delete(s.inside, tid)
		s.line(tid, call+" = "+abi.FormatResult(e.NR, e.Result))
	case checkpoint.EventThread:
		if e.Thread == checkpoint.ThreadExit {
			s.unfinished(tid)
			s.line(tid, fmt.Sprintf("+++ exited with %d +++", e.Status))
		}
	default: // Not what strace prints.
	}
}
