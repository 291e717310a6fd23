//go:build linux && amd64

package record

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// The recorder stands in the program's place: a shell or a supervisor knows the
// recorder's process number and sends its signals there. It also stands in the
// program's process group, so that it gets what the terminal, or the program itself,
// sends to the group. So nothing of that may end the recorder, and the relay
// passes on to the program what only the recorder got.
//
// os/signal does not say who sent a signal. But the program is traced, so each
// signal that is delivered to it is seen, with its siginfo_t. Copies for a
// group are queued in one go (kernel/signal.c, __kill_pgrp_info), so when the
// recorder has a signal the program's copy is on its way or there already: pending, at its
// delivery stop, or noted by delivered just now. Where it is none of these the program has none.
type relay struct {
	interrupt func() // called for each SIGINT
	queue     chan arrival

	mu       sync.Mutex
	pid      int  // the program; 0 before it runs and when it has ended
	detached bool // nobody sees what is delivered to it
	seen     []delivery
	started  chan struct{} // closed when pid is first known
}

// arrival is a signal that reached the recorder.
type arrival struct {
	sig unix.Signal
	at  time.Time
}

// delivery is a signal that was delivered to the program and that the recorder had not sent.
type delivery struct {
	arrival
	group bool // it is one that went to the whole group
}

// How long a copy takes to be queued; how long the recorder's Go code may lag behind
// its own signal, by where the copy came from; and how long the tracer may take over a
// stop of the program.
const (
	copySettles = 5 * time.Millisecond
	lagOfGroup  = time.Second
	lagOfOthers = 100 * time.Millisecond
	longestStop = time.Second
)

// relayed returns the signals that the recorder lives through and passes on.
// It leaves out those that cannot be caught, those that Go's runtime uses, those that
// it does not know (rawSignals), SIGCHLD, which comes with the program's stops, and those
// that the recorder gets for what it does itself.
func relayed() (list []os.Signal) {
	for sig := unix.Signal(1); sig <= 64; sig++ {
		switch sig {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGPROF, rawSignals[0], rawSignals[1], rawSignals[2], unix.SIGCHLD, unix.SIGPIPE, unix.SIGTTIN, unix.SIGTTOU:
		default:
			list = append(list, sig)
		}
	}
	return list
}

// start catches signals, and passes them on, until the returned function is called.
func (r *relay) start() (stop func()) {
	ch := make(chan os.Signal, 256)
	r.queue, r.started = make(chan arrival, 256), make(chan struct{})
	signal.Notify(ch, relayed()...)
	signal.Notify(ch, unix.SIGTTIN, unix.SIGTTOU)
	endRaw := watchRaw(r)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-ch:
				r.arrive(s.(unix.Signal))
			case <-done:
				return
			}
		}
	}()
	go func() {
		for {
			select {
			case a := <-r.queue:
				r.pass(a, done)
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(ch); endRaw(); close(done) }
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

// arrive takes a signal that has reached the recorder.
func (r *relay) arrive(sig unix.Signal) {
	if sig == unix.SIGINT {
		r.interrupt()
	}
	if sig == unix.SIGTTIN || sig == unix.SIGTTOU {
		return
	}
	select {
	case r.queue <- arrival{sig, time.Now()}:
	default: // more at once than any program can tell apart
	}
}

// pass sends a signal to the program, unless that has its own copy.
func (r *relay) pass(a arrival, done <-chan struct{}) {
	select {
	case <-r.started: // one that comes before is the program's first
	case <-done:
		return
	}
	time.Sleep(time.Until(a.at.Add(copySettles)))
	for {
		r.mu.Lock()
		pid, detached := r.pid, r.detached
		if pid == 0 || !detached && r.takeCopy(a) || detached && fromTerminal(a.sig) {
			r.mu.Unlock()
			return
		}
		// A stop that the tracer has not dealt with yet may be the copy's delivery.
		if detached || time.Since(a.at) > longestStop || stateOf(pid) != 't' {
			if !isPending(pid, a.sig) { // one more would make no difference
				_ = unix.Kill(pid, a.sig) // it fails only for one that is gone
			}
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// takeCopy reports whether the program got the same signal by itself, and takes
// that copy off the list. The lock is held.
func (r *relay) takeCopy(a arrival) bool {
	for i, d := range r.seen {
		lag := lagOfOthers
		if d.group {
			lag = lagOfGroup
		}
		if d.sig == a.sig && a.at.Sub(d.at) < lag {
			r.seen = append(r.seen[:i], r.seen[i+1:]...)
			return true
		}
	}
	return false
}

// delivered notes a signal that is delivered to the program.
func (r *relay) delivered(si *ptrace.Siginfo) {
	if si.Code() <= 0 && int(si.PID()) == os.Getpid() {
		return // passed on, or handed back after it was held
	}
	r.note(unix.Signal(si.Signo()), si.Code() > 0)
}

// sentToAll notes that the program has sent a signal to every process, which leaves
// out itself (man 2 kill).
func (r *relay) sentToAll(sig int) { r.note(unix.Signal(sig), true) }

func (r *relay) note(sig unix.Signal, group bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for len(r.seen) > 0 && now.Sub(r.seen[0].at) > lagOfGroup {
		r.seen = r.seen[1:]
	}
	r.seen = append(r.seen, delivery{arrival{sig, now}, group})
}

// fromTerminal reports whether a signal is one that terminals send and this
// process's group is the one that its terminal sends to.
func fromTerminal(sig unix.Signal) bool {
	switch sig {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGWINCH, unix.SIGCONT:
	default:
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

// isPending reports whether a standard signal, of which the kernel keeps one,
// waits to be delivered to the process.
func isPending(pid int, sig unix.Signal) bool {
	const standard = 31
	status, err := statusOf(pid)
	return err == nil && sig <= standard && (status.Mask("SigPnd")|status.Mask("ShdPnd"))>>(sig-1)&1 != 0
}
