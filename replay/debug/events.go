package debug

import (
	"context"
	"fmt"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/mem"
)

// The events before the present position, and an event as text, with what its pointers
// point to. System calls and siginfo_t are written by package abi. The form of the
// answer is in answers.go.

// Events returns the last n events before the present position, the newest last. Errors
// are those of a movement.
func (g *Cursor) Events(ctx context.Context, n int) ([]Event, error) {
	if err := g.leaveFinal(ctx); err != nil {
		return nil, err
	}
	now := g.cur.Position()
	all := g.t.Intervals()
	var out []Event
	for i := len(all) - 1; i >= 0 && len(out) < n; i-- {
		id := all[i]
		if id > now.Interval || g.t.EventCount(id+1) == g.t.EventCount(id) {
			continue
		}
		iv, err := g.s.Rec.Interval(id)
		if err != nil {
			return nil, err
		}
		last := len(iv.Events)
		if id == now.Interval {
			last = len(g.cur.Machine().Past(last))
		}
		first := max(0, last-(n-len(out)))
		var part []Event
		at, err := g.t.EventPositions(ctx, id, first, last, func(e *checkpoint.Event, m *mem.Space) {
			part = append(part, Event{TID: int(e.TID), Kind: e.Kind.String(), Text: eventText(e, Memory{m})})
		})
		if err != nil {
			return nil, err
		}
		for i, p := range at {
			if first+i > 0 && isHandled(&iv.Events[first+i-1], &iv.Events[first+i]) {
				part[i].Text = "    its handler runs"
			}
			part[i].Number, part[i].Position = g.t.EventCount(id)+first+i, p
		}
		out = append(part, out...)
	}
	return out, nil
}

// isHandled reports whether e is the delivery of the signal that the fault before it
// made, which has said all about it.
func isHandled(fault, e *checkpoint.Event) bool {
	return fault.Kind == checkpoint.EventFault && e.Kind == checkpoint.EventSignal && fault.Signo == e.Signo
}

// ReadAt reads guest memory for the system call printer.
type ReadAt struct{ Memory }

func (m ReadAt) ReadAt(addr uint64, b []byte) int { return m.ReadMemory(addr, b) }

// eventText prints an event on one line; arguments that point to memory are
// shown with what is there in m.
func eventText(e *checkpoint.Event, m Memory) string {
	switch e.Kind {
	case checkpoint.EventEnter:
		return abi.Format(ReadAt{m}, e.NR, e.Args)
	case checkpoint.EventExit:
		return "  " + abi.FormatResult(e.NR, e.Result)
	case checkpoint.EventSignal, checkpoint.EventFault:
		if s := SignalText(e); s != "" {
			return s
		}
	case checkpoint.EventInstr:
		return instrText(e)
	default: // The plain form.
	}
	return e.Text()
}

// instrText prints the result of a trapped instruction: the counter, or the four
// registers of CPUID.
func instrText(e *checkpoint.Event) string {
	if e.Instr == checkpoint.InstrCPUID {
		return fmt.Sprintf("cpuid = %#x, %#x, %#x, %#x", e.Out[0], e.Out[1], e.Out[2], e.Out[3])
	}
	return fmt.Sprintf("%s = %#x", e.Instr, e.Out[3]<<32|e.Out[0]&0xffffffff)
}

// SignalText prints a signal or a fault as strace does: its name, why it was
// sent, and from where. It is "" where the recording holds no siginfo_t.
func SignalText(e *checkpoint.Event) string {
	if len(e.Siginfo) < abi.SizeofSiginfo {
		return ""
	}
	return "--- " + abi.Siginfo(e.Siginfo).String() + " ---"
}
