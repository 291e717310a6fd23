package debug

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/debug/api"
	"vplay/replay/mem"
)

// A debugger's resumes, made movements of a cursor, and what stopped the cursor, made a
// stop in package api's terms. What is reported where, and how often, is decided here.
// Movements by a command are in seek.go, the boundary of execve is in program.go.

// nowhere is a position that no recording has.
var nowhere = checkpoint.Position{Interval: ^uint32(0)}

// leaveFinal replaces the final image by the same moment on the timeline. The
// two must agree, or replay has diverged.
func (g *Cursor) leaveFinal(ctx context.Context) error {
	if g.final == nil {
		return nil
	}
	if _, err := g.cur.ToEnd(ctx); err != nil {
		return err
	}
	want := loader.Regs(&g.final.Current().State)
	got := loader.Regs(&g.cur.Machine().CPU.State)
	if checkpoint.HashRegs(&want) != checkpoint.HashRegs(&got) {
		return &replay.DivergenceError{
			At: g.cur.Position(), RIP: got.RIP, What: "registers at the end of the recording",
			Want: fmt.Sprintf("rip %#x", want.RIP), Got: fmt.Sprintf("rip %#x", got.RIP),
		}
	}
	g.dropFinal()
	g.reported = g.cur.Position()
	return nil
}

// Resume implements api.Target.
func (g *Cursor) Resume(ctx context.Context, r api.Resume) (api.Stop, error) {
	stop, err := g.resume(ctx, r)
	stop.Moved, g.moved = g.moved, false
	return stop, err
}

func (g *Cursor) resume(ctx context.Context, r api.Resume) (api.Stop, error) {
	if g.goal != nil {
		return g.jump(ctx, &r)
	}
	if g.final != nil && r.Dir == api.Forward {
		return g.past(), nil
	}
	if g.final != nil && g.s.Rec.IsMoment() { // the final image knows more: the signal
		return api.Stop{Kind: api.StopReplayBegin, TID: g.tid(), Note: g.momentNote()}, nil
	}
	if err := g.leaveFinal(ctx); err != nil {
		if replay.Unmatched(err) {
			err = fmt.Errorf("%w (what lies before it can be gone to, as by seek begin)", err)
		}
		return g.failed(err)
	}
	g.arm(&r)
	if r.Dir == api.Forward && g.cur.AtEnd() {
		if stop, ok, err := g.crossImage(ctx, &r); ok || err != nil {
			if err != nil {
				return g.failed(err)
			}
			return stop, nil
		}
	}
	if r.Dir == api.Forward {
		if stop, ok := g.pending(&r); ok {
			g.stop = g.ofAlone(stop, &r)
			return g.stop, nil
		}
	}
	g.reported = nowhere
	var stop replay.Stop
	var err error
	switch r.Kind {
	case api.Continue:
		stop, err = g.run(ctx, &r)
	case api.RangeStep:
		stop, err = g.rangeStep(ctx, &r)
	default:
		stop, err = g.step(ctx, &r)
	}
	if err != nil {
		return g.failed(err)
	}
	if stop.Edge {
		if stop, ok, err := g.crossImage(ctx, &r); ok || err != nil {
			if err != nil {
				return g.failed(err)
			}
			return stop, nil
		}
	}
	g.stop = g.ofAlone(g.report(stop, r), &r)
	return g.stop, nil
}

// run continues in a direction.
func (g *Cursor) run(ctx context.Context, r *api.Resume) (stop replay.Stop, err error) {
	return g.alone(r, func() (replay.Stop, error) {
		switch {
		case r.Dir == api.Backward:
			return g.cur.ReverseContinue(ctx)
		case r.Alone:
			return g.cur.ContinueWith(ctx, checkpoint.TID(r.TID))
		}
		return g.cur.Continue(ctx)
	})
}

// alone moves again and again where one thread is resumed alone, until the stop is one of that
// thread's: what other threads come to does not count, but the recording's end, and the thread's own.
func (g *Cursor) alone(r *api.Resume, move func() (replay.Stop, error)) (stop replay.Stop, err error) {
	for {
		stop, err = move()
		if err != nil || stop.Edge || stop.Reason == replay.StopInterrupt || stop.Reason == replay.StopSwitch || !r.Alone || g.tid() == r.TID {
			return stop, err
		}
	}
}

// ofAlone makes a stop one of the thread that was resumed alone. A client takes the others
// for stopped all the time: gdb 13 ends with an internal error when one of them is said
// to have stopped now.
func (g *Cursor) ofAlone(stop api.Stop, r *api.Resume) api.Stop {
	if !r.Alone || stop.TID == r.TID || stop.Kind == api.StopNoThread {
		return stop
	}
	if stop.Kind == api.StopSignal { // what another thread dies of
		stop = api.Stop{Kind: api.StopReplayEnd, TID: stop.TID, Note: fmt.Sprintf("vplay: here thread %d gets signal %d\n", stop.TID, stop.Signo)}
	}
	return g.forThread(stop, r.TID)
}

// failed reports a movement that could not go on.
func (g *Cursor) failed(err error) (api.Stop, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		g.stop = api.Stop{Kind: api.StopInterrupted, TID: g.tid()}
		return g.stop, nil
	}
	g.stop = api.Stop{Kind: api.StopSignal, Signo: 5, TID: g.tid()}
	return g.stop, err
}

