package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/observe"
)

// What is asked for, and the way of the accesses and events of a recording to the counters.

// Scan says over how much of a full window the adaptive scheme looks back: Instructions, or where that is 0 the
// Share of the window, from 0 to 1.
type Scan struct {
	Instructions uint64
	Share        float64
}

// of returns the scan in instructions, for windows of at most bound.
func (s Scan) of(bound uint64) uint64 {
	if s.Instructions > 0 {
		return min(s.Instructions, bound)
	}
	return uint64(s.Share * float64(bound))
}

// Limits of what may be asked for.
const (
	MaxBounds = 16
	MaxPoints = 1000
	// DefaultPoints is the value of Options.Points that 0 stands for.
	DefaultPoints = 100
)

// Options says what is counted.
type Options struct {
	// Intervals are those of one process, in order.
	Intervals []uint32
	// Bounds are the bounds on replay, T, in instructions; from 1 to MaxBounds of them, each at least 1.
	Bounds []uint64
	Scan   Scan
	// Points is how many cuts a window of the greatest length can have, from 1 to MaxPoints.
	Points uint64
	// Progress, when set, is called now and then with the instructions replayed since its last call.
	Progress func(n uint64)
}

// Report is what must be traced of a process.
type Report struct {
	Instructions uint64 `json:"instructions"`
	Intervals    int    `json:"intervals"`
	Reads        uint64 `json:"reads"`  // accesses by the program
	Writes       uint64 `json:"writes"` // accesses by the program
	ReadBytes    uint64 `json:"read_bytes"`
	WriteBytes   uint64 `json:"write_bytes"`
	// LogBytes are what system calls and signals stored in memory. The log has them, whatever
	// the windows are, so a read of them in the same window is not traced.
	LogBytes uint64 `json:"log_bytes"`
	// Outside is how many bytes were read before anything in the recording had stored or brought them: program files, and what
	// was there when the recording began.
	Outside uint64   `json:"outside_bytes"`
	Bounds  []Counts `json:"bounds"` // in ascending order
}

// check refuses options that make no sense, and puts the bounds in order.
func (o *Options) check() error {
	if o.Points == 0 {
		o.Points = DefaultPoints
	}
	o.Bounds = slices.Clone(o.Bounds)
	slices.Sort(o.Bounds)
	o.Bounds = slices.Compact(o.Bounds)
	switch {
	case len(o.Bounds) == 0 || len(o.Bounds) > MaxBounds || o.Bounds[0] == 0:
		return fmt.Errorf("windows: 1 to %d bounds of at least one instruction are wanted", MaxBounds)
	case o.Points > MaxPoints:
		return fmt.Errorf("windows: %d points, there may be %d", o.Points, MaxPoints)
	case o.Scan.Share < 0 || o.Scan.Share > 1:
		return errors.New("windows: a share is from 0 to 1")
	}
	return nil
}

// Of replays the intervals and counts what must be traced of them. Memory is some 8 to 32 KiB for each page
// that the program accesses, at most half of what the recording's budget allows, besides the rings of the counters. Errors: those of
// observe.Run, *checkpoint.LimitError, and one for options that make no sense.
func Of(ctx context.Context, s *replay.Session, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	x := newAnalysis(&o, newRoom(s.Rec))
	if err := follow(ctx, s, o.Intervals, o.Progress, x); err != nil {
		return nil, err
	}
	return x.finish(), nil
}

// follower is told of a process's intervals, in order.
type follower interface {
	// begin is called at an interval's start, v being there; goesOn says that memory is what it
	// was at the end of the one before.
	begin(v *observe.View, goesOn bool) *observe.Observer
	// end is called at its end, with the instructions that it has.
	end(instructions uint64)
}

// follow replays intervals in order. What an access or event costs that is an error is told by View.Stop.
func follow(ctx context.Context, s *replay.Session, intervals []uint32, progress func(uint64), f follower) error {
	follows, err := continuations(s.Rec, intervals)
	if err != nil {
		return err
	}
	return observe.Run(ctx, s, observe.Options{
		Intervals: intervals, Ordered: true, Workers: 1, Progress: progress,
		Begin: func(v *observe.View) (*observe.Observer, error) {
			ob := f.begin(v, follows[v.Position().Interval])
			ob.Done = func(v *observe.View) { f.end(v.Position().Instr) }
			return ob, nil
		},
	})
}

// continuations returns which intervals begin with the memory that the one before ended with.
func continuations(rec *checkpoint.Recording, intervals []uint32) (map[uint32]bool, error) {
	infos := map[uint32]*checkpoint.IntervalInfo{}
	list := rec.Intervals()
	for i := range list {
		infos[list[i].ID] = &list[i]
	}
	follows := map[uint32]bool{}
	var before *checkpoint.IntervalInfo
	for _, id := range intervals {
		in := infos[id]
		if in == nil {
			return nil, fmt.Errorf("windows: interval %d: %w", id, checkpoint.ErrNoInterval)
		}
		follows[id] = before != nil && before.PID == in.PID && before.Image == in.Image && before.End != checkpoint.EndGap
		before = in
	}
	return follows, nil
}
