package export

import (
	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/analysis/heap"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// How the calls under way change: by calls and returns, by jumps to other functions, by signals, and by whatever gives
// the stack pointer a new value. What calls are is in stack.go.

// follower is told of calls in the order of execution. The machine is behind the run that made the call or return.
type follower interface {
	// enter: the function of n has begun in thread t, at instruction at of the interval; isOld says that this was before, and is known only
	// now. alloc says that it is one of malloc's family that no other one of that has called.
	enter(t *thread, n *node, alloc *heap.Function, args *arguments, at uint64, isOld bool)
	// leave: the function that was entered last and has not been left is over.
	leave(t *thread, n *node)
}

// entered is called where the program is in another function than before, since instruction at of the interval.
func (p *pass) entered(t *thread, k *runInfo, at uint64) {
	f := t.stack.top()
	isCall := f.fresh || f.node != 0 && p.tree.nodes[f.node].fn != fnSignal // what a handler returns to has called it
	p.hide(t, f)
	f.node, f.fresh = p.tree.child(f.parent, f.site, k.fn), false
	n := &p.tree.nodes[f.node]
	if isCall {
		n.calls++
	}
	var alloc *heap.Function
	if k.alloc != nil && !f.alloc {
		f.alloc, alloc = true, k.alloc
		if size, ok := k.alloc.Asked(p.args[:]); ok {
			n.bytes += size
			n.blocks++
		}
	}
	t.node, t.fn = f.node, k.fn
	if p.follower != nil && f.node != 0 {
		f.shown = true
		p.follower.enter(t, n, alloc, &p.args, at, !isCall)
	}
}

// hide tells the follower that a function is over.
func (p *pass) hide(t *thread, f *frame) {
	if f.shown {
		f.shown = false
		p.follower.leave(t, &p.tree.nodes[f.node])
	}
}

// hideAll tells the follower that all functions of a thread are over.
func (p *pass) hideAll(t *thread) {
	for s := t.stack; s != nil; s = s.under {
		for i := len(s.frames) - 1; i >= 0; i-- {
			p.hide(t, &s.frames[i])
		}
	}
}

// pop ends the calls of the present stack whose slots a stack pointer is above.
func (p *pass) pop(t *thread, sp uint64) {
	s := t.stack
	for len(s.frames) > 1 && s.top().slot < sp {
		p.hide(t, s.top())
		s.frames = s.frames[:len(s.frames)-1]
	}
	p.settle(t)
}

// call is a CALL that has put its return address at sp.
func (p *pass) call(t *thread, k *runInfo, sp uint64) {
	if sp+8 > t.slot || k.loads {
		p.moved(t, sp+8, k.loads)
	}
	s := t.stack
	if len(s.frames) >= maxFrames {
		p.stop(errTooManyCalls)
		return
	}
	f := s.top()
	if s.high == 0 {
		s.high = sp + 8
	}
	s.frames = append(s.frames, frame{slot: sp, parent: f.node, site: k.place + place(k.offsets[k.n]) - 1, alloc: f.alloc, fresh: true})
	t.slot, t.node, t.fn = sp, 0, -1
}

// left is called where the stack pointer is above the last call's slot, behind a run of k.
func (p *pass) left(t *thread, sp uint64, k *runInfo, isReturn bool) {
	s := t.stack
	if !isReturn && sp == t.slot+8 {
		// vfork takes its return address off the stack, and puts it back before it returns.
		if _, fn := p.names.at(p.view.CPU().RIP); fn == k.fn {
			return
		}
	}
	if n := len(s.frames); sp == t.slot+8 || n > 2 && sp <= s.frames[n-2].slot { // a return, most often
		p.hide(t, s.top())
		s.frames = s.frames[:n-1]
		f := s.top()
		t.slot, t.node, t.fn = f.slot, f.node, -1
		if f.node != 0 {
			t.fn = p.tree.nodes[f.node].fn
		}
		return
	}
	p.moved(t, sp, k.loads)
}

// returned is a RET in the first frame of a stack.
func (p *pass) returned(t *thread, sp uint64) {
	s := t.stack
	if s.root >= 0 {
		p.open(t, root{tid: t.tid, sp: sp})
		p.settle(t)
		return
	}
	p.hide(t, s.top())
	s.high = max(s.high, sp)
	s.top().node, t.fn = 0, -1
}

// moved is called where the stack pointer has another value than calls and returns explain: that of a longjmp or an
// exception, or on another stack.
func (p *pass) moved(t *thread, sp uint64, loads bool) {
	s := t.stack
	switch {
	case sp >= t.sp && (s.holds(sp) || s.root >= 0 && s.high == 0 && p.sameRegion(sp, t.sp)):
		p.pop(t, sp)
		return
	case sp < t.sp && t.sp-sp < maxLocals && !t.isParked(sp):
		return // room for variables
	case !loads && p.sameRegion(sp, t.sp): // pop, and what else adds to it
		p.pop(t, sp)
		s.high = max(s.high, sp)
		return
	}
	p.loaded(t, sp)
}

// maxLocals is how many bytes a function takes for its variables at once.
const maxLocals = 64 << 10

// isParked reports whether a stack pointer is in a stack that was left.
func (t *thread) isParked(sp uint64) bool {
	for _, s := range t.parked {
		if s.high != 0 && sp+nearBy >= s.low && sp <= s.high {
			return true
		}
	}
	return false
}

// loaded goes on with the stack that a stack pointer is in.
func (p *pass) loaded(t *thread, sp uint64) {
	t.park(t.sp)
	if s := t.find(sp); s != nil {
		t.stack = s
		p.pop(t, sp)
		return
	}
	if t.stack = p.unwind(); p.isOwn && len(t.stack.frames) == 1 {
		p.open(t, root{tid: t.tid, sp: sp, goesOn: true})
	}
	p.settle(t)
}

func (p *pass) sameRegion(a, b uint64) bool {
	m := p.view.Machine().Mem
	r, ok := m.Find(a)
	q, also := m.Find(b)
	return ok && also && r.Start == q.Start
}

// before is observe.Observer.Event.
func (p *pass) before(v *observe.View, e *checkpoint.Event) {
	p.catchUp(v.CPU().Retired)
	p.was.sp, p.was.pc = v.CPU().R[x86.RSP], v.CPU().RIP
	if p.events != nil {
		p.events.before(v, e)
	}
}

// applied is observe.Observer.Applied.
func (p *pass) applied(v *observe.View, e *checkpoint.Event) {
	p.catchUp(v.CPU().Retired)
	if p.names.changedBy(e) {
		p.remap()
	}
	switch e.Kind {
	case checkpoint.EventThread:
		if e.Thread == checkpoint.ThreadExit {
			p.ended(int32(e.TID))
		}
	case checkpoint.EventSignal:
		if e.Regs != nil && v.CPU().R[x86.RSP] != p.was.sp { // there is a handler
			p.signal(p.cur)
		}
	case checkpoint.EventExit:
		if e.NR == abi.SYS_RT_SIGRETURN {
			p.sigreturn(p.cur)
		}
	default: // It changes no stack.
	}
	if p.cur == nil || p.cur.tid != int32(v.TID()) {
		p.use(v.TID())
	}
	p.cur.sp, p.next, p.args = v.CPU().R[x86.RSP], v.CPU().RIP, argumentsOf(v.CPU())
	if p.events != nil {
		p.events.applied(v, e)
	}
}

// catchUp counts an instruction that no run has told of, as another than the processor has executed it: RDTSC, CPUID.
func (p *pass) catchUp(retired uint64) {
	n := retired - p.retired
	if n == 0 || p.cur == nil {
		return
	}
	at, fn := p.names.at(p.next)
	k := &runInfo{place: at, fn: fn, n: 1, offsets: []uint16{0, 1}, counts: make([]count, 2)}
	if p.cur.fn != fn {
		p.entered(p.cur, k, p.retired)
	}
	p.counter(&k.counts[1], k, 1, p.cur.node)
	p.totals[k.counts[1].at] += n
	p.retired += n
}

// signal makes the calls of a handler, which the machine is at.
func (p *pass) signal(t *thread) {
	sp := p.view.CPU().R[x86.RSP]
	f := t.stack.top()
	at, fn := p.names.at(p.was.pc)
	node := f.node
	if node == 0 { // nothing of it was executed yet, so that it is entered later
		node = p.tree.child(f.parent, f.site, fn)
	}
	between := frame{slot: p.was.sp - 1, parent: node, site: at, node: p.tree.child(node, at, fnSignal)}
	if sp < p.was.sp && p.was.sp-sp < maxLocals && p.sameRegion(sp, p.was.sp) {
		t.stack.frames = append(t.stack.frames, between)
	} else { // an alternate stack
		s := &stack{root: -1, under: t.stack, high: sp + maxLocals}
		t.stack.low = p.was.sp
		between.slot = noSlot
		s.frames = []frame{between}
		t.stack = s
	}
	s := t.stack
	s.frames = append(s.frames, frame{slot: sp, parent: s.top().node, fresh: true})
	p.settle(t)
}

// sigreturn goes on with what a signal has interrupted.
func (p *pass) sigreturn(t *thread) {
	sp := p.view.CPU().R[x86.RSP]
	s := t.stack
	switch {
	case s.under != nil:
		p.pop(t, noSlot)
		p.hide(t, s.top())
		t.stack = s.under
	case len(s.frames) == 1 && s.root >= 0:
		p.open(t, root{tid: t.tid, sp: sp, ends: true})
	}
	p.pop(t, sp)
}

// ended forgets a thread.
func (p *pass) ended(tid int32) {
	t := p.threads[tid]
	if t == nil {
		return
	}
	p.hideAll(t)
	delete(p.threads, tid)
	p.exited = append(p.exited, tid)
	if p.cur == t {
		p.cur = nil
	}
}
