package heap

import (
	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/observe"
)

// Accesses to marked bytes: which of them are misuses, and of which block.

// Kind is a kind of misuse.
type Kind uint8

// The kinds of misuse.
const (
	DoubleFree   Kind = iota // Block was freed before
	InvalidFree              // Addr is inside of Block, or in none
	UseAfterFree             // an access to Block, which was freed
	Overflow                 // an access behind Block
	Underflow                // an access right in front of Block
)

// String returns the kind as people say it.
func (k Kind) String() string {
	return [...]string{"double free", "invalid free", "use after free", "overflow", "underflow"}[k]
}

// Problem is a misuse of the heap.
type Problem struct {
	Kind     Kind
	Function string              // DoubleFree, InvalidFree: what was called
	Addr     uint64              // what was freed, or the first byte that must not be accessed
	Block    *Block              // nil where none is known
	At       checkpoint.Position // where the call, or the instruction that accesses, is about to be executed

	// Of an access:
	PC    uint64 // the instruction, or what follows the system call
	Size  int    // bytes that are accessed from Addr on, those before it left out
	Store bool
	Event bool // the kernel makes it
	Fault bool // it ended in a fault; Size and Store are not known
	// Whole is how many bytes the instruction, the function or the system call accesses, from Start on.
	Start, Whole uint64
}

// place is what is told once.
type place struct {
	kind  Kind
	pc    uint64
	store bool
}

// maxTries is how often an access of one instruction is looked at: each look takes a walk through the stack.
const maxTries = 1000

// Wants is observe.Observer.Wants.
func (t *Tracker) Wants(v *observe.View, a *observe.Access) bool {
	th := t.threads[v.TID()]
	switch {
	case t.tries[a.PC] >= maxTries || th.isInside():
		return false
	case a.Event:
		return true
	case !a.Store && t.scans.has(a.PC):
		return th != nil && th.text.isOf(v) && t.readsBad(v, &th.text)
	}
	return !t.isPartial(a)
}

// isInside reports whether the thread is in a call of the allocator.
func (th *thread) isInside() bool { return th != nil && len(th.calls) > 0 }

// isPartial reports whether a is a load of a word or vector at a multiple of its size that has a byte which may be
// accessed. Such a load cannot fault where that byte does not, and compilers and libraries make them
// and ignore the rest, as they may; memcheck allows them, too (--partial-loads-ok).
func (t *Tracker) isPartial(a *observe.Access) bool {
	if a.Store || a.Size < 4 || a.Size > 64 || a.Size&(a.Size-1) != 0 || a.Addr&uint64(a.Size-1) != 0 || t.copies.has(a.PC) {
		return false
	}
	return !t.isMarked(a.Addr, a.Addr+uint64(a.Size))
}

// isMarked reports whether all bytes from start to end are marked.
func (t *Tracker) isMarked(start, end uint64) bool {
	for ; start < end; start++ {
		if _, ok := t.marks.Next(start, start+1); !ok {
			return false
		}
	}
	return true
}

// Access is observe.Observer.Access.
func (t *Tracker) Access(v *observe.View, a *observe.Access) {
	at := v.Position()
	switch {
	case a.Event:
	case at.Step > 0: // a repeated string instruction is not through
		at.Step--
	case at.Instr > 0:
		at.Instr--
	}
	read := span{a.Addr, a.Addr + uint64(a.Size)}
	th := t.threads[v.TID()]
	switch {
	case th.isInside():
		return
	case a.Event:
	case !a.Store && t.scans.has(a.PC):
		if th == nil {
			return
		}
		read = th.text.bad
	case t.isPartial(a):
		return
	}
	t.judge(v, &Problem{PC: a.PC, Store: a.Store, Event: a.Event, Start: read.start, Whole: read.end - read.start, At: at})
}

// judge tells of an access of p.Whole bytes at p.Start if some of them must not be accessed.
func (t *Tracker) judge(v *observe.View, p *Problem) {
	first, ok := t.marks.Next(p.Start, p.Start+p.Whole)
	if !ok {
		return
	}
	p.Addr, p.Size = first, int(p.Start+p.Whole-first)
	if !t.explain(v, p) || t.isTold(v, p) {
		return
	}
	t.Problem(v, p)
}

// isTold reports whether a misuse like p was told at its place, and notes that it is now.
func (t *Tracker) isTold(v *observe.View, p *Problem) bool {
	t.tries[p.PC]++
	k := place{p.Kind, t.Place(v, p.PC), p.Store}
	if t.seen[k] {
		return true
	}
	t.seen[k] = true
	return false
}

// explain says of which block the first bad byte of p is, and reports whether one is known.
func (t *Tracker) explain(v *observe.View, p *Problem) bool {
	var behind, front *Block // the block that it is behind, and the one it is in front of
	for _, b := range t.blocks {
		end := b.Addr + b.Size
		switch {
		case p.Addr >= end && p.Addr < t.gapEnd(&b):
			behind = &b
		case t.headers && p.Addr < b.Addr && p.Addr >= b.Addr-header:
			front = &b
		}
	}
	switch {
	case front != nil && (behind == nil || isMeant(v, p, front, behind)):
		p.Kind, p.Block = Underflow, front
		return true
	case behind != nil:
		p.Kind, p.Block = Overflow, behind
		return true
	}
	for i := range t.freed {
		b := &t.freed[(t.next+len(t.freed)-1-i)%len(t.freed)] // the one freed last
		if p.Addr-b.Addr < b.Size {
			p.Kind, p.Block = UseAfterFree, b
			return true
		}
	}
	return false
}

// isMeant reports whether an access between two blocks is by a pointer to front: a register has that, and none leads to behind. Where
// none leads to either it is the nearer one.
func isMeant(v *observe.View, p *Problem, front, behind *Block) bool {
	isMeant := false
	for _, r := range v.CPU().R {
		if r-behind.Addr <= behind.Size {
			return false
		}
		isMeant = isMeant || r == front.Addr
	}
	return isMeant || front.Addr-p.Addr < p.Addr-(behind.Addr+behind.Size)
}

// Applied is to be called behind each event: it looks at what a system call reads and writes, and at faults.
func (t *Tracker) Applied(v *observe.View, e *checkpoint.Event) {
	switch e.Kind {
	case checkpoint.EventEnter:
		if !t.threads[v.TID()].isInside() {
			t.syscall(v, e)
		}
	case checkpoint.EventFault:
		t.fault(v, e)
	default: // It concerns no block.
	}
}

// fault tells of a fault at an address in a freed block: the memory was given back.
func (t *Tracker) fault(v *observe.View, e *checkpoint.Event) {
	if e.Addr == 0 || t.inside(e.Addr) != nil {
		return
	}
	p := &Problem{PC: v.CPU().RIP, Start: e.Addr, Addr: e.Addr, Fault: true, At: v.Position()}
	if t.explain(v, p) && p.Kind == UseAfterFree && !t.isTold(v, p) {
		t.Problem(v, p)
	}
}

// syscall looks at the memory that a system call is to read and write.
func (t *Tracker) syscall(v *observe.View, e *checkpoint.Event) {
	for _, r := range kernelRanges(v, e) {
		if r.end > r.start && r.end <= mem.MaxUser {
			t.judge(v, &Problem{PC: v.CPU().RIP, Start: r.start, Whole: r.end - r.start, Store: r.store, Event: true, At: v.Position()})
		}
	}
}
