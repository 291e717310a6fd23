//go:build linux && amd64

package record

import (
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A signal that the program got is forgotten when nothing that was sent at its time is on its way through
// the recorder any more. It goes this way: in the recorder's queue; taken by one of its threads, which may be kept from
// running right then; in the handler; in Go's runtime; in channels.

// forgetEvery is how long the program's signals are collected: each time costs every thread of the recorder
// a signal.
const forgetEvery = 10 * time.Millisecond

// forgetOld forgets what the program got, once that is sure to be no arrival's copy.
func (r *relay) forgetOld(ch chan<- os.Signal) {
	for {
		select {
		case <-r.noted:
		case <-r.done:
			return
		}
		r.mu.Lock()
		r.own.old = r.own.count
		r.mu.Unlock()
		groupIsDone()
		handlersAreDone(r.done)
		runtimeIsDone()
		select {
		case ch <- mark{}:
		case <-r.done:
			return
		}
		markRaw(r)
		for range cap(r.passed) {
			select {
			case <-r.passed:
			case <-r.done:
				return
			}
		}
		r.forget()
		time.Sleep(forgetEvery)
	}
}

// groupIsDone returns when a signal that was being sent to several processes has been queued for all:
// the kernel sends it under tasklist_lock, which setpgid(2) takes for writing before it looks for the process.
func groupIsDone() { _ = unix.Setpgid(1<<31-1, 1) } // there is no such process (pid_max)

// handlersAreDone returns when no signal that was sent by now is in the process's queue, or in a
// handler. A signal for a thread comes after all that this thread has taken out of the queue, because Go's handlers, and
// that of rawsignal.go, block all signals. It is SIGCHLD: Go's runtime unblocks it in each of its threads, whatever
// the recorder was started with, and nobody asks for it.
func handlersAreDone(done <-chan struct{}) {
	pid := os.Getpid()
	before := ownPending(pid)
	wait := func(there func() bool) {
		for there() {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
	wait(func() bool { before &= ownPending(pid); return before != 0 })
	tids, err := tasksOf(pid)
	if err != nil {
		return
	}
	for _, tid := range tids {
		_ = unix.Tgkill(pid, tid, unix.SIGCHLD) // it fails only for one that has gone
	}
	wait(func() bool { return slices.ContainsFunc(tids, hasToTake) })
}

// ownPending returns the signals in the recorder's queue that the relay passes on and that a thread will take.
func ownPending(pid int) uint64 {
	status, err := statusOf(pid)
	if err != nil {
		return 0
	}
	return maskOf(relayed()) & status.Mask("ShdPnd")
}

// hasToTake reports whether a thread of the recorder's has yet to take its SIGCHLD.
func hasToTake(tid int) bool {
	status, err := statusOf(tid)
	if err != nil {
		return false
	}
	return has(status.Mask("SigPnd"), unix.SIGCHLD)
}

// runtimeIsDone returns when the signals that handlers have given to Go's runtime are in the channels:
// that is what signal.Stop waits for.
func runtimeIsDone() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGTTIN) // which the relay has, too
	signal.Stop(ch)
}

// forget drops what came before the marks, but for copies of arrivals that wait.
func (r *relay) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &r.own
	o.seen = slices.DeleteFunc(o.seen, func(s ownSignal) bool {
		return s.number <= o.old && !slices.ContainsFunc(r.waiting, func(a arrival) bool { return a.sig == s.sig })
	})
	if len(o.seen) > 0 {
		r.wake()
	}
}

// wake has forgetOld look.
func (r *relay) wake() {
	select {
	case r.noted <- struct{}{}:
	default: // it will
	}
}
