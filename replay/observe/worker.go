package observe

import (
	"context"
	"errors"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/x86"
)

// One interval: it is replayed with what its observer asks for, and what there is to tell
// is told at once, or when its turn has come.

// worker replays one interval.
type worker struct {
	ctx   context.Context
	s     *replay.Session
	o     *Options
	turns *turns
	index int // in Options.Intervals
	id    uint32

	m     *replay.Machine
	ob    *Observer
	live  View
	ended error // why the callbacks want no more; errStopped: for no reason

	isExec     map[uint64]bool  // Observer.Addresses
	calls      *calls           // nil: nobody asks for functions
	tracer     *x86.TraceEngine // nil: nobody asks for every instruction
	runs       *x86.RunEngine   // nil: nobody asks for runs
	log        *x86.AccessLog   // nil: nobody asks for every access
	past       *past            // nil: nor for every one some time behind it
	mark       *replay.Snapshot // where View.At begins: before all accesses that past has yet to tell
	back       View             // what it has returned
	branch     Branch           // the branch that is told
	told       Access           // the access that is told, so that none is allocated
	watched    []watchedAccess  // of the instruction or event that was executed last
	inEvent    bool             // an event is being applied
	last       checkpoint.Position
	hasStopped bool // last is where the machine stopped last at an address

	ahead  []moment        // told when the turn comes
	viewer *replay.Machine // of which they are told
}

// moment is a callback that waits for its turn.
type moment struct {
	at   *replay.Snapshot
	tell func(*View)
}

// maxAhead is how many callbacks of an interval may wait for its turn.
const maxAhead = 4096

// errStopped is View.Stop(nil).
var errStopped = errors.New("observe: stopped")

// observe replays the interval, waits for its turn, and tells what is left to tell.
func (w *worker) observe() error {
	defer w.s.Forget(w.id)
	err := w.begin()
	if w.m != nil {
		defer w.m.Close()
	}
	if err == nil && w.ob != nil {
		err = w.replay()
	}
	defer w.drop()
	if !w.turns.await(w.index) {
		return w.ctx.Err()
	}
	w.tellAhead()
	switch {
	case w.ended != nil:
		return w.ended
	case err != nil:
		return err
	case w.ob != nil && w.ob.Done != nil:
		w.ob.Done(&w.live)
	}
	if w.ended == nil && w.o.End != nil {
		w.ended = w.o.End(w.id)
	}
	return w.ended
}

// begin makes the machine and its observer.
func (w *worker) begin() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	k, err := w.s.Start(w.id)
	if err != nil {
		return err
	}
	defer k.Release()
	first := w.s.Viewer(k)
	defer func() {
		if w.m == nil {
			first.Close()
		}
	}()
	w.ob, err = w.o.Begin(&View{m: first, stop: w.stop})
	if err != nil || w.ob == nil {
		return err
	}
	w.viewer = first
	var engine x86.Engine
	switch {
	case w.ob.runs():
		w.runs = &x86.RunEngine{}
		engine = w.runs
	case w.ob.Instr != nil:
		w.tracer = &x86.TraceEngine{}
		engine = w.tracer
	case w.ob.tracesAccesses():
		engine = x86.BlockEngine{}
	}
	maker := w.s.Engine
	if engine != nil {
		maker = func(*x86.CPU) (x86.Engine, func()) { return engine, func() {} }
	}
	if w.m, err = w.s.MachineBy(w.id, maker); err != nil {
		return err
	}
	w.live = View{m: w.m, stop: w.stop, tellAccesses: w.tellAccesses}
	return nil
}

// stop is View.Stop.
func (w *worker) stop(err error) {
	if w.ended != nil {
		return
	}
	if w.ended = err; err == nil {
		w.ended = errStopped
	}
	if w.m != nil {
		w.m.CPU.Interrupt()
	}
}

// arm has the machine notice what the observer asks for.
func (w *worker) arm() {
	ob, m := w.ob, w.m
	w.isExec = map[uint64]bool{}
	if ob.Exec != nil {
		for _, a := range ob.Addresses {
			w.isExec[a] = true
		}
	}
	addrs := append([]uint64(nil), ob.Addresses...)
	if ob.Enter != nil || ob.Leave != nil {
		w.calls = newCalls(m, ob)
		addrs = append(append(addrs, ob.Functions...), w.calls.addresses()...)
	}
	if len(addrs) > 0 {
		m.SetBreakpoints(addrs)
	}
	if ob.Touched != nil {
		m.Mem.Track(ob.Touched)
	}
	switch {
	case ob.runs():
		w.live.runs, w.live.event = true, ^uint64(0)
		w.runs.Tell(m.CPU, w.ran)
	case ob.Instr != nil:
		w.trace()
	case ob.watches() && !ob.tracesAccesses():
		w.watch()
	}
	switch {
	case ob.tracesAccesses():
		w.traceAccesses()
	case ob.wantsPast() && !ob.tracesLater():
		w.tracePast()
	}
	if ob.Event != nil || ob.Applied != nil || ob.Mapped != nil || ob.Access != nil || ob.traces() {
		m.OnEvent, m.OnApplied = w.event, w.applied
	}
}

