package observe

import (
	"encoding/binary"
	"errors"

	"vplay/dwarf"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// When does a call return? A function may end in a return, in the return of another function
// that it jumps to, or never. What is sure is the address that the call has put on the stack: the call is over
// when the program comes there with the stack pointer right above that slot. So where a
// function is entered, its return address becomes a breakpoint.
//
// An interval does not know which calls were under way when it began, since it is replayed by itself. But
// each of their return addresses stands on a stack then, and the interval has that
// word, for the return will read it. So all words of the stacks that may be return addresses are looked for, and
// who follows the calls of all intervals tells which of them were calls of his. Stacks that are not those of
// threads at the interval's beginning, as coroutines have, are not looked at.

// calls follows the calls of an interval.
type calls struct {
	ob      *Observer
	entries map[uint64]bool
	pending map[int32][]pendingCall // by thread: with falling slots
	// starts are the possible return addresses on the stacks at the interval's beginning; each is used once.
	starts map[startSlot]uint64
	sites  map[uint64]int // breakpoints at return addresses, and by how many starts each is wanted; -1: for good
}

// pendingCall is a call that has not returned.
type pendingCall struct{ slot, ret uint64 }

// startSlot is a place on a thread's stack.
type startSlot struct {
	tid  int32
	slot uint64
}

// Bounds for recordings that are made to do harm.
const (
	maxStack   = 64 << 20 // bytes of a stack that are looked through at an interval's beginning
	maxStacks  = 256 << 20
	maxStarts  = 1 << 16 // words there that may be return addresses
	maxSites   = 1 << 16 // places that functions return to
	maxPending = 1 << 20 // calls under way in a thread
)

var errTooMany = errors.New("observe: the functions are called from more places, or deeper, than can be followed")

func newCalls(m *replay.Machine, ob *Observer) *calls {
	c := &calls{ob: ob, entries: map[uint64]bool{}, pending: map[int32][]pendingCall{}, starts: map[startSlot]uint64{}, sites: map[uint64]int{}}
	for _, a := range ob.Functions {
		c.entries[a] = true
	}
	if ob.Leave != nil {
		left := uint64(maxStacks)
		n := 0
		for _, t := range m.Threads() {
			c.begin(m, &t)
			left, n = c.scan(m, int32(t.TID), t.State.R[x86.RSP], left, n)
		}
	}
	return c
}

// begin adds the return that was the last instruction of the interval before, if that was one: the thread is
// where it has led to.
func (c *calls) begin(m *replay.Machine, t *replay.Thread) {
	pc, slot := t.State.RIP, t.State.R[x86.RSP]-8
	var b [8]byte
	if got, _ := m.Mem.Peek(slot, b[:]); (got < len(b) || binary.LittleEndian.Uint64(b[:]) == pc) && followsCall(m, pc) {
		c.starts[startSlot{int32(t.TID), slot}] = pc
		c.sites[pc]++
	}
}

// scan looks through the stack of a thread.
func (c *calls) scan(m *replay.Machine, tid int32, sp, left uint64, n int) (uint64, int) {
	r, ok := m.Mem.Find(sp)
	if !ok {
		return left, n
	}
	sp = (sp + 7) &^ 7
	end := min(r.End, sp+min(maxStack, left))
	var page [mem.PageSize]byte
	for a := sp; a < end && n < maxStarts; {
		step := min(mem.PageSize-a%mem.PageSize, end-a)
		got, _ := m.Mem.Peek(a, page[:step])
		for o := 0; o+8 <= got && n < maxStarts; o += 8 {
			if ret := binary.LittleEndian.Uint64(page[o:]); ret != 0 && followsCall(m, ret) {
				c.starts[startSlot{tid, a + uint64(o)}] = ret
				c.sites[ret]++
				n++
			}
		}
		a += step
	}
	return left - (end - sp), n
}

// followsCall reports whether an address may be one that a call returns to: it is in code, and what is known in front of
// it may be a CALL.
func followsCall(m *replay.Machine, ret uint64) bool {
	r, ok := m.Mem.Find(ret)
	if !ok || r.Prot&mem.ProtExec == 0 {
		return false
	}
	var b [7]byte
	if got, _ := m.Mem.Peek(ret-7, b[:]); got < len(b) {
		return true // it is not known what is there
	}
	return dwarf.EndsInCall(&b)
}

// addresses returns the places that returns of an interval's beginning lead to.
func (c *calls) addresses() (list []uint64) {
	for a := range c.sites {
		list = append(list, a)
	}
	return list
}

// stopped is called where the machine has stopped at an address.
func (c *calls) stopped(w *worker) {
	cpu, tid := w.m.CPU, int32(w.m.TID())
	sp := cpu.R[x86.RSP]
	if c.ob.Leave != nil {
		if n, has := c.sites[cpu.RIP]; has {
			c.returned(w, tid, sp, n)
		}
	}
	if !c.entries[cpu.RIP] {
		return
	}
	if c.ob.Enter != nil {
		w.tell(c.ob.Enter)
	}
	if c.ob.Leave == nil {
		return
	}
	var b [8]byte
	if got, _ := w.m.Mem.Peek(sp, b[:]); got < len(b) {
		return
	}
	l := c.pending[tid]
	for len(l) > 0 && l[len(l)-1].slot <= sp { // left in another way, by longjmp say
		l = l[:len(l)-1]
	}
	ret := binary.LittleEndian.Uint64(b[:])
	n, has := c.sites[ret]
	if !has && len(c.sites) >= maxSites+maxStarts || len(l) >= maxPending {
		w.stop(errTooMany)
		return
	}
	c.pending[tid] = append(l, pendingCall{sp, ret})
	if n != -1 {
		c.sites[ret] = -1
		w.m.AddBreakpoint(ret)
	}
}

// returned is called at an address that n of the slots at the interval's beginning have, or for -1 a call since.
func (c *calls) returned(w *worker, tid int32, sp uint64, n int) {
	pc := w.m.CPU.RIP
	l := c.pending[tid]
	for len(l) > 0 && l[len(l)-1].slot+8 < sp {
		l = l[:len(l)-1]
	}
	c.pending[tid] = l
	if len(l) > 0 && l[len(l)-1] == (pendingCall{sp - 8, pc}) {
		c.pending[tid] = l[:len(l)-1]
		w.leave(sp - 8)
		return
	}
	at := startSlot{tid, sp - 8}
	if c.starts[at] != pc {
		return
	}
	delete(c.starts, at)
	if n > 0 {
		if c.sites[pc]--; c.sites[pc] == 0 {
			delete(c.sites, pc)
			if !c.entries[pc] && !w.isExec[pc] {
				w.m.RemoveBreakpoint(pc)
			}
		}
	}
	w.leave(sp - 8)
}

// leave tells that the call whose return address was at slot has returned.
func (w *worker) leave(slot uint64) {
	f := w.ob.Leave
	if w.tellsNow() {
		f(&w.live, slot)
		return
	}
	w.tell(func(v *View) { f(v, slot) })
}
