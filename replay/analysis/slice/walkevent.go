package slice

import (
	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Events in the walk. What a system call returned or wrote came in from outside, and is
// explained by that. A signal's frame holds the registers that were, and sigreturn brings them
// back: so values are followed through handlers, and from one thread to the other.

// event explains what an event changed.
func (w *walker) event(e *event, at *moment) {
	switch e.Kind {
	case checkpoint.EventSched:
		w.cur = w.of(e.tid)
		return
	case checkpoint.EventExit:
		w.exit(e, at)
	case checkpoint.EventSignal:
		w.signal(e, at)
	case checkpoint.EventThread:
		if e.Thread == checkpoint.ThreadStart {
			w.start(e, at)
		}
	case checkpoint.EventEnter, checkpoint.EventInstr, checkpoint.EventFault, checkpoint.EventGap, checkpoint.EventEnd:
	}
	w.isHit = false
	for i := len(e.Writes) - 1; i >= 0; i-- {
		a := e.Writes[i].Addr
		if e.keys != nil {
			a = e.keys[i]
		}
		w.takeMemory(a, uint64(len(e.Writes[i].Data)))
	}
	if w.isHit {
		w.outside(e, "memory", at)
	}
	for i := len(e.Maps) - 1; i >= 0; i-- {
		w.mapped(e, &e.Maps[i], at)
	}
}

// outside says that what was taken came from e.
func (w *walker) outside(e *event, what string, at *moment) {
	s := source{kind: Signal, nr: int64(e.Signo), what: what}
	if e.Kind != checkpoint.EventSignal {
		s = callSource(Call, e.Event, e.args, what)
	}
	n := w.graph.outside(s, w.need, at)
	w.isHit = false
	if w.control != nil && e.Kind == checkpoint.EventExit {
		w.cur.brought = append(w.cur.brought, n.need[ForControl])
		w.control.waiting++
	}
}

// takeRegs takes what is live of s, which came from e.
func (w *walker) takeRegs(e *event, s dataflow.RegSet, what string, at *moment) {
	live := s.And(w.cur.live())
	if live.IsEmpty() {
		return
	}
	w.isHit = false
	w.cur.take(live, w.needed)
	w.outside(e, what, at)
}

// exit explains the registers at the end of a system call.
func (w *walker) exit(e *event, at *moment) {
	switch {
	case e.Regs != nil && e.NR == abi.SYS_RT_SIGRETURN:
		w.sigreturn(e.rsp)
	case e.Regs != nil: // arch_prctl(2), and what else changes more than RAX
		w.takeRegs(e, dataflow.BytesOf(x86.RAX, 0, 8), "the result", at)
		w.takeRegs(e, dataflow.Segments(x86.PartFSBase|x86.PartGSBase|x86.PartSelector), "the segment base", at)
	default:
		w.takeRegs(e, dataflow.BytesOf(x86.RAX, 0, 8), "the result", at)
	}
}

// signalRegs is what a handler gets: RDI, RSI, RDX; RAX is 0.
const signalRegs = "the arguments of a handler"

// sigreturn makes of the registers that sigreturn loaded the bytes of the frame that it
// loaded them from, at uc. Vector registers are taken for unchanged: handlers change those of a
// frame hardly ever.
func (w *walker) sigreturn(uc uint64) {
	for i, r := range dataflow.FrameRegs {
		w.moveToMemory(dataflow.BytesOf(r, 0, 8), uc+dataflow.FrameContext+8*uint64(i))
	}
	flags := dataflow.FlagsOf(dataflow.AllFlags).And(w.cur.live())
	w.isHit = false
	if !flags.IsEmpty() {
		w.cur.take(flags, w.needed)
		w.over = !w.mem.put(uc+dataflow.FrameFlags, 1<<dataflow.FrameFlagsN-1, w.need, w.sets) || w.over
	}
}

// moveToMemory makes the live bytes of a general register, s, live bytes at a.
func (w *walker) moveToMemory(s dataflow.RegSet, a uint64) {
	live := s.And(w.cur.live())
	n := 0
	s.Each(func(part int) {
		if live[part/64]>>(part%64)&1 != 0 {
			w.over = !w.mem.put(a+uint64(n), 1, w.cur.need(part), w.sets) || w.over
		}
		n++
	})
	w.cur.take(live, func(uint32) {})
}

// signal explains what a handler finds: its arguments are the kernel's, and its frame holds
// the registers.
func (w *walker) signal(e *event, at *moment) {
	args := dataflow.BytesOf(x86.RDI, 0, 8)
	for _, r := range []uint8{x86.RSI, x86.RDX, x86.RAX} {
		args.Add(dataflow.BytesOf(r, 0, 8))
	}
	args.Add(dataflow.FlagsOf(dataflow.AllFlags))
	w.takeRegs(e, args, signalRegs, at)
	if e.Regs == nil {
		return
	}
	uc := e.Regs.R[x86.RDX]
	for i, r := range dataflow.FrameRegs {
		a := uc + dataflow.FrameContext + 8*uint64(i)
		live := w.mem.window(a, 8)
		for b := range 8 {
			if live>>b&1 == 0 {
				continue
			}
			w.isHit = false
			w.mem.take(a+uint64(b), 1, w.needed)
			w.cur.put(dataflow.BytesOf(r, b, 1), w.need, w.sets)
		}
	}
	if live := w.mem.window(uc+dataflow.FrameFlags, dataflow.FrameFlagsN); live != 0 {
		w.isHit = false
		w.mem.take(uc+dataflow.FrameFlags, live, w.needed)
		w.cur.put(dataflow.FlagsOf(dataflow.AllFlags), w.need, w.sets)
	}
}

// start makes what is needed of a new thread's registers what is needed of its maker's.
func (w *walker) start(e *event, at *moment) {
	child := w.of(e.TID)
	all := child.live()
	all.Each(func(n int) {
		var s dataflow.RegSet
		s[n/64] = 1 << (n % 64)
		to := s
		switch {
		case n/8 == x86.RAX: // clone returns 0 in the new thread
			w.need = child.need(n)
			w.outside(e, "the result", at)
			return
		case s == dataflow.Part(dataflow.PartFSBase) && e.Flags&abi.CLONE_SETTLS != 0:
			to = dataflow.BytesOf(x86.R8, 0, 8)
		}
		w.cur.put(to, child.need(n), w.sets)
	})
	child.clear()
}

// mapped explains what a change of the map made of memory.
func (w *walker) mapped(e *event, op *checkpoint.MapOp, at *moment) {
	switch op.Kind {
	case checkpoint.MapOpMap, checkpoint.MapOpDrop:
		w.isHit = false
		w.mem.within(op.Start, op.End, func(a, mask uint64) { w.mem.take(a, mask, w.needed) })
		if w.isHit {
			what := "zeroes"
			if op.Kind == checkpoint.MapOpMap && op.Map.Object != 0 {
				what = "a file"
			}
			w.outside(e, what, at)
		}
	case checkpoint.MapOpMove:
		w.moved(e, op, at)
	case checkpoint.MapOpUnmap, checkpoint.MapOpProtect:
	}
}

// moved follows memory that mremap(2) moved back to where it was. What it has become larger by
// is new.
func (w *walker) moved(e *event, op *checkpoint.MapOp, at *moment) {
	type byteNeed struct {
		a    uint64
		need uint32
	}
	var all []byteNeed
	w.mem.within(op.New, op.NewEnd, func(a, mask uint64) {
		for i := range uint64(64) {
			if mask>>i&1 != 0 {
				w.mem.take(a+i, 1, func(n uint32) { all = append(all, byteNeed{a + i, n}) })
			}
		}
	})
	w.isHit = false
	for _, b := range all {
		if off := b.a - op.New; off < op.End-op.Start {
			w.over = !w.mem.put(op.Start+off, 1, b.need, w.sets) || w.over
		} else {
			w.needed(b.need)
		}
	}
	if w.isHit {
		w.outside(e, "zeroes", at)
	}
}
