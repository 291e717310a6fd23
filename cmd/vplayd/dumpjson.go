package main

import (
	"io"

	"vplay/checkpoint"
)

// The log as JSON, for scripts: one object a line, for each interval and then for each of
// its events.

// intervalObject is an interval.
type intervalObject struct {
	Interval   uint32           `json:"interval"`
	PID        int32            `json:"pid"`
	Image      uint32           `json:"image"` // how many times the process had called execve
	Threads    []checkpoint.TID `json:"threads"`
	Slim       bool             `json:"slim"`
	FirstLoads bool             `json:"first_loads,omitempty"`
	Events     int              `json:"events"`
	CPUSeconds float64          `json:"cpu_seconds"`
	End        string           `json:"end"`
	Signal     int32            `json:"signal,omitempty"` // that ended the program
	ExitCode   *int32           `json:"exit_code,omitempty"`
	Reason     string           `json:"reason,omitempty"` // of a gap
}

// eventObject is an event. What a kind of event does not have is left out.
type eventObject struct {
	Interval uint32         `json:"interval"`
	Event    int            `json:"event"` // its number in the interval
	Kind     string         `json:"kind"`
	TID      checkpoint.TID `json:"tid"`
	NR       *int64         `json:"nr,omitempty"` // of a system call
	Args     []uint64       `json:"args,omitempty"`
	Result   *int64         `json:"result,omitempty"`
	Signal   int32          `json:"signal,omitempty"`
	Text     string         `json:"text"` // as dump prints it
}

// dumpJSON writes an interval. The error is w's.
func dumpJSON(w io.Writer, iv *checkpoint.Interval, o checkpoint.TextOptions) error {
	x := intervalObject{
		Interval: iv.ID, PID: iv.PID, Image: iv.Image, Slim: iv.Slim, FirstLoads: iv.FirstLoads, Events: len(iv.Events), CPUSeconds: iv.End.CPUTime.Seconds(),
		End: iv.End.Kind.String(), Reason: iv.End.Reason,
	}
	for i := range iv.Start {
		x.Threads = append(x.Threads, iv.Start[i].TID)
	}
	switch iv.End.Kind {
	case checkpoint.EndCrash:
		x.Signal = iv.End.Signo
	case checkpoint.EndExit:
		x.ExitCode = &iv.End.ExitCode
	default: // The kind says all.
	}
	if err := encodeLine(w, x); err != nil {
		return err
	}
	for i := range iv.Events {
		e := &iv.Events[i]
		x := eventObject{Interval: iv.ID, Event: i, Kind: e.Kind.String(), TID: e.TID, Text: checkpoint.EventLine(e, o)}
		switch e.Kind {
		case checkpoint.EventEnter:
			x.NR, x.Args = &e.NR, e.Args[:]
		case checkpoint.EventExit:
			x.NR, x.Result = &e.NR, &e.Result
		case checkpoint.EventSignal, checkpoint.EventFault:
			x.Signal = e.Signo
		default: // The text says all.
		}
		if err := encodeLine(w, x); err != nil {
			return err
		}
	}
	return nil
}
