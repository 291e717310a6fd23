package taint

import (
	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/x86"
)

// Events. What the kernel writes has no mark; what it only moves, as registers to a signal's frame
// and back, keeps its marks.

// Event is called before each event is applied, with the machine as it was before.
func (t *Engine) Event(m *replay.Machine, e *checkpoint.Event) {
	t.m = m
	if t.Pending && e.Kind != checkpoint.EventInstr { // it did not come to an end
		t.drop()
	}
	switch e.Kind {
	case checkpoint.EventSched:
		t.use(e.TID)
		return
	case checkpoint.EventEnter:
		args := e.Args
		t.calls[m.TID()] = &args
		t.checkCall(e.NR, &args)
		for _, r := range []uint8{x86.RAX, x86.RCX, x86.R11} {
			t.cur.setGeneral(r, ^uint64(0), 0, 0)
		}
	case checkpoint.EventExit:
		t.exit(m, e)
	case checkpoint.EventThread:
		if e.Thread == checkpoint.ThreadStart {
			t.start(e)
		} else {
			delete(t.regs, e.TID)
			t.cur = t.thread(m.TID())
		}
	default:
	}
	for i := range e.Maps {
		t.mapped(&e.Maps[i])
	}
	for i := range e.Writes {
		t.ClearMemory(e.Writes[i].Addr, uint64(len(e.Writes[i].Data)))
	}
	if e.Kind == checkpoint.EventSignal { // behind the writes, which are the frame
		t.signal(e)
	}
	if e.Kind != checkpoint.EventInstr {
		t.cur.hasSP = false
	}
}

// drop forgets what the instruction would have changed.
func (t *Engine) drop() {
	if t.spy.IsOn() {
		t.spy.End(t.m.CPU)
	}
	t.Pending = false
	t.todo.reset()
}

// exit moves marks at the end of a system call.
func (t *Engine) exit(m *replay.Machine, e *checkpoint.Event) {
	delete(t.calls, m.TID())
	t.cur.setGeneral(x86.RAX, ^uint64(0), 0, 0)
	if e.Regs == nil || e.NR != abi.SYS_RT_SIGRETURN {
		return
	}
	uc := m.CPU.R[x86.RSP]
	for i, r := range dataflow.FrameRegs {
		var b [8]byte
		tag := t.Mem.Load(t.key(uc+dataflow.FrameContext+8*uint64(i)), b[:])
		v := vectorOf(b[:])
		t.cur.setGeneral(r, ^uint64(0), v[0], tag)
	}
	var b [dataflow.FrameFlagsN]byte
	tag := t.Mem.Load(t.key(uc+dataflow.FrameFlags), b[:])
	v := vectorOf(b[:])
	t.cur.setFlags(dataflow.AllFlags, v[0], tag)
	if saved := t.saved[t.key(uc)]; saved != nil {
		for i := range saved {
			t.cur.setVector(uint8(i), laneMask(0xff), &saved[i], t.cur.vTag[i])
		}
	}
}

// signal moves the marks of registers to the frame. The handler's arguments have none.
func (t *Engine) signal(e *checkpoint.Event) {
	if e.Regs == nil {
		return
	}
	uc := e.Regs.R[x86.RDX]
	g := &t.cur.regs
	put := func(a, marks uint64, tag Tag) {
		v := vector{marks}
		t.Mem.Store(t.key(a), v.bytes()[:8], tag)
	}
	for i, r := range dataflow.FrameRegs {
		put(uc+dataflow.FrameContext+8*uint64(i), g.r[r], g.rTag[r])
	}
	put(uc+dataflow.FrameFlags, g.flag, g.flagTag)
	if g.sum>>sumVector&0xffffffff != 0 || t.saved[t.key(uc)] != nil {
		v := g.v
		t.save(t.key(uc), &v)
	}
	for _, r := range []uint8{x86.RAX, x86.RDI, x86.RSI, x86.RDX} {
		g.setGeneral(r, ^uint64(0), 0, 0)
	}
	g.setFlags(dataflow.AllFlags, 0, 0)
}

// start gives a new thread the marks of its maker's registers.
func (t *Engine) start(e *checkpoint.Event) {
	child := &thread{regs: t.cur.regs}
	child.setGeneral(x86.RAX, ^uint64(0), 0, 0) // clone returns 0 there
	t.regs[e.TID] = child
}

// mapped follows a change of the memory map.
func (t *Engine) mapped(op *checkpoint.MapOp) {
	switch op.Kind {
	case checkpoint.MapOpMap:
		t.share = t.share || op.Map.Flags&checkpoint.MapShared != 0
		t.Mem.Clear(op.Start, op.End-op.Start)
	case checkpoint.MapOpDrop, checkpoint.MapOpUnmap:
		t.Mem.Clear(op.Start, op.End-op.Start)
	case checkpoint.MapOpMove:
		n := min(op.End-op.Start, op.NewEnd-op.New)
		t.Mem.Clear(op.New, op.NewEnd-op.New)
		t.Mem.Move(op.New, op.Start, n)
		t.Mem.Clear(op.Start, op.End-op.Start)
	case checkpoint.MapOpProtect:
	}
}

// CallArguments returns the arguments of the system call that a thread is in; ok is false where
// its entry was not seen.
func (t *Engine) CallArguments(tid checkpoint.TID) (args [6]uint64, ok bool) {
	if a := t.calls[tid]; a != nil {
		return *a, true
	}
	return args, false
}
