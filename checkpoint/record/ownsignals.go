//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// Which signals the program got by itself. os/signal does not say who sent a signal, or to whom. But
// the program is traced: a copy of its own is first in its queue, then at a stop that the
// tracer has not looked at, then among those that the tracer has seen, and never
// between them. So the queue is read first, then the threads' states, then the list. The
// queue and a thread's stop change under one lock of the kernel's (kernel/signal.c, get_signal).
//
// Copies for a group are queued under the lock of the list of processes (kill_pgrp), so
// they are all there once somebody has had that for writing: groupIsDone.
//
// The other way round: what the program got may have been sent to it alone, and then it is no copy
// of what reaches the recorder later. forgetOld finds out that nothing of that
// time is on its way through the recorder any more.
//
// Not known is what a program reads from a signalfd(2): that leaves the queue without a stop.

// ownSignals is what is known of the program's copies.
type ownSignals struct {
	seen    []ownSignal         // those that were delivered to it, and that no arrival was found to be
	count   uint64              // how many there were
	old     uint64              // those up to this number are forgotten when the marks have come
	pending map[unix.Signal]int // those that an arrival was found to be while they were in its queue
	relayed map[unix.Signal]int // those that the relay has sent
	marks   map[int]threadMark  // by tid
}

func newOwnSignals() ownSignals {
	return ownSignals{pending: map[unix.Signal]int{}, relayed: map[unix.Signal]int{}, marks: map[int]threadMark{}}
}

// ownSignal is a signal that was delivered to the program.
type ownSignal struct {
	sig    unix.Signal
	number uint64
}

// threadMark says how far the tracer is with a thread.
type threadMark uint8

const (
	hasLooked threadMark = iota // its stop was looked at, or it has not run
	isRunning                   // it was resumed: if it is at a stop nobody has looked at that
	isWaiting                   // likewise, in a call that takes signals out of the queue
)

// copyState says whether the program has its own copy of a signal.
type copyState uint8

const (
	noCopy copyState = iota
	hasCopy
	maybeCopy // it cannot be said yet
)

// maxSeen bounds the list of what was delivered.
const maxSeen = 4096

func isStandard(sig unix.Signal) bool { return sig <= 31 }

func has(mask uint64, sig unix.Signal) bool { return mask>>(sig-1)&1 != 0 }

// copyOf returns whether the program has its own copy of a signal that has reached the recorder,
// and counts that copy as the signal's.
func (o *ownSignals) copyOf(pid int, sig unix.Signal) copyState {
	status, err := statusOf(pid)
	if err != nil {
		return noCopy
	}
	if has(status.Mask("ShdPnd"), sig) {
		switch {
		case isStandard(sig): // the kernel keeps one: one more would make no difference
			o.pending[sig] = 1
		case o.relayed[sig] > 0:
			return noCopy // what waits there is what the relay has sent
		default:
			o.pending[sig]++
		}
		return hasCopy
	}
	if o.anyUnseen(pid) {
		return maybeCopy
	}
	delete(o.pending, sig)
	delete(o.relayed, sig)
	if i := slices.IndexFunc(o.seen, func(s ownSignal) bool { return s.sig == sig }); i >= 0 {
		o.seen = slices.Delete(o.seen, i, i+1)
		return hasCopy
	}
	return noCopy
}

// anyUnseen reports whether a thread of the process may have taken a signal out of the queue that
// the tracer has not seen yet.
func (o *ownSignals) anyUnseen(pid int) bool {
	tids, err := tasksOf(pid)
	if err != nil {
		return false
	}
	for _, tid := range tids {
		mark := o.marks[tid]
		if mark == hasLooked {
			continue
		}
		state := taskState(pid, tid)
		if state == 't' || mark == isWaiting && state != 'S' && state != 0 {
			return true
		}
	}
	return false
}

