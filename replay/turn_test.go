package replay

import (
	"context"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// TestTurns moves to where a thread that does not run goes on, and back to where it ran
// last; what the other thread meets on the way stops it.
func TestTurns(t *testing.T) {
	cur := newCursor(t, writeThreads(t, twoThreads()))
	const (
		readCall   = firstCode + 7
		afterRead  = firstCode + 9
		lastCall   = firstCode + 16
		exitCall   = secondCode + 16
		secondMove = secondCode + 11
	)
	begin := func() error { return cur.Seek(t.Context(), cur.Timeline().Begin()) }
	end := func() error { _, err := cur.ToEnd(t.Context()); return err }
	second := func() error {
		if err := begin(); err != nil {
			return err
		}
		_, err := cur.ContinueTo(t.Context(), secondTID)
		return err
	}
	for _, c := range []struct {
		what   string
		from   func() error
		to     func(context.Context, int32) (Stop, error)
		tid    int32
		breaks []uint64
		watch  []mem.Watch
		want   Reason
		rip    uint64
		edge   bool
	}{
		{"on to the second thread", begin, cur.ContinueTo, secondTID, nil, nil, StopSwitch, secondCode, false},
		{"on to the first", second, cur.ContinueTo, firstTID, nil, nil, StopSwitch, afterRead, false},
		{"on to the first, to a breakpoint", second, cur.ContinueTo, firstTID, []uint64{secondMove}, nil, StopBreak, secondMove, false},
		{"on to the first, to what read stores", second, cur.ContinueTo, firstTID, nil, []mem.Watch{{Addr: readBuffer, Len: 1, Kind: mem.WatchWrite}}, StopWatch, afterRead, false},
		{"on to a thread that never runs", begin, cur.ContinueTo, 77, nil, nil, StopEnd, lastCall + 2, true},
		{"back to the second", end, cur.ReverseTo, secondTID, nil, nil, StopSwitch, exitCall, false},
		{"back to the second, at a breakpoint there", end, cur.ReverseTo, secondTID, []uint64{exitCall}, nil, StopSwitch, exitCall, false},
		{"back to the second, to a breakpoint", end, cur.ReverseTo, secondTID, []uint64{lastCall}, nil, StopBreak, lastCall, false},
		{"back to the second, a breakpoint before it", end, cur.ReverseTo, secondTID, []uint64{readCall}, nil, StopSwitch, exitCall, false},
		{"back to the first", second, cur.ReverseTo, firstTID, nil, nil, StopSwitch, readCall, false},
		{"back to a thread that has not run", end, cur.ReverseTo, 77, nil, nil, StopLimit, firstCode, true},
	} {
		if err := c.from(); err != nil {
			t.Fatal(err)
		}
		cur.SetBreakpoints(c.breaks, nil)
		cur.SetWatches(c.watch)
		stop, err := c.to(t.Context(), c.tid)
		if rip := cur.Machine().CPU.RIP; err != nil || stop.Reason != c.want || rip != c.rip || stop.Edge != c.edge {
			t.Errorf("%s: %+v at %#x, %v, want %d at %#x", c.what, stop, rip, err, c.want, c.rip)
		}
		if stop.Reason == StopSwitch && cur.Machine().TID() != c.tid {
			t.Errorf("%s: thread %d runs", c.what, cur.Machine().TID())
		}
		cur.SetBreakpoints(nil, nil)
		cur.SetWatches(nil)
	}
}

// TestTurnAtSeam finds the turn of a thread that ended with its interval: the next one
// begins with another thread.
func TestTurnAtSeam(t *testing.T) {
	ivs := twoThreads()
	// The first interval ends before the switch, and the second one begins with the first
	// thread, whose first event it is.
	toSecond := ivs[0].Events[4]
	ivs[0].Events = ivs[0].Events[:4]
	ivs[0].End.Contexts[0], ivs[0].End.Contexts[1] = ivs[0].End.Contexts[1], ivs[0].End.Contexts[0]
	ivs[1].Start[0], ivs[1].Start[1] = ivs[1].Start[1], ivs[1].Start[0]
	ivs[1].Events = append([]checkpoint.Event{toSecond}, ivs[1].Events...)
	cur := newCursor(t, writeThreads(t, ivs))
	stop, err := cur.ContinueTo(t.Context(), secondTID)
	if m := cur.Machine(); err != nil || stop.Reason != StopSwitch || m.TID() != secondTID || m.CPU.RIP != secondCode {
		t.Errorf("on to thread %d at %#x, %+v, %v", m.TID(), m.CPU.RIP, stop, err)
	}
	stop, err = cur.ReverseTo(t.Context(), firstTID)
	if m := cur.Machine(); err != nil || stop.Reason != StopSwitch || m.TID() != firstTID || m.CPU.RIP != firstCode+7 {
		t.Errorf("back to thread %d at %#x, %+v, %v", m.TID(), m.CPU.RIP, stop, err)
	}
}
