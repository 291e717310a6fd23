//go:build linux && amd64

package record

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Most signals that the recorder passes on it takes by a handler of its own, in assembly, for it runs
// where no Go code may run: it writes the signal's number to a pipe. Signals 32 to 34 cannot be had
// otherwise: they are real-time signals that C libraries keep for themselves, or take for SIGRTMIN, and Go's
// runtime leaves them at their default action, which is to die. The others could be asked for by os/signal,
// which changes threads four times for each of them, at the start and again at the end: that was a sixth
// of what it costs to record a short program.

// rawSignals are the signals that the recorder has this handler for. The runtime's own are not among them, nor those that
// other parts of vplayd ask os/signal for.
var rawSignals = slices.Concat(
	[]unix.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGSTKFLT, unix.SIGCONT, unix.SIGTSTP, unix.SIGXCPU, unix.SIGVTALRM, unix.SIGWINCH, unix.SIGIO, unix.SIGPWR},
	cSignals, realTime())

// cSignals are those that a C library in this process may have taken.
var cSignals = []unix.Signal{32, 33, 34}

// realTime returns the real-time signals that are for programs.
func realTime() (list []unix.Signal) {
	for sig := cSignals[len(cSignals)-1] + 1; sig <= 64; sig++ {
		list = append(list, sig)
	}
	return list
}

// maskOf returns a set of signals as the kernel has it.
func maskOf(signals []unix.Signal) (mask uint64) {
	for _, sig := range signals {
		mask |= 1 << (sig - 1)
	}
	return mask
}

// rawPipe is where onRawSignal writes.
var rawPipe int32

// The kernel calls onRawSignal, which returns to onRawReturn; no Go code may call them.
// rawHandler and rawReturn return their addresses. All are in rawsignal_amd64.s.
func onRawSignal()
func onRawReturn()
func rawHandler() uint64
func rawReturn() uint64

// raw are the relays that get raw signals, in this process.
var raw struct {
	mu     sync.Mutex
	pipe   *os.File // its end to read from; made once
	relays map[*relay]struct{}
	before map[unix.Signal]kernelAction // of those that the handler is set for
	taker  chan struct{}                // closed to end the thread that takes what others block; nil where none does
	last   byte                         // the last relay's mark
}

// watchRaw passes raw signals to the relay, until the returned function is called.
func watchRaw(r *relay) (end func()) {
	raw.mu.Lock()
	defer raw.mu.Unlock()
	if raw.pipe == nil {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return func() {} // they do what they did
		}
		raw.pipe, rawPipe = os.NewFile(uintptr(fds[0]), "signals"), int32(fds[1])
		raw.relays = map[*relay]struct{}{}
		go readRaw(raw.pipe)
	}
	if len(raw.relays) == 0 {
		setRawHandlers()
		tellStops(false)
	}
	raw.relays[r] = struct{}{}
	raw.last = max(raw.last+1, firstMark)
	r.id = raw.last
	return func() {
		raw.mu.Lock()
		defer raw.mu.Unlock()
		delete(raw.relays, r)
		if len(raw.relays) > 0 {
			return
		}
		for sig, act := range raw.before {
			setAction(sig, &act)
		}
		if raw.taker != nil {
			close(raw.taker)
		}
		tellStops(true)
	}
}

// tellStops says whether the kernel sends SIGCHLD for a stop of a process that this one has
// made or traces, as it does unless told not to. The recorder waits for stops by wait4(2), and the
// signal at each would run a handler of Go's, on whichever thread the kernel chooses.
func tellStops(tell bool) {
	const noStops = 0x1 // SA_NOCLDSTOP of asm/signal.h
	act := actionOf(unix.SIGCHLD)
	if act.flags |= noStops; tell {
		act.flags &^= noStops
	}
	setAction(unix.SIGCHLD, &act)
}

// setRawHandlers sets the handler for the raw signals. Where one of a C library is not at its default action, it is
// ignored, which does for the recorder, or in use.
func setRawHandlers() {
	const siginfo, onStack, restart, restorer = 0x4, 0x08000000, 0x10000000, 0x04000000 // SA_* of asm/signal.h
	act := kernelAction{handler: rawHandler(), flags: siginfo | onStack | restart | restorer, restorer: rawReturn(), mask: ^uint64(0)}
	raw.before, raw.taker = map[unix.Signal]kernelAction{}, nil
	for _, sig := range rawSignals {
		if was := actionOf(sig); was.handler == 0 || !slices.Contains(cSignals, sig) {
			setAction(sig, &act)
			raw.before[sig] = was
		}
	}
	if mask := maskOf(rawSignals); currentMask()&mask != 0 {
		raw.taker = make(chan struct{})
		go takeBlocked(mask, raw.taker)
	}
}

// takeBlocked has a thread of its own for signals that the recorder was started with blocked, as Go's threads
// have them from then on, until done is closed.
func takeBlocked(mask uint64, done <-chan struct{}) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its mask
	setMask(currentMask() &^ mask)
	<-done
}

// readRaw passes on what the handler writes.
func readRaw(pipe *os.File) {
	var b [64]byte
	for {
		n, err := pipe.Read(b[:])
		if err != nil {
			return
		}
		raw.mu.Lock()
		for _, sig := range b[:n] {
			for r := range raw.relays {
				if sig < firstMark {
					r.arrive(unix.Signal(sig))
				} else if sig == r.id {
					r.arrive(0)
				}
			}
		}
		raw.mu.Unlock()
	}
}

// firstMark is the first byte in the pipe that is no signal's number.
const firstMark = 65

// markRaw has a mark arrive behind all raw signals that the handler has written.
func markRaw(r *relay) {
	if r.id == 0 {
		r.arrive(0) // none comes
		return
	}
	for {
		if _, err := unix.Write(int(rawPipe), []byte{r.id}); err != unix.EAGAIN { //nolint:errorlint // a bare errno
			return
		}
		time.Sleep(time.Millisecond) // it is full, and read all the time
	}
}