// ran tells of a run of instructions, and of the branch at its end.
func (w *worker) ran(r *x86.Run) {
	if w.ended == nil && w.ob.Run != nil {
		w.ob.Run(&w.live, r)
	}
	if w.ob.Branch == nil || w.ended != nil {
		return
	}
	if r.Inst(r.N-1).Flags&x86.InstEnd == 0 {
		return
	}
	b := &w.branch
	b.From, b.Inst = r.Last()
	b.To = w.m.CPU.RIP
	if b.Kind, b.IsIndirect = b.Inst.Transfer(); b.Kind == x86.NoTransfer || b.Kind == x86.Branch && b.To == b.From+uint64(b.Inst.Len) {
		return
	}
	w.ob.Branch(&w.live, b)
}

// slice is how many instructions are executed between two looks at the rest.
const slice = 4_000_000

// replay replays the interval to its end.
func (w *worker) replay() error {
	if (w.o.Ordered && w.ob.traces() || w.ob.Marks != nil) && !w.turns.await(w.index) {
		return w.ctx.Err()
	}
	w.m.Mem.AllowMapping()
	w.arm()
	if w.ob.Start != nil {
		w.tell(w.ob.Start)
	}
	stop := context.AfterFunc(w.ctx, w.m.CPU.Interrupt)
	defer stop()
	for skip := false; ; {
		w.markPast()
		before := w.m.CPU.Retired
		why, err := w.m.Run(replay.Target{Instr: before + slice}, skip)
		w.tellPast()
		if w.o.Progress != nil {
			w.o.Progress(w.m.CPU.Retired - before)
		}
		switch {
		case w.ended != nil:
			return nil // observe looks at it
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		case err != nil:
			return err
		}
		skip = false
		w.tellWatched() // whatever it stopped for
		switch why {
		case replay.StopBreak:
			skip = true
			w.atBreak()
		case replay.StopEnd:
			return w.m.CheckEnd()
		case replay.StopInterrupt: // somebody has wanted a look
			w.m.CPU.Interrupted()
		case replay.StopWatch, replay.StopLimit, replay.StopSignal, replay.StopSyscall, replay.StopSwitch:
		}
	}
}

// atBreak tells what there is to tell at an address. An instruction that has only grown the stack is executed
// again from the same position.
func (w *worker) atBreak() {
	p := w.m.Position()
	if w.hasStopped && p == w.last {
		return
	}
	w.last, w.hasStopped = p, true
	if w.calls != nil {
		w.calls.stopped(w)
	}
	if w.isExec[w.m.CPU.RIP] {
		w.tell(w.ob.Exec)
	}
}

// event and applied are Machine.OnEvent and OnApplied.
func (w *worker) event(e *checkpoint.Event) {
	w.tellPast()
	w.live.event = w.m.CPU.Retired
	w.inEvent = true
	if f := w.ob.Event; f != nil {
		w.tell(func(v *View) { f(v, e) })
	}
}

func (w *worker) applied(e *checkpoint.Event) {
	w.inEvent = false
	w.live.event = w.m.CPU.Retired
	if w.ob.Marks != nil {
		w.unmark(e)
	}
	if w.ob.Mapped != nil && mapsCode(e) {
		w.extend(w.ob.Mapped(&w.live))
	}
	if f := w.ob.Applied; f != nil {
		w.tell(func(v *View) { f(v, e) })
	}
}

// mapsCode reports whether an event maps memory that can be executed, or protects some: so the dynamic linker ends
// the relocation of a module.
func mapsCode(e *checkpoint.Event) bool {
	for i := range e.Maps {
		if op := &e.Maps[i]; op.Kind == checkpoint.MapOpMap && op.Map.Prot&checkpoint.ProtExec != 0 || op.Kind == checkpoint.MapOpProtect {
			return true
		}
	}
	return false
}

// extend adds addresses that the observer is told of.
func (w *worker) extend(addresses, functions []uint64) {
	for _, a := range addresses {
		w.isExec[a] = true
		w.m.AddBreakpoint(a)
	}
	if w.calls == nil {
		return
	}
	for _, a := range functions {
		w.calls.entries[a] = true
		w.m.AddBreakpoint(a)
	}
}

// tell calls f, now or when it is the interval's turn.
func (w *worker) tell(f func(*View)) {
	if w.ended != nil {
		return
	}
	if w.o.Ordered && !w.turns.isHead(w.index) {
		if len(w.ahead) < maxAhead && hasRoom(w.s) {
			w.ahead = append(w.ahead, moment{w.m.Save(), f})
			return
		}
		if !w.turns.await(w.index) {
			w.stop(w.ctx.Err())
			return
		}
	}
	if w.tellAhead(); w.ended == nil {
		f(&w.live)
	}
}

// tellsNow reports whether tell would call at once, so that no function need be made for it.
func (w *worker) tellsNow() bool {
	return w.ended == nil && len(w.ahead) == 0 && (!w.o.Ordered || w.turns.isHead(w.index))
}

// tellAhead calls those who wait for their turn, which it is.
func (w *worker) tellAhead() {
	if len(w.ahead) == 0 {
		return
	}
	v := View{m: w.viewer, stop: w.stop}
	for i := range w.ahead {
		if w.ended != nil || w.ctx.Err() != nil {
			return
		}
		k := w.ahead[i].at
		w.viewer.Restore(k)
		k.Release()
		w.ahead[i].at = nil
		w.ahead[i].tell(&v)
	}
	w.ahead = w.ahead[:0]
}

// drop gives back what was kept.
func (w *worker) drop() {
	for i := range w.ahead {
		if k := w.ahead[i].at; k != nil {
			k.Release()
		}
	}
	w.releaseMark()
	if w.back.m != nil {
		w.back.m.Close()
	}
	if w.viewer != nil {
		w.viewer.Close()
	}
}
