//go:build linux && amd64

package record

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// What is asked of the tracer's thread while it waits for stops: to end the recording, or to write
// what it has by now (livesnapshot.go). A thread that waits in wait4(2) is woken by a signal, whose
// handler has no SA_RESTART. The signal is sent again until the thread has taken note, since it may
// come right before the call.

// request is one thing that is asked.
type request struct {
	why   string        // the recording is to end, because of this; "" for not
	path  string        // where a snapshot goes
	taken chan struct{} // closed when the thread has taken note
	done  chan error    // gets what became of a snapshot

	written *live // this snapshot is written, but for what makes it whole
}

// asks is what other goroutines want of the tracer's thread.
type asks struct {
	mu     sync.Mutex
	tracer int // the thread, 0 for none
	ended  bool
	queue  []*request
}

// wakeSignal wakes the tracer's thread. To a process with a handler it does nothing else.
const wakeSignal = unix.SIGTTOU

// wakeAgain is after how long it is sent again.
const wakeAgain = 10 * time.Millisecond

// Why a recording ends that is asked to end.
const (
	whyTimeOver = "the time that was given is over"
	whyStopped  = "it was asked to end"
)

// ErrOver says that nothing is recorded any more.
var ErrOver = errors.New("the recording has ended")

// prepareWake has wakeSignal, for which os/signal has been asked, end calls that wait.
func prepareWake() {
	const saRestart = 0x10000000 // asm-generic/signal-defs.h
	act := actionOf(wakeSignal)
	act.flags &^= saRestart
	setAction(wakeSignal, &act)
}

// open lets others ask, where that is wanted and possible, until the returned function is called.
func (a *asks) open(s *session) (stop func()) {
	if !s.opt.Control {
		return func() {}
	}
	stop, err := a.control()
	if err != nil {
		s.log.Debug().Err(err).Msg("no snapshots can be asked for")
		return func() {}
	}
	return stop
}

// listen has signals, Options.Stop and Options.For end the recording of a process that is attached
// to, until the returned function is called. A second SIGINT stops the writing.
func (a *asks) listen(s *session) (stop func()) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, append(byRuntime(), unix.SIGPIPE, unix.SIGTTIN, wakeSignal)...) // none is to end the recorder by itself
	prepareWake()
	endRaw := watchRaw(&s.relay)
	done := make(chan struct{})
	var over <-chan time.Time
	if s.opt.For > 0 {
		over = time.After(s.opt.For)
	}
	asked := s.opt.Stop
	go func() {
		for {
			select {
			case sig := <-ch:
				switch sig {
				case unix.SIGINT:
					s.out.interrupt()
					fallthrough
				case unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT:
					a.ask(&request{why: whyStopped})
				}
			case <-asked:
				a.ask(&request{why: whyStopped})
				asked = nil
			case <-over:
				a.ask(&request{why: whyTimeOver})
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(ch)
		endRaw()
		close(done)
	}
}

// begin has what is asked wait for a thread that takes note of it.
func (a *asks) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = false
}

// serve says which thread takes note of what is asked: 0 when nothing can be asked any more.
func (a *asks) serve(tracer int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tracer, a.ended = tracer, tracer == 0
	if !a.ended {
		return
	}
	for _, r := range a.queue {
		r.end(ErrOver)
	}
	a.queue = nil
}

// end tells whoever has asked what became of it.
func (r *request) end(err error) {
	if r.done != nil {
		r.done <- err
	}
}

// ask queues a request.
func (a *asks) ask(r *request) {
	r.taken = make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		r.end(ErrOver)
		return
	}
	a.queue = append(a.queue, r)
	go a.wake(r.taken)
}

// snapshot has what is recorded by now written to path, and waits until that is done.
func (a *asks) snapshot(path string) error {
	r := &request{path: path, done: make(chan error, 1)}
	a.ask(r)
	return <-r.done
}

// wake wakes the tracer's thread until it has taken note.
func (a *asks) wake(taken chan struct{}) {
	for {
		a.mu.Lock()
		ended := a.ended
		if a.tracer != 0 {
			_ = unix.Tgkill(os.Getpid(), a.tracer, wakeSignal) // it fails only for one that has ended
		}
		a.mu.Unlock()
		select {
		case <-taken:
			return
		case <-time.After(wakeAgain):
			if ended {
				return
			}
		}
	}
}

// take returns what is asked.
func (a *asks) take() []*request {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.queue
	a.queue = nil
	for _, r := range list {
		close(r.taken)
	}
	return list
}

// waitOrAsked waits for a stop or end of the thread, or of any for 0, or for a request: then it returns 0.
func waitOrAsked(tid int) (int, unix.WaitStatus, error) {
	if tid != 0 {
		return ptrace.WaitOnce(tid)
	}
	return ptrace.WaitAnyOnce()
}

// onAsked does what was asked of the tracer's thread. Its end of the recording is errDetach.
func (s *session) onAsked() error {
	if s.asks == nil {
		return nil
	}
	list := s.asks.take()
	for i, r := range list {
		if r.written != nil {
			s.finishLive(r.written)
			continue
		}
		if r.why != "" {
			for _, late := range list[i+1:] {
				late.end(ErrOver)
			}
			return s.endAsked(r.why)
		}
		s.beginLive(r)
	}
	s.goOnLive()
	return nil
}

// endAsked ends the recording, writes what is to be kept, and lets all go.
func (s *session) endAsked(why string) error {
	s.answering = nil
	s.endLive(ErrOver)
	if s.opt.UntilCrash && s.opt.Keep != KeepAlways {
		why = ""
	}
	s.result.Detached = !s.first.over
	if err := s.endOthers(nil, why); err != nil {
		return err
	}
	if err := s.awaitLeaving(); err != nil {
		return err
	}
	if s.out.open() {
		if err := s.finish(); err != nil {
			s.failed(err) // everything is let go already
		}
	}
	return errDetach
}
