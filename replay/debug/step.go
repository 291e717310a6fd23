package debug

import (
	"context"
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/debug/api"
)

// Steps. A debugger steps the thread that its user has selected. One thread runs at a
// time, and that is often another one: then the process runs on, as recorded, until the
// selected thread has had its turn. What stops any run stops it on the way: a breakpoint
// that another thread comes to, a watchpoint, a signal, the end of the recording.

// step takes a step of thread r.TID, of whichever runs when that is 0. The reason is
// StopLimit when that is all that happened, and StopSwitch when the thread ended with it.
func (g *Cursor) step(ctx context.Context, r *api.Resume) (stop replay.Stop, err error) {
	if r.TID == 0 || r.TID == g.tid() {
		stop, err = g.stepProcess(ctx, r)
		if r.TID == 0 || err != nil || stop.Edge || stop.Reason != replay.StopLimit || g.tid() == r.TID {
			return stop, err
		}
		if stop, ok := g.met(r); ok {
			return stop, nil
		}
		return g.toTurn(ctx, r)
	}
	t, ok := g.thread(r.TID)
	if !ok {
		return replay.Stop{}, fmt.Errorf("there is no thread %d here", r.TID)
	}
	stop, err = g.toTurn(ctx, r)
	if err == nil && r.Dir == api.Forward && stop.Reason == replay.StopLimit && !stop.Edge && !t.InCall && g.unreported(r) == nil {
		// It stands where it stood, and has its step to do. One that was in a call has
		// done it: the call has returned.
		return g.step(ctx, r)
	}
	return stop, err
}

// stepProcess takes a step of the thread that runs.
func (g *Cursor) stepProcess(ctx context.Context, r *api.Resume) (replay.Stop, error) {
	if r.Dir == api.Forward {
		return g.cur.StepForward(ctx)
	}
	stop, err := g.cur.StepBack(ctx)
	g.crossed(&stop, r)
	return stop, err
}

// met returns what the cursor stops at where a step of thread r.TID has led to another one.
func (g *Cursor) met(r *api.Resume) (stop replay.Stop, ok bool) {
	if e := g.unreported(r); e != nil && !r.Alone {
		return replay.Stop{Reason: replay.StopSignal, Event: e, Edge: g.cur.AtEnd()}, true
	}
	if g.cur.AtEnd() {
		return replay.Stop{Reason: replay.StopEnd, Edge: true}, true
	}
	if g.cur.AtBreak() {
		return replay.Stop{Reason: replay.StopBreak}, true
	}
	_, ok = g.thread(r.TID)
	return replay.Stop{Reason: replay.StopSwitch}, !ok
}

// toTurn moves to where thread r.TID, which does not run, goes on, or back to where it ran
// last. The reason is then StopLimit.
func (g *Cursor) toTurn(ctx context.Context, r *api.Resume) (stop replay.Stop, err error) {
	stop, err = g.alone(r, func() (replay.Stop, error) {
		if r.Dir == api.Forward {
			return g.cur.ContinueTo(ctx, checkpoint.TID(r.TID))
		}
		return g.cur.ReverseTo(ctx, checkpoint.TID(r.TID))
	})
	if err == nil && stop.Reason == replay.StopSwitch {
		stop.Reason = replay.StopLimit
	}
	return stop, err
}

// crossed makes a step back a stop at a signal when it went back over the signal's
// delivery, as a run back stops there.
func (g *Cursor) crossed(stop *replay.Stop, r *api.Resume) {
	if stop.Reason != replay.StopLimit || stop.Edge {
		return
	}
	if e := g.unreported(r); e != nil {
		*stop = replay.Stop{Reason: replay.StopSignal, Event: e}
	}
}

// rangeStep steps until the thread's RIP leaves [Start, End) or anything else stops it.
func (g *Cursor) rangeStep(ctx context.Context, r *api.Resume) (replay.Stop, error) {
	for first := true; ; first = false {
		if e := g.unreported(r); r.Dir == api.Forward && !first && e != nil {
			return replay.Stop{Reason: replay.StopSignal, Event: e, Edge: g.cur.AtEnd()}, nil
		}
		stop, err := g.step(ctx, r)
		rip := g.cur.Machine().CPU.RIP
		if err != nil || stop.Edge || stop.Reason != replay.StopLimit || rip < r.Start || rip >= r.End || g.cur.AtBreak() {
			return stop, err
		}
		if ctx.Err() != nil {
			return replay.Stop{Reason: replay.StopInterrupt}, nil
		}
	}
}

// thread returns a thread of the process at the present position.
func (g *Cursor) thread(tid int) (t replay.Thread, ok bool) {
	list := g.threads()
	i := slices.IndexFunc(list, func(t replay.Thread) bool { return int(t.TID) == tid })
	if i < 0 {
		return t, false
	}
	return list[i], true
}

// ended is the stop of a movement of a thread with which it ended, or began when time runs
// backward.
func (g *Cursor) ended(tid int) api.Stop {
	return api.Stop{Kind: api.StopNoThread, TID: g.tid(), Note: fmt.Sprintf("vplay: thread %d is not there any more\n", tid)}
}
