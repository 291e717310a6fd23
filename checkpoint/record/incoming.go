//go:build linux && amd64

package record

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Signals that reach the recorder. It stands in the program's place: a shell or
// a supervisor knows the recorder's process number and signals that. It also
// stands in the program's process group, so that it gets what the program sends
// to its group. While a program is recorded, nothing of that may end or stop
// the recorder, and what was meant for the program must reach it (see relay).
//
// os/signal says neither who sent a signal nor whether a process did, and its
// handler ends the process at a SIGTRAP or SIGABRT from outside. So while
// programs are recorded the signals have a handler of the recorder's own, which
// writes their siginfo_t to a pipe.

// Not taken over: SIGKILL and SIGSTOP, which cannot be; SIGURG, SIGPROF and 33,
// which Go's runtime uses itself and survives.
const notTaken = 1<<9 | 1<<19 | 1<<23 | 1<<27 | 1<<33

// ofThreads are the signals that the kernel sends to a thread for what it did,
// and SIGCHLD: Go's runtime gets them.
const ofThreads = 1<<unix.SIGILL | 1<<unix.SIGTRAP | 1<<unix.SIGBUS | 1<<unix.SIGFPE | 1<<unix.SIGSEGV | 1<<unix.SIGSYS | 1<<unix.SIGCHLD

// lastSignal is the greatest signal number.
const lastSignal = 64

// incoming are the recordings in progress in this process.
var incoming struct {
	mu    sync.Mutex
	users map[*relay]bool
	pipe  *os.File // the reader's end; opened once, and kept
	saved [lastSignal + 1]kernelAction
}

// receive has r told of every signal that reaches this process, until stop is
// called.
func receive(r *relay) (stop func(), err error) {
	in := &incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.pipe == nil {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return nil, err
		}
		in.users, in.pipe, signalPipe = map[*relay]bool{}, os.NewFile(uintptr(p[0]), "signals"), int32(p[1])
		go readSignals(in.pipe)
	}
	if len(in.users) == 0 {
		takeOver(&in.saved)
	}
	in.users[r] = true
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		if delete(in.users, r); len(in.users) == 0 {
			giveBack(&in.saved)
		}
	}, nil
}

// takeOver installs the handler. SIGCHLD says nothing of stops any more: there
// are two for each system call of the program, and wait(2) tells of them.
func takeOver(saved *[lastSignal + 1]kernelAction) {
	_ = sigaction(int(unix.SIGSEGV), nil, &saved[unix.SIGSEGV]) // it exists
	runtimeHandler, handBackSet = uintptr(saved[unix.SIGSEGV].handler), ofThreads
	for sig := 1; sig <= lastSignal; sig++ {
		if notTaken>>sig&1 != 0 {
			continue
		}
		act := kernelAction{
			handler: uint64(handlerPC()), flags: saSigInfo | saOnStack | saRestart | saRestorer,
			restorer: uint64(restorerPC()), mask: ^uint64(0),
		}
		if sig == int(unix.SIGCHLD) {
			act.flags |= saNoCldStop
		}
		_ = sigaction(sig, &act, &saved[sig]) // the number is good
	}
}

// giveBack restores the actions that nobody has changed meanwhile.
func giveBack(saved *[lastSignal + 1]kernelAction) {
	for sig := 1; sig <= lastSignal; sig++ {
		var now kernelAction
		if notTaken>>sig&1 == 0 && sigaction(sig, nil, &now) == nil && now.handler == uint64(handlerPC()) {
			_ = sigaction(sig, &saved[sig], nil) // the number is good
		}
	}
}

// readSignals passes what the handler has written to the recordings.
func readSignals(pipe io.Reader) {
	for {
		var si siginfo
		if _, err := io.ReadFull(pipe, si[:]); err != nil {
			return // the process ends
		}
		incoming.mu.Lock()
		for r := range incoming.users {
			r.arrive(si)
		}
		incoming.mu.Unlock()
	}
}
