package taint

import (
	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/analysis/dataflow"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The engine: it is told of each instruction before and behind it, and of each event, and moves
// marks along. What an instruction makes of the marks is found out before it, while what it reads
// is there, and takes effect behind it, when it is known that it did not fault.

// UseKind says how a marked value was used.
type UseKind uint8

// The uses that are told.
const (
	Branch    UseKind = iota // a conditional jump's flags or count
	Target                   // where an indirect jump or call goes
	Address                  // of a load or store
	Argument                 // a system call's, in a register
	Buffer                   // memory that a system call reads
	Condition                // bytes that a string function of the C library looks at
)

// Use is a use of a marked value: before the instruction at PC, or the event.
type Use struct {
	Kind UseKind
	PC   uint64
	Tag  Tag
	// Of a system call.
	NR       int64
	Arg      int    // the argument's number, from 0
	From, To uint64 // Buffer: offsets of the marked bytes, To behind the last
	Args     [6]uint64
	Function string // Condition: which
}

// Options say what is told, and what is marked beyond what the caller marks.
type Options struct {
	// Addresses marks what is loaded through a marked address, and what is stored through one.
	Addresses bool
	// Use is called for each use. What an instruction used is not marked any more when it returns
	// true, so that what follows from it is not told again.
	Use func(u *Use) bool
	// Wrote, when not nil, is called for an instruction at pc that makes something marked, with how many instructions
	// had retired before it.
	Wrote func(pc, retired uint64, in *x86.Inst, tag Tag)
	// Stack, when not nil, has what a stack pointer that goes down makes room for marked, with
	// the tag that it returns for the code at pc.
	Stack func(pc uint64) Tag
	// Model, when not nil, returns what stands for the function at pc: its instructions are
	// not looked at. Its answer may be kept until Forget.
	Model func(pc uint64) Model
}

// Engine carries marks through an execution. It is used by one goroutine.
type Engine struct {
	Mem     *Memory
	Pending bool // After is to be called behind the instruction

	o     Options
	m     *replay.Machine
	regs  map[checkpoint.TID]*thread
	cur   *thread
	cache [cacheSize]cached
	known map[code]*instruction
	step  step
	todo  pending
	spy   dataflow.Spy
	iter  uint64 // CPU.RepIter before the instruction
	rcx   uint64
	from  [2]uint64 // RSI and RDI before a string instruction
	saved map[uint64]*[32]vector
	moves *mover
	ahead *ahead
	share bool // memory has pages with several addresses
	err   error
	calls map[checkpoint.TID]*[6]uint64
}

// thread is the shadow of a thread.
type thread struct {
	regs
	sp     uint64
	hasSP  bool
	isCall bool    // the last instruction was a call or a return
	inside []Frame // calls of functions that models stand for
}

// cacheSize is how many instructions are found without the map; a power of two.
const cacheSize = 1 << 16

// code tells instructions apart: other code may come to an address.
type code struct {
	pc    uint64
	in    x86.Inst
	frame bool
}

// maxInstructions bounds the instructions that are known, to some 600 MB: beyond it all are made anew.
const maxInstructions = 1 << 20

// instruction returns what is known of in at pc.
func (t *Engine) instruction(pc uint64, in *x86.Inst, frame bool) *instruction {
	c := code{pc, *in, frame}
	k := t.known[c]
	if k == nil {
		if len(t.known) >= maxInstructions {
			clear(t.known)
		}
		k = compile(pc, in, frame)
		t.known[c] = k
	}
	return k
}

// cached is an instruction that was met, without and with the frame pointer taken as known.
type cached struct {
	pc    uint64
	in    x86.Inst
	k     [2]*instruction
	model Model
}

// maxAccesses bounds the accesses of one instruction that are watched.
const maxAccesses = 1 << 12

// New returns an engine that has nothing marked.
func New(o Options) *Engine {
	t := &Engine{Mem: newMemory(), o: o}
	t.Reset()
	return t
}

// Reset takes all marks away, as execve(2) does.
func (t *Engine) Reset() {
	t.Mem.Reset()
	t.regs, t.saved = map[checkpoint.TID]*thread{}, map[uint64]*[32]vector{}
	t.calls, t.known = map[checkpoint.TID]*[6]uint64{}, map[code]*instruction{}
	t.cur = nil
	t.spy.Most = maxAccesses
	t.Forget()
}

// Forget has the engine ask for models anew.
func (t *Engine) Forget() { clear(t.cache[:]) }

// Err returns why the marks are not all there: ErrTooMuch, or nil.
func (t *Engine) Err() error {
	if t.Mem.full {
		return ErrTooMuch
	}
	return t.err
}

// Begin says that m goes on from where the last one ended, or is about to begin.
func (t *Engine) Begin(m *replay.Machine) {
	t.m, t.share = m, false
	for _, r := range m.Mem.Regions() {
		t.share = t.share || r.Shared
	}
	t.Pending = false
	t.use(m.TID())
}

// use makes tid the thread that runs.
func (t *Engine) use(tid checkpoint.TID) {
	t.cur = t.thread(tid)
	t.cur.hasSP = false
}

func (t *Engine) thread(tid checkpoint.TID) *thread {
	r := t.regs[tid]
	if r == nil {
		r = &thread{}
		t.regs[tid] = r
	}
	return r
}

// key returns what names the byte at an address whatever address it is accessed by.
func (t *Engine) key(a uint64) uint64 {
	if !t.share {
		return a
	}
	k, _ := t.m.Mem.Key(a)
	return k + a%mem.PageSize
}

// MarkMemory marks n bytes of memory.
func (t *Engine) MarkMemory(a, n uint64, tag Tag) {
	for n > 0 {
		step := min(n, pageSize-a%pageSize)
		t.Mem.Mark(t.key(a), step, tag)
		a, n = a+step, n-step
	}
}

// ClearMemory takes the marks of n bytes away.
func (t *Engine) ClearMemory(a, n uint64) {
	if !t.share {
		t.Mem.Clear(a, n)
		return
	}
	for n > 0 {
		step := min(n, pageSize-a%pageSize)
		t.Mem.Clear(t.key(a), step)
		a, n = a+step, n-step
	}
}

// MarkGeneral marks the lowest n bytes of a general register of a thread, MarkVector a vector
// register.
func (t *Engine) MarkGeneral(tid checkpoint.TID, r uint8, n int, tag Tag) {
	mask := ^uint64(0) >> (64 - 8*min(max(n, 1), 8))
	t.thread(tid).setGeneral(r&15, mask, mask, tag)
}

// MarkVector marks a vector register of a thread.
func (t *Engine) MarkVector(tid checkpoint.TID, v uint8, tag Tag) {
	t.thread(tid).setVector(v&31, laneMask(0xff), laneMask(0xff), tag)
}

// MarkedRegisters returns which general registers of a thread have a mark, a bit each.
func (t *Engine) MarkedRegisters(tid checkpoint.TID) uint16 { return uint16(t.thread(tid).sum) }

// IsClear reports whether nothing is marked any more.
func (t *Engine) IsClear() bool {
	for _, r := range t.regs {
		if r.sum != 0 {
			return false
		}
	}
	return len(t.Mem.pages) == 0
}

// Before is called before each instruction, with the machine at it.
func (t *Engine) Before(c *x86.CPU, in *x86.Inst) {
	pc := c.RIP
	e := &t.cache[(pc^pc>>14)&(cacheSize-1)]
	if e.pc != pc || e.in != *in {
		*e = cached{pc: pc, in: *in}
		if t.o.Model != nil {
			e.model = t.o.Model(pc)
		}
	}
	g := t.cur
	if len(g.inside) > 0 {
		if !t.returned(c, g) {
			return
		}
	}
	if e.model != nil && t.enter(c, e.model) {
		return
	}
	variant := 0
	if in.Base == x86.RBP && dataflow.UsesFrame(c, in) {
		variant = 1
	}
	k := e.k[variant]
	if k == nil {
		k = t.instruction(pc, in, variant == 1)
		e.k[variant] = k
	}
	if t.o.Stack != nil {
		if sp := c.R[x86.RSP]; sp != g.sp || !g.hasSP {
			t.stack(pc, sp)
		}
		g.isCall = k.Transfer == x86.Call || k.Transfer == x86.Return
	}
	if k.isPlain {
		slow := k.touch&g.sum != 0
		for i := range k.Ops {
			a := k.Ops[i].At(c, in)
			t.step.at[i] = a
			if t.share {
				t.step.at[i] = t.key(a)
			}
			slow = slow || t.Mem.Any(t.step.at[i], int(k.Ops[i].Size))
		}
		if !slow {
			return
		}
	} else if g.sum == 0 && len(t.Mem.pages) == 0 {
		return
	}
	t.slow(c, in, k)
}

// After is called behind each instruction for which Pending is set, with what it came to.
func (t *Engine) After(c *x86.CPU, in *x86.Inst, e x86.Exit) {
	if !t.Pending {
		return
	}
	t.Pending = false
	var seen []dataflow.Access
	isSpied := t.spy.IsOn()
	if isSpied {
		seen = t.spy.End(c)
	}
	if !c.HasExecuted(e, t.iter) {
		t.todo.reset()
		return
	}
	switch k := t.step.k; {
	case k.saves || k.restores:
	case k.Repeats:
		t.repeated(c, in, k)
	case isSpied:
		t.spied(k, seen)
	}
	t.todo.commit(t)
}

// redZone is what a function may use below the stack pointer (System V ABI, AMD64 supplement,
// 3.2.2), and maxFrame how far a stack pointer goes at most that is not another stack's.
const (
	redZone  = 128
	maxFrame = 2_000_000
)

// stack is called where the stack pointer has changed since the instruction before.
func (t *Engine) stack(pc, sp uint64) {
	g := t.cur
	was, known := g.sp, g.hasSP
	g.sp, g.hasSP = sp, true
	switch d := was - sp; {
	case !known:
	case g.isCall: // what is below belongs to nobody
		t.Mem.Mark(sp-redZone, redZone, t.o.Stack(pc))
	case d < maxFrame:
		t.Mem.Mark(sp-redZone, d, t.o.Stack(pc))
	}
}
