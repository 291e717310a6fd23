package observe

import (
	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Accesses: all of them by the Bus of bus.go, or those to chosen ranges by watches of package
// mem, with which the program runs at full speed in between.

// trace has every instruction told.
func (w *worker) trace() {
	c, t := w.m.CPU, w.tracer
	v := &w.live
	v.runs, v.event = true, ^uint64(0)
	before := func(in *x86.Inst) {
		if w.ended == nil {
			w.ob.Instr(v, in)
		}
	}
	t.Before = before
	if w.ob.Executed != nil {
		after := func(in *x86.Inst, e x86.Exit) {
			if *w.ob.Pending && w.ended == nil {
				w.ob.Executed(v, in, e)
			}
		}
		t.Pending, t.After, c.AfterInst = w.ob.Pending, after, after
	}
	c.OnInst = func(in *x86.Inst) {
		if c.RepIter == 0 || w.ob.Executed != nil {
			before(in)
		}
	}
}

// tellAccesses is View.TellAccesses.
func (w *worker) tellAccesses() {
	if w.notes != nil || !w.ob.tracesLater() {
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

// traceAccesses has the processor access memory by a Bus that notes what it does.
func (w *worker) traceAccesses() {
	c := w.m.CPU
	w.live.runs, w.live.event = true, ^uint64(0)
	w.notes = &notes{cpu: c, noData: w.ob.NoData, full: w.tellNotes}
	b := &tracedBus{Bus: c.Bus, notes: w.notes}
	flushed := w.m.Mem.OnFlush
	w.m.Mem.OnFlush = func(a uint64, all bool) {
		b.flush(a, all)
		flushed(a, all)
	}
	c.SetBus(b)
	c.Accessed = w.accessed
}

// accessed tells the accesses of the instruction that was executed, which came to e.
func (w *worker) accessed(e x86.Exit) {
	if e == x86.ExitFault {
		w.notes.drop()
	}
	w.tellNotes()
}

// tellNotes tells the accesses that are noted, and forgets them.
func (w *worker) tellNotes() {
	n := w.notes
	for i := range n.list {
		if w.ended != nil {
			break
		}
		n.access(i, &w.told)
		w.ob.Access(&w.live, &w.told)
	}
	n.take()
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
