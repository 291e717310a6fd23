package gdbstub

// The thread that the client's user has selected. The packets for a step forward name it, bs
// and bc do not: before them gdb sends Hc with the process only, and not even that when it
// resumes all processes ("set schedule-multiple on"). Hg names whichever thread's
// registers were read last, which after "info threads" is the last of the list.
//
// A stop selects its thread. After that gdb asks whether a thread is there, by T, when its
// user says "thread N", and in one other case: "thread apply all" reads the list, then asks
// about each thread in it, and leaves the selection as it was (seen in gdb 13's packets).
// Of "inferior N" the packets say nothing.

// selection is what the packets say about the selected thread.
type selection struct {
	threadRef       // without what follows
	lists      bool // this packet ends a list of threads
	justListed bool // the packet before did

	// The threads that were asked about right after a list: when it is all of them, that
	// was a walk through the list.
	count, all int
	last       threadRef
}

// packet notes that another packet is handled.
func (v *selection) packet() { v.justListed, v.lists = v.lists, false }

// asked notes that the client asks about a thread, n are there.
func (v *selection) asked(t threadRef, n int) {
	switch {
	case v.justListed:
		v.count, v.all, v.last = 1, n, t
	case v.count < v.all:
		v.count++
		v.last = t
	default:
		v.threadRef, v.count, v.all = t, 0, 0
	}
}

// thread returns the selected thread.
func (v *selection) thread() threadRef {
	if v.count < v.all {
		return v.last
	}
	return v.threadRef
}