// taskState returns the state of a thread, 0 when there is no such thread.
func taskState(pid, tid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil {
		return 0
	}
	s, _ := abi.ParseProcStat(b)
	return s.State
}

// runs is told before a thread is resumed.
func (r *relay) runs(t *thread) {
	m := isRunning
	if t.call.in && t.call.nr == unix.SYS_RT_SIGTIMEDWAIT {
		m = isWaiting
	}
	r.mark(t, m)
}

// looked is told when a thread's stop has been answered.
func (r *relay) looked(t *thread) { r.mark(t, hasLooked) }

// mark sets the mark of a thread of the program's.
func (r *relay) mark(t *thread, m threadMark) {
	if !r.isFor(t) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own.marks[t.tid] = m
}

// isFor reports whether signals are passed on to the thread's process. Both are in one PID namespace, so
// si_pid is the recorder's number: a process whose children go to another can make no threads (man 7
// pid_namespaces), and the recorder has some.
func (r *relay) isFor(t *thread) bool { return r.queue != nil && t.proc == t.session.first }

// ended is told when a thread has ended.
func (r *relay) ended(tid int) {
	r.mu.Lock()
	delete(r.own.marks, tid)
	r.mu.Unlock()
}

// delivered notes a signal that is delivered to a thread.
func (r *relay) delivered(t *thread, si *ptrace.Siginfo) {
	sig, code := unix.Signal(si.Signo()), si.Code()
	if code == siTkill || isFault(int(sig), si) {
		return // it was for the thread alone
	}
	fromRelay := code == 0 && int(si.PID()) == os.Getpid()
	r.took(t, func(o *ownSignals) bool { return o.took(sig, fromRelay, mayBeForGroup(sig, code)) })
}

// taken notes a signal that rt_sigtimedwait(2) has taken out of a thread's queue.
func (r *relay) taken(t *thread, sig unix.Signal) {
	r.took(t, func(o *ownSignals) bool { return o.took(sig, o.relayed[sig] > 0, true) })
}

// sentToAll notes that a thread has sent a signal to every process, which leaves
// out its own (man 2 kill).
func (r *relay) sentToAll(t *thread, sig unix.Signal) {
	r.took(t, func(o *ownSignals) bool { return o.add(sig) })
}

// took has note take note of a signal, and forgetOld look if note says that there is one more.
func (r *relay) took(t *thread, note func(o *ownSignals) bool) {
	if !r.isFor(t) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if note(&r.own) {
		r.wake()
	}
}

// mayBeForGroup reports whether a signal with that code may have gone to more than one process: by
// kill(2) or pidfd_send_signal(2), from a terminal, or for a file (fcntl(2), F_SETOWN).
func mayBeForGroup(sig unix.Signal, code int32) bool {
	const siQueue = -1
	switch {
	case code == 0, code == siQueue:
		return true
	case code == siKernel:
		return terminals(sig) || sig == unix.SIGHUP || sig == unix.SIGIO
	}
	return code > 0 && sig != unix.SIGCHLD && sig != unix.SIGSYS // POLL_IN and its kin
}

// took counts a signal that a thread has taken out of the program's queue. It reports whether the list has
// one more: the relay has not sent it, and it may have gone to the group.
func (o *ownSignals) took(sig unix.Signal, fromRelay, forGroup bool) bool {
	switch {
	case fromRelay:
		o.relayed[sig] = max(o.relayed[sig]-1, 0)
		if isStandard(sig) { // all that came while it waited is one with it
			delete(o.pending, sig)
		}
		return false
	case o.pending[sig] > 0:
		o.pending[sig]--
		return false
	}
	return forGroup && o.add(sig)
}

// add adds to the list, and returns true.
func (o *ownSignals) add(sig unix.Signal) bool {
	o.count++
	if o.seen = append(o.seen, ownSignal{sig, o.count}); len(o.seen) > maxSeen {
		o.seen = o.seen[1:]
	}
	return true
}
