package observe

import (
	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Accesses: all of them by x86.AccessLog, or those to chosen ranges by watches of package
// mem, with which the program runs at full speed in between.

// trace has every instruction told.
func (w *worker) trace() {
	c, t := w.m.CPU, w.tracer
	v := &w.live
	v.runs, v.event = true, ^uint64(0)
	before := func(_ *x86.CPU, in *x86.Inst, _ *uint32) {
		if w.ended == nil {
			w.ob.Instr(v, in)
		}
	}
	t.Before = before
	if w.ob.Executed != nil {
		after := func(_ *x86.CPU, in *x86.Inst, e x86.Exit) {
			if *w.ob.Pending && w.ended == nil {
				w.ob.Executed(v, in, e)
			}
		}
		t.Pending, t.After = w.ob.Pending, after
		c.AfterInst = func(in *x86.Inst, e x86.Exit) { after(c, in, e) }
	}
	c.OnInst = func(in *x86.Inst) {
		if c.RepIter == 0 || w.ob.Executed != nil {
			before(c, in, nil)
		}
	}
}

// tellAccesses is View.TellAccesses.
func (w *worker) tellAccesses() {
	if w.log != nil || w.past != nil || !w.ob.tracesLater() {
		return
	}
	if w.ob.wantsPast() {
		w.tracePast()
		return
	}
	if w.ob.watches() { // those accesses are among all
		w.m.Mem.OnAccess = nil
		w.m.Mem.SetWatches(nil)
		w.m.Mem.SetMarks(nil)
	}
	w.m.ExecuteBy(x86.BlockEngine{})
	w.traceAccesses()
	w.live.event = w.m.CPU.Retired // the callback is about an event here, or the interval's start
}

// traceAccesses has the processor tell of all accesses.
func (w *worker) traceAccesses() {
	w.live.runs, w.live.event = true, ^uint64(0)
	w.log = &x86.AccessLog{NoData: w.ob.NoData, Tell: w.accessed}
	w.m.CPU.LogAccesses(w.log)
}

// accessed tells the accesses of the instruction that was executed.
func (w *worker) accessed(list []x86.LoggedAccess) {
	a := &w.told
	for i := range list {
		if w.ended != nil {
			return
		}
		x := &list[i]
		a.PC, a.Addr, a.Size, a.Store = x.PC, x.Addr, int(x.Size), x.Store
		a.Data, a.Old = w.log.Bytes(x)
		w.ob.Access(&w.live, a)
	}
}

// watchedAccess is an access to bytes of Observer.Ranges.
type watchedAccess struct {
	Access
	data, old []byte
}

// maxEventData is how many bytes of what an event has read or written are kept.
const maxEventData = 64

// watch has accesses to the ranges and marks told.
func (w *worker) watch() {
	m, wants := w.m, w.ob.Wants
	m.HitEveryStore()
	m.Mem.OnAccess = func(a uint64, n int, k mem.Access, old []byte) {
		x := watchedAccess{Access: Access{PC: m.CPU.RIP, Addr: a, Size: n, Store: k == mem.Store, Event: w.inEvent}}
		if wants != nil && !wants(&w.live, &x.Access) {
			return
		}
		if w.ob.NoData {
			w.watched = append(w.watched, x)
			m.Hit(mem.Hit{Access: k, Addr: a})
			return
		}
		keep := min(n, maxEventData)
		x.data = make([]byte, keep)
		got, _ := m.Mem.Peek(a, x.data)
		x.data = x.data[:got]
		if x.Store {
			x.old = append(x.old, old[:keep]...)
		}
		w.watched = append(w.watched, x)
		m.Hit(mem.Hit{Access: k, Addr: a})
	}
	m.Mem.SetWatches(w.ob.Ranges)
	if w.ob.Marks != nil {
		m.Mem.SetMarks(w.ob.Marks)
	}
}

// unmark takes the marks of memory away that an event has unmapped, or mapped anew.
func (w *worker) unmark(e *checkpoint.Event) {
	for i := range e.Maps {
		switch op := &e.Maps[i]; op.Kind {
		case checkpoint.MapOpMove:
			w.ob.Marks.Drop(op.New, op.NewEnd)
			w.ob.Marks.Drop(op.Start, op.End)
		case checkpoint.MapOpMap, checkpoint.MapOpUnmap:
			w.ob.Marks.Drop(op.Start, op.End)
		case checkpoint.MapOpProtect, checkpoint.MapOpDrop: // It is the same memory.
		}
	}
}

// tellWatched tells the accesses to the ranges that were made since the last call.
func (w *worker) tellWatched() {
	list := w.watched
	w.watched = nil
	for i := range list {
		x := &list[i]
		w.tell(func(v *View) {
			a := x.Access
			a.Data, a.Old = x.data, x.old
			w.ob.Access(v, &a)
		})
	}
}
