package observe

// Calls are the calls under way in the threads of a process, for who follows Observer.Enter and
// Leave through the intervals in order. The zero value has none. T is what is kept of a call.
type Calls[T any] struct {
	of map[int32][]call[T]
}

type call[T any] struct {
	slot uint64
	of   T
}

// Enter notes a call in a thread, whose return address is at slot. Calls that a longjmp or
// an exception has left are forgotten.
func (c *Calls[T]) Enter(tid int32, slot uint64, of T) {
	if c.of == nil {
		c.of = map[int32][]call[T]{}
	}
	c.of[tid] = append(c.above(tid, slot+1), call[T]{slot, of})
}

// Leave returns what is kept of the call that has returned; ok is false for one
// that was not noted.
func (c *Calls[T]) Leave(tid int32, slot uint64) (of T, ok bool) {
	l := c.above(tid, slot)
	if n := len(l); n > 0 && l[n-1].slot == slot {
		of, ok, l = l[n-1].of, true, l[:n-1]
	}
	if c.of != nil {
		c.of[tid] = l
	}
	return of, ok
}

// above returns the calls of a thread whose slots are at or above one: stacks grow down.
func (c *Calls[T]) above(tid int32, slot uint64) []call[T] {
	l := c.of[tid]
	for len(l) > 0 && l[len(l)-1].slot < slot {
		l = l[:len(l)-1]
	}
	return l
}
