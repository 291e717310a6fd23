package race

// Vector clocks: how far each thread has come, as far as one thread, or one lock, knows.

// clock is a vector clock, by slot of threads. What is behind its end is zero.
type clock []uint32

// join makes c the later of c and o in each component, and returns it.
func (c clock) join(o clock) clock {
	if len(o) > len(c) {
		c = append(c, make(clock, len(o)-len(c))...)
	}
	for i, n := range o {
		c[i] = max(c[i], n)
	}
	return c
}

// at returns the component of a slot.
func (c clock) at(slot uint16) uint32 {
	if int(slot) < len(c) {
		return c[slot]
	}
	return 0
}

// thread is what is known of a thread.
type thread struct {
	tid  int32
	slot uint16
	// knows is its vector clock; its own component is the time that its accesses are stamped with.
	knows clock
}

// now returns the thread's own time.
func (t *thread) now() uint32 { return t.knows[t.slot] }

// tick begins a new time of the thread: what it does from now on is not known to those who have acquired before.
func (t *thread) tick() { t.knows[t.slot]++ }

// Slots of threads that were joined are used again once there are many of them, since each
// vector clock has a component for each slot. The clock of a slot goes on where it was. Accesses of the thread before are taken for
// the new one's own: that may miss a race, and makes none.
const (
	reuseAbove = 256
	maxSlots   = 1 << 15
)

// thread returns the thread of a number. One that is not known was not seen to be created: it is
// ordered behind all that was done so far.
func (d *Detector) thread(tid int32) *thread {
	if t := d.last; t != nil && t.tid == tid {
		return t
	}
	t := d.threads[tid]
	if t == nil {
		t = d.newThread(tid)
		d.acquireAll(t)
	}
	d.last = t
	return t
}

// newThread adds a thread that knows nothing but itself.
func (d *Detector) newThread(tid int32) *thread {
	t := &thread{tid: tid}
	switch {
	case len(d.free) > 0 && (len(d.slots) >= reuseAbove):
		t.slot = d.free[0]
		d.free = d.free[1:]
	case len(d.slots) >= maxSlots: // nobody was joined; threads that share a slot have no races with each other
		t.slot = uint16(len(d.slots) - 1)
	default:
		t.slot = uint16(len(d.slots))
		d.slots = append(d.slots, 0)
	}
	t.knows = make(clock, len(d.slots))
	t.knows[t.slot] = d.slots[t.slot] + 1
	d.threads[tid] = t
	d.several = d.several || len(d.threads) > 1
	return t
}

// acquireAll orders what t does from now on behind all that other threads have done.
func (d *Detector) acquireAll(t *thread) {
	for _, o := range d.threads {
		if o != t {
			t.knows = t.knows.join(o.knows)
			o.tick()
		}
	}
}
