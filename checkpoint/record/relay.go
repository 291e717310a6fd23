//go:build linux && amd64

package record

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// relay passes the signals that reached the recorder on to the program, but for
// those of which the program has its own copy:
//
//   - Those of the kernel, but for a timer's, come from the terminal, which sends
//     them to all of its foreground group.
//   - The program and its descendants know the recorder's number only as that of
//     their parent; what comes from them was sent to the group.
//   - Others may have signalled the recorder or the group (timeout(1) does both).
//     The group's copies are queued in one go, so the relay waits until
//     the program's would have been seen, and looks whether it was.
type relay struct {
	interrupt func() // called for each SIGINT that is not the program's own
	queue     chan incomingSignal

	mu       sync.Mutex
	pid      int  // the program; 0 before it runs and once it has ended
	detached bool // nobody sees what the program gets
	seen     []incomingSignal
	sent     []siginfo // passed on and not delivered yet, as their senders made them
}

// incomingSignal is a signal and when it came.
type incomingSignal struct {
	siginfo
	at time.Time
}

// How long the program's own copy of a signal may take to be seen, how long to
// wait for a stop of the program that the tracer has not dealt with, and how
// long ago a copy may have come.
const (
	copySettles = 5 * time.Millisecond
	copyStopped = time.Second
	copyWindow  = time.Second
)

// start runs the relay until the returned function is called.
func (r *relay) start() (stop func(), err error) {
	r.queue = make(chan incomingSignal, 512) // as many as the pipe holds
	stopReceive, err := receive(r)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-r.queue:
				r.pass(&s)
			case <-done:
				return
			}
		}
	}()
	return func() { stopReceive(); close(done) }, nil
}

// program says which process the program is: 0 when it has ended.
func (r *relay) program(pid int) {
	r.mu.Lock()
	r.pid = pid
	r.mu.Unlock()
}

// detach says that the program is no longer traced.
func (r *relay) detach() {
	r.mu.Lock()
	r.detached = true
	r.mu.Unlock()
}

// arrive takes a signal that has reached this process.
func (r *relay) arrive(si siginfo) {
	if si.code() > 0 {
		switch unix.Signal(si.signo()) {
		case unix.SIGINT:
			r.interrupt()
			return
		case unix.SIGALRM, unix.SIGVTALRM: // a timer that execve has kept
		default:
			return
		}
	} else if r.ours(int(si.pid())) {
		return
	} else if unix.Signal(si.signo()) == unix.SIGINT {
		r.interrupt()
	}
	select {
	case r.queue <- incomingSignal{si, time.Now()}:
	default: // more at once than any queue of the kernel's is likely to hold
	}
}

// ours reports whether a process is the recorder, the program or one of its
// descendants.
func (r *relay) ours(pid int) bool {
	r.mu.Lock()
	prog := r.pid
	r.mu.Unlock()
	const deepest = 64
	for n := 0; n < deepest && pid > 1; n++ {
		if pid == prog || pid == unix.Getpid() {
			return n == 0 || pid == prog
		}
		_, pid = procStat(pid)
	}
	return false
}

// procStat returns a process's state, as a letter, and its parent; 0 when there
// is no such process (man 5 proc).
func procStat(pid int) (state byte, parent int) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// The name stands in parentheses and may hold any character.
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 2 || len(f[0]) == 0 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(f[1])) // 0 where it is none
	return f[0][0], parent
}

// pass sends a signal to the program unless it has a copy.
func (r *relay) pass(s *incomingSignal) {
	time.Sleep(time.Until(s.at.Add(copySettles)))
	r.mu.Lock()
	pid, detached := r.pid, r.detached
	r.mu.Unlock()
	if pid == 0 {
		return
	}
	if !detached && s.code() <= 0 {
		for end := s.at.Add(copyStopped); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if state, _ := procStat(pid); state != 't' {
				break
			}
		}
		if isPending(pid, int(s.signo())) {
			return // one more makes no difference
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pid == 0 || !r.detached && r.takeCopy(s) {
		return
	}
	sig := int(s.signo())
	switch {
	case s.code() < 0 && s.code() != siTkill && queueInfo(pid, sig, &s.siginfo) == nil:
	default:
		if !r.detached {
			r.sent = append(r.sent, s.siginfo)
		}
		_ = unix.Kill(pid, unix.Signal(sig)) // it fails only for one that is gone
	}
}

// isPending reports whether a standard signal, of which the kernel keeps one,
// waits to be delivered.
func isPending(pid, sig int) bool {
	const standard = 31
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && sig <= standard && (statusMask(b, "SigPnd:")|statusMask(b, "ShdPnd:"))>>(sig-1)&1 != 0
}

// takeCopy reports whether the program got the same signal by itself, and takes
// that copy off the list. The lock is held.
func (r *relay) takeCopy(s *incomingSignal) bool {
	for i := range r.seen {
		c := &r.seen[i]
		if c.signo() == s.signo() && c.code() == s.code() && c.pid() == s.pid() && s.at.Sub(c.at).Abs() < copyWindow {
			r.seen = append(r.seen[:i], r.seen[i+1:]...)
			return true
		}
	}
	return false
}

// delivered is told of each signal at its delivery to the program. It makes si
// what it was when it reached the recorder, if it was passed on, and says
// whether it has changed it.
func (r *relay) delivered(si *siginfo) bool {
	if si.code() > 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(si.pid()) != unix.Getpid() {
		now := time.Now()
		for len(r.seen) > 0 && now.Sub(r.seen[0].at) > copyWindow {
			r.seen = r.seen[1:]
		}
		r.seen = append(r.seen, incomingSignal{*si, now})
		return false
	}
	for i := range r.sent {
		if r.sent[i].signo() == si.signo() && si.code() != siTkill {
			*si = r.sent[i]
			r.sent = append(r.sent[:i], r.sent[i+1:]...)
			return true
		}
	}
	return false
}

// beforeKill looks at a kill(2) with SIGKILL at its entry: the recorder survives
// every other signal to the program's group, but not this. What ends
// the program too is written as the crash that it is; what spares the
// program, as kill(-1) spares its caller, is made without a recorder.
func (t *tracer) beforeKill() (action, error) {
	switch to := int(int32(t.call.args[0])); {
	case to == -1:
		return action{}, t.giveUp("the program kills every process that it may, the recorder among them")
	case to == 0, to < -1:
		own, err := unix.Getpgid(t.pid)
		if to != 0 {
			own = -to
		}
		if err == nil && own == unix.Getpgrp() {
			next, err := t.crash(int(unix.SIGKILL), nil, false)
			next.sig = 0
			return next, err
		}
	}
	return action{}, nil
}