// pending is what a resume forward reports without moving: a signal that is
// about to be delivered, or the end of the recording. A signal is reported once.
func (g *Cursor) pending(r *api.Resume) (api.Stop, bool) {
	if g.cur.AtEnd() {
		return g.atEdge(), true
	}
	e := g.unreported(r)
	if e == nil || r.Alone && g.tid() != r.TID {
		return api.Stop{}, false
	}
	g.reported = g.cur.Position()
	return api.Stop{Kind: api.StopSignal, Signo: int(e.Signo), TID: g.tid()}, true
}

// unreported returns the signal or fault that is pending, unless it has been
// reported here or the debugger does not want to hear of it.
func (g *Cursor) unreported(r *api.Resume) *checkpoint.Event {
	e := g.cur.Machine().Pending()
	switch {
	case e == nil, g.reported == g.cur.Position(), e.Kind != checkpoint.EventSignal && e.Kind != checkpoint.EventFault, passes(r.PassSignals, e.Signo):
		return nil
	}
	return e
}

// passes reports whether signo is in the sorted list.
func passes(list []int, signo int32) bool {
	i := sort.SearchInts(list, int(signo))
	return i < len(list) && list[i] == int(signo)
}

// past is a resume forward from the end of the recording.
func (g *Cursor) past() api.Stop {
	if g.exited() {
		return api.Stop{Kind: api.StopExited, Code: int(g.session.ending.ExitCode), TID: g.tid()}
	}
	return api.Stop{Kind: api.StopReplayEnd, TID: g.tid(), Note: g.momentNote()}
}

// momentNote tells a client that wants to move in a recording that holds no time why it cannot.
func (g *Cursor) momentNote() string {
	if !g.s.Rec.IsMoment() {
		return ""
	}
	return "vplay: the recording holds one moment, with no past and no future\n"
}

// exited reports whether the recording ends with the program's exit.
func (g *Cursor) exited() bool { return g.session.ending.Kind == checkpoint.EndExit }

// report puts a stop in the protocol's words.
func (g *Cursor) report(s replay.Stop, r api.Resume) api.Stop {
	out := api.Stop{TID: g.tid()}
	switch {
	case s.Edge && r.Dir == api.Backward:
		out.Kind, out.Note = api.StopReplayBegin, g.momentNote()
	case s.Edge:
		return g.atEdge()
	case s.Reason == replay.StopBreak:
		out.Kind = g.breakKind()
	case s.Reason == replay.StopWatch && len(s.Hits) > 0:
		out.Kind, out.Addr = watchStop(s.Hits[0])
	case s.Reason == replay.StopSignal:
		g.reported = g.cur.Position()
		out.Kind, out.Signo = api.StopSignal, int(s.Event.Signo)
	case s.Reason == replay.StopSyscall:
		out.Kind, out.Syscall = syscallStop(s.Event)
	case s.Reason == replay.StopInterrupt:
		out.Kind = api.StopInterrupted
	case s.Reason == replay.StopSwitch:
		return g.ended(r.TID)
	default:
		out.Kind = api.StopStep
	}
	return out
}

// atEdge is a stop at the end of the recording. What ends it is reported once: the
// crash as its signal, the exit as the end of history, from where going back is
// still possible; a client that is told of the exit itself lets the process go,
// so that comes with the next resume.
func (g *Cursor) atEdge() api.Stop {
	p := g.cur.Position()
	if g.reported == p {
		return g.past()
	}
	end := g.session.ending
	switch {
	case !g.isLastImage():
		return api.Stop{Kind: api.StopReplayEnd, TID: g.tid(), Note: "vplay: here the process executes another program\n"}
	case end.Kind == checkpoint.EndCrash:
		g.reported = p
		return api.Stop{Kind: api.StopSignal, Signo: int(end.Signo), TID: g.tid()}
	case g.exited():
		g.reported = p
		return api.Stop{
			Kind: api.StopReplayEnd, TID: g.tid(),
			Note: fmt.Sprintf("vplay: here the program exits with code %d\n", end.ExitCode),
		}
	default:
		return g.past()
	}
}

func (g *Cursor) breakKind() api.StopKind {
	rip := g.cur.Machine().CPU.RIP
	for k := range g.breaks {
		if k.Addr == rip && k.kind == api.BreakHardware {
			return api.StopHWBreakpoint
		}
	}
	return api.StopBreakpoint
}

func watchStop(h mem.Hit) (api.StopKind, uint64) {
	switch h.Watch.Kind {
	case mem.WatchRead:
		return api.StopWatchRead, h.Watch.Addr
	case mem.WatchAccess:
		return api.StopWatchAccess, h.Watch.Addr
	default:
		return api.StopWatchWrite, h.Watch.Addr
	}
}

// syscallStop says which side of which call e is.
func syscallStop(e *checkpoint.Event) (api.StopKind, int) {
	if e.Kind == checkpoint.EventEnter {
		return api.StopSyscallEntry, int(e.NR)
	}
	return api.StopSyscallReturn, int(e.NR)
}

// Rewind implements api.Target.
func (g *Cursor) Rewind() error {
	g.dropFinal()
	if err := g.cur.Seek(context.Background(), g.t.Begin()); err != nil {
		return err
	}
	g.reported = nowhere
	g.stop = api.Stop{Kind: api.StopSignal, Signo: 5, TID: g.tid()}
	return nil
}
