package export

import "slices"

// The calls under way. A call is known by where it has put its return address, its slot: stacks grow down, so a call is
// over when the stack pointer is above its slot, whether by a return, a longjmp or an exception. A function that jumps
// to another one is replaced by it. A thread may have several stacks: that of a signal's handler, and those of coroutines and goroutines.

// noSlot is the slot of a stack's first frame, whose call is not known: no stack pointer is above it.
const noSlot = ^uint64(0)

// frame is a call under way.
type frame struct {
	slot   uint64
	parent int32 // node of the caller
	site   place
	node   int32 // of the function that runs in it now; 0: not known yet
	alloc  bool  // it, or what called it, is of malloc's family
	shown  bool  // whoever follows calls was told
	fresh  bool  // it was called, and nothing of it executed
}

// stack is a thread's stack, or one of them.
type stack struct {
	frames []frame // the first has noSlot
	root   int     // of an interval's tree that the first frame is below, -1: none
	low    uint64  // stack pointer when it was left
	high   uint64  // highest stack pointer known to be in it, 0: not known
	under  *stack  // what a signal's handler has interrupted
}

func newStack(root int, parent int32) *stack {
	return &stack{frames: []frame{{slot: noSlot, parent: parent}}, root: root}
}

func (s *stack) top() *frame { return &s.frames[len(s.frames)-1] }

// holds reports whether the stack has calls above a stack pointer that is above its last call's slot.
func (s *stack) holds(sp uint64) bool {
	return s.high != 0 && sp <= s.high || len(s.frames) > 1 && sp <= s.frames[1].slot
}

// thread is a thread of the process.
type thread struct {
	tid    int32
	stack  *stack
	parked []*stack // others that it has left, and may go on with

	// Of the top frame, for the way through each run:
	slot uint64
	node int32
	fn   int32 // -1: not known yet
	sp   uint64
}

// Bounds of a thread.
const (
	maxFrames = 1 << 20
	maxParked = 1 << 12
	nearBy    = 512 // bytes below the stack pointer that a stack was left with where it may go on
)

// find takes out and returns the parked stack that a stack pointer is in, nil for none.
func (t *thread) find(sp uint64) *stack {
	best := -1
	for i, s := range t.parked {
		if s.high != 0 && sp+nearBy >= s.low && sp <= s.high && (best < 0 || s.high < t.parked[best].high) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	s := t.parked[best]
	t.parked = slices.Delete(t.parked, best, best+1)
	return s
}

// park puts the present stack away.
func (t *thread) park(sp uint64) {
	t.stack.low = sp
	t.stack.high = max(t.stack.high, sp)
	if len(t.parked) >= maxParked {
		t.parked = slices.Delete(t.parked, 0, 1)
	}
	t.parked = append(t.parked, t.stack)
}

// root is a place in an interval where it takes the calls of the intervals before to know what is under way: the start of a thread, or
// a return from a call that was not made in the interval. It is resolved when these are known.
type root struct {
	tid int32
	// sp is the stack pointer behind a return; 0 at the interval's beginning.
	sp uint64
	// goesOn says that a stack was loaded that the interval knows nothing of.
	goesOn bool
	// ends says that a signal's handler has ended.
	ends bool

	of     *stack // in the joined threads
	frames int
	parent int32
	site   place
	// fresh says that nothing of the call was executed in the intervals before: it was their last instruction, or a signal came on top of it.
	fresh bool
	node  int32 // that the frame had before, 0: none
	begun bool  // the first function that is executed in the frame is known
}

// resolve does to a thread of the joined ones what happened at the root.
func (r *root) resolve(t *thread) {
	if r.goesOn {
		t.park(t.sp)
		if s := t.find(r.sp); s != nil {
			t.stack = s
		} else {
			t.stack = newStack(-1, 0)
			t.stack.high = r.sp
		}
	}
	if r.ends && t.stack.under != nil {
		t.stack = t.stack.under
	}
	if r.sp != 0 {
		s := t.stack
		for len(s.frames) > 1 && s.top().slot < r.sp {
			s.frames = s.frames[:len(s.frames)-1]
		}
	}
	f := t.stack.top()
	r.of, r.frames, r.parent, r.site, r.fresh, r.node = t.stack, len(t.stack.frames), f.parent, f.site, f.fresh, f.node
}
