//go:build linux && amd64

package record

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What is asked of the tracer's thread while it waits for stops: to end the recording. A thread
// that waits in wait4(2) is woken by a signal, whose handler has no SA_RESTART. The signal is sent again until the
// thread has taken note, since it may come right before the call.

// asks is what other goroutines want of the tracer's thread.
type asks struct {
	mu     sync.Mutex
	tracer int           // the thread, 0 for none
	why    string        // recording is to end, because of this; "" for not
	taken  chan struct{} // closed when the thread has taken note
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

// listen has signals, Options.Stop and Options.For end the recording, until the returned function is called.
// A second SIGINT stops the writing.
func (a *asks) listen(s *session) (stop func()) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, wakeSignal)
	act := actionOf(wakeSignal)
	restarts := act
	const saRestart = 0x10000000 // asm-generic/signal-defs.h
	act.flags &^= saRestart
	setAction(wakeSignal, &act)
	endRaw := watchRaw(&s.relay)
	a.taken = make(chan struct{})
	done := make(chan struct{})
	var over <-chan time.Time
	if s.opt.For > 0 {
		over = time.After(s.opt.For)
	}
	go func() {
		for {
			select {
			case sig := <-ch:
				if sig != wakeSignal {
					s.out.interrupt()
					a.end(whyStopped)
				}
			case <-s.opt.Stop:
				a.end(whyStopped)
				s.opt.Stop = nil
			case <-over:
				a.end(whyTimeOver)
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(ch)
		endRaw()
		setAction(wakeSignal, &restarts)
		close(done)
	}
}

// serve says which thread takes note of what is asked: 0 when nothing can be asked any more.
func (a *asks) serve(tracer int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tracer = tracer
}

// end asks for the end of the recording.
func (a *asks) end(why string) {
	a.mu.Lock()
	first := a.why == ""
	if first {
		a.why = why
	}
	a.mu.Unlock()
	if first {
		go a.wake()
	}
}

// wake wakes the tracer's thread until it has taken note.
func (a *asks) wake() {
	for {
		a.mu.Lock()
		tracer := a.tracer
		if tracer != 0 {
			_ = unix.Tgkill(os.Getpid(), tracer, wakeSignal) // it fails only for one that has ended
		}
		a.mu.Unlock()
		select {
		case <-a.taken:
			return
		case <-time.After(wakeAgain):
			if tracer == 0 {
				return
			}
		}
	}
}

// take returns why the recording is to end, "" where it is not.
func (a *asks) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == "" {
		return ""
	}
	select {
	case <-a.taken:
		return ""
	default:
		close(a.taken)
	}
	return a.why
}

// onAsked does what was asked of the tracer's thread. Its end of the recording is errDetach.
func (s *session) onAsked() error {
	if s.attach == nil {
		return nil
	}
	why := s.attach.asks.take()
	if why == "" {
		return nil
	}
	s.answering = nil
	keeps := ""
	if !s.opt.UntilCrash || s.opt.Keep == KeepAlways {
		keeps = why
	}
	s.result.Detached = !s.first.over
	if err := s.endOthers(nil, keeps); err != nil {
		return err
	}
	if err := s.awaitUnrecorded(); err != nil {
		return err
	}
	if s.out.open() {
		if err := s.finish(); err != nil {
			s.failed(err) // everything is let go already
		}
	}
	return errDetach
}
