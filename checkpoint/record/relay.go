//go:build linux && amd64

package record

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The recorder stands in the program's place: a shell or a supervisor knows the
// recorder's process number and sends its signals there. It also stands in the
// program's process group, so that it gets what the terminal, or the program itself,
// sends to the group. So nothing of that may end the recorder, and the relay
// passes on to the program what only the recorder got. Whether the program has its own copy
// is for the kernel to say, not for a clock (ownsignals.go).
type relay struct {
	interrupt func() // called for each SIGINT
	queue     chan arrival
	id        byte          // what this relay writes to rawPipe to find its own place there
	noted     chan struct{} // there is something new in own.seen
	passed    chan struct{} // a mark has been taken, and so has all that came before it
	done      chan struct{} // closed at the end

	mu       sync.Mutex
	pid      int  // the program; 0 before it runs and when it has ended
	detached bool // nobody sees what is delivered to it
	own      ownSignals
	waiting  []arrival     // those of which it is not known yet whether the program has its own copy
	started  chan struct{} // closed when pid is first known
}

// arrival is a signal that reached the recorder; number 0 is a mark (forgetOld).
type arrival struct {
	sig unix.Signal
	at  time.Time
}

// copySettles is how long the relay waits for a sender that goes from process to process, as
// `systemctl stop` does. Copies for a group need no time.
const copySettles = 5 * time.Millisecond

// relayed returns the signals that the recorder lives through and passes on.
// It leaves out those that cannot be caught, those that Go's runtime uses, SIGCHLD, which comes with the
// program's stops, and those that the recorder gets for what it does itself.
func relayed() (list []unix.Signal) {
	for sig := unix.Signal(1); sig <= 64; sig++ {
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGPROF, unix.SIGCHLD, unix.SIGPIPE, unix.SIGTTIN, unix.SIGTTOU:
		default:
			list = append(list, sig)
		}
	}
	return list
}

// byRuntime returns the signals that come by os/signal: those that are relayed and not raw.
func byRuntime() (list []os.Signal) {
	for _, sig := range relayed() {
		if !slices.Contains(rawSignals, sig) {
			list = append(list, sig)
		}
	}
	return list
}

// mark goes through a channel of signals behind all that is in it.
type mark struct{}

func (mark) Signal()        {}
func (mark) String() string { return "mark" }

// start catches signals, and passes them on, until the returned function is called.
func (r *relay) start() (stop func()) {
	ch := make(chan os.Signal, 256)
	r.queue, r.started = make(chan arrival, 256), make(chan struct{})
	r.noted, r.passed = make(chan struct{}, 1), make(chan struct{}, 2)
	r.own, r.done = newOwnSignals(), make(chan struct{})
	signal.Notify(ch, append(byRuntime(), unix.SIGTTIN, unix.SIGTTOU)...)
	endRaw := watchRaw(r)
	go func() {
		for {
			select {
			case s := <-ch:
				sig, _ := s.(unix.Signal)
				r.arrive(sig)
			case <-r.done:
				return
			}
		}
	}()
	go r.run()
	go r.forgetOld(ch)
	return func() { signal.Stop(ch); endRaw(); close(r.done) }
}

// program says which process the program is: 0 when it has ended.
func (r *relay) program(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pid = pid
	select {
	case <-r.started:
	default:
		close(r.started)
	}
}

// detach says that the program is not traced any more.
func (r *relay) detach() {
	r.mu.Lock()
	r.detached = true
	r.mu.Unlock()
}

// arrive takes a signal that has reached the recorder, or a mark.
func (r *relay) arrive(sig unix.Signal) {
	if sig == unix.SIGINT {
		r.interrupt()
	}
	switch sig {
	case unix.SIGTTIN, unix.SIGTTOU:
		return
	case unix.SIGXFSZ, unix.SIGXCPU: // the recorder itself is at a limit: what it writes, or how long it runs, is not the program's doing
		return
	}
	if sig == 0 {
		select {
		case r.queue <- arrival{}:
		case <-r.done:
		}
		return
	}
	select {
	case r.queue <- arrival{sig, time.Now()}:
	default: // more at once than any program can tell apart
	}
}

// run passes on what arrives.
func (r *relay) run() {
	var again <-chan time.Time
	started := r.started
	for {
		select {
		case <-started: // one that came before is the program's first
			started = nil
		case a := <-r.queue:
			if a.sig == 0 {
				r.passed <- struct{}{}
				continue
			}
			r.mu.Lock()
			r.waiting = append(r.waiting, a)
			r.mu.Unlock()
		case <-again:
		case <-r.done:
			return
		}
		if again = nil; started == nil && r.passOn() {
			again = time.After(time.Millisecond)
		}
	}
}

// passOn passes on what has waited for long enough. It reports whether some wait still: one keeps
// no other waiting.
func (r *relay) passOn() bool {
	sent := time.Now().Add(-copySettles)
	groupIsDone()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(a arrival) bool { return !a.at.After(sent) && r.pass(a.sig) })
	return len(r.waiting) > 0
}

// pass sends a signal to the program, unless that has its own copy. It reports whether that
// could be said. The lock is held.
func (r *relay) pass(sig unix.Signal) bool {
	switch {
	case r.pid == 0, r.detached && fromTerminal(sig):
		return true
	case r.detached:
	default:
		switch r.own.copyOf(r.pid, sig) {
		case hasCopy:
			return true
		case maybeCopy:
			return false
		case noCopy:
		}
	}
	if unix.Kill(r.pid, sig) == nil { // it fails only for one that is gone
		r.own.relayed[sig]++
	}
	return true
}

// terminals reports whether a signal is one that terminals send.
func terminals(sig unix.Signal) bool {
	switch sig {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGWINCH, unix.SIGCONT:
		return true
	}
	return false
}

// fromTerminal reports whether a signal is one that terminals send and this
// process's group is the one that its terminal sends to.
func fromTerminal(sig unix.Signal) bool {
	if !terminals(sig) {
		return false
	}
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // there is none
	}
	defer func() { _ = unix.Close(tty) }() // it was only asked
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
