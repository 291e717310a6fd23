package dap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// movement is what uses the target for longer: a continue, a step, a monitor
// command. It runs in a goroutine of its own, which has target and symbols until it
// has ended or is parked.
type movement struct {
	s   *session
	ctx context.Context // its end is that of the movement

	cancel context.CancelFunc
	run    func(ctx context.Context, m *movement) (api.Stop, error)
	finish func(stop api.Stop, err error) // on the session's goroutine
	began  bool
	asks   bool // it is a question, and may leave the target where it is
	from   string
	req    int    // the number of the request
	title  string // for who is shown how far it is
	told   func() (share float64, text string)
	shown  progress
	ended  chan struct{}
	stop   api.Stop
	err    error

	// yield asks a resume to park so that breakpoints can be set.
	yield  chan struct{}
	parked chan struct{}
	on     chan struct{}
	said   chan string
}

// begin makes f the movement that starts when the request has been answered.
func (s *session) begin(f func(ctx context.Context, m *movement) (api.Stop, error), finish func(api.Stop, error)) {
	m := &movement{
		s: s, run: f, finish: finish, ended: make(chan struct{}, 1),
		yield: make(chan struct{}, 1), parked: make(chan struct{}), on: make(chan struct{}), said: make(chan string),
	}
	m.from, m.shown.tick = s.where(), time.NewTicker(firstProgress)
	if t, ok := s.target.(api.ProgressTarget); ok {
		m.told = t.Progress()
	}
	m.ctx, m.cancel = context.WithCancel(s.ctx)
	s.move = m
}

// question makes the movement that has just begun a question: where the target stands
// afterwards as before, frames, variables and what was changed stay. The request's number can
// cancel it, and the title is shown while it takes long.
func (s *session) question(req *godap.Request, title string) {
	s.move.asks, s.move.req, s.move.title = true, req.Seq, title
}

// start starts it, once.
func (m *movement) start() {
	if m.began {
		return
	}
	m.began = true
	if !m.asks {
		m.s.undivert()
	}
	go func() {
		defer close(m.ended)
		defer func() {
			if p := recover(); p != nil {
				m.s.panicked("movement", p)
				m.stop, m.err = api.Stop{}, errInternal
			}
		}()
		m.stop, m.err = m.run(m.ctx, m)
	}()
}

// interrupt makes the movement let breakpoints be set. It does not wait: where the
// movement does not resume, or ends, the request is answered then.
func (m *movement) interrupt() {
	select {
	case m.yield <- struct{}{}:
	default:
	}
}

// resume moves the target. It parks in between when that is asked for.
func (m *movement) resume(r api.Resume) (api.Stop, error) {
	r.PassSignals, r.ExecEvents = m.s.pass, true
	for {
		ctx, cancel := context.WithCancel(m.ctx)
		done := make(chan struct{})
		var parks bool
		go func() {
			defer close(done)
			select {
			case <-m.yield:
				parks = true
				cancel()
			case <-ctx.Done():
			}
		}()
		stop, err := m.s.target.Resume(ctx, r)
		cancel()
		<-done
		if parks && m.ctx.Err() == nil {
			m.parked <- struct{}{}
			<-m.on
			if err == nil && stop.Kind == api.StopInterrupted {
				continue
			}
		}
		if stop.Kind == api.StopExec {
			m.s.follow()
			if stop.Note == "" {
				stop.Note = "vplay: the process executes " + stop.Program
			}
		}
		if stop.Note != "" {
			m.say(strings.TrimSuffix(stop.Note, "\n"))
		}
		return stop, err
	}
}

// say has the session show a text while the movement goes on. What nobody takes
// because the session is over is lost.
func (m *movement) say(text string) {
	select {
	case m.said <- text:
	case <-m.ctx.Done():
	}
}

// arrived is called when the movement has ended.
func (s *session) arrived() {
	m := s.move
	m.cancel()
	s.move = nil
	s.endProgress(m)
	s.guard("arrival", func() {
		s.moved = !m.asks || s.where() != m.from
		if s.moved {
			s.undivert()
			s.refresh()
		}
		clear(s.frames) // of memory that may be another
		m.finish(m.stop, m.err)
	})
	s.catchUp(false)
}

// catchUp answers the requests that waited: all, or those that set breakpoints.
func (s *session) catchUp(breaksOnly bool) {
	waiting := s.pending
	s.pending = nil
	for _, req := range waiting {
		if s.over {
			return
		}
		if breaksOnly && !requests[req.Command].breaks || s.move != nil && !breaksOnly {
			s.pending = append(s.pending, req)
			continue
		}
		data := s.raw[req]
		delete(s.raw, req)
		s.answer(req, data)
	}
}

// resume answers continue and reverseContinue.
func resume(dir api.Direction) func(*session, *godap.Request, []byte) (any, error) {
	return func(s *session, _ *godap.Request, raw []byte) (any, error) {
		if _, err := s.threadOf(raw); err != nil {
			return nil, err
		}
		s.begin(func(_ context.Context, m *movement) (api.Stop, error) { return m.toStop(dir) }, s.stopped)
		if dir == api.Forward {
			return godap.ContinueResponseBody{AllThreadsContinued: true}, nil
		}
		return nil, nil
	}
}

// threadOf returns the thread that a request names in its arguments.
func (s *session) threadOf(raw []byte) (int, error) {
	a, err := arguments[struct{ ThreadID int }](raw)
	if err != nil {
		return 0, err
	}
	return s.thread(a.ThreadID)
}

// toStop continues until something stops it for the client.
func (m *movement) toStop(dir api.Direction) (api.Stop, error) {
	for {
		stop, err := m.resume(api.Resume{Dir: dir, Kind: api.Continue})
		if err != nil || m.ctx.Err() != nil {
			return stop, err
		}
		if stop.Kind == api.StopExec {
			continue
		}
		if !isBreak(stop.Kind) || m.s.holds(&stop) {
			return stop, nil
		}
	}
}

// pause answers pause.
func pause(s *session, _ *godap.Request, _ []byte) (any, error) {
	if s.move != nil {
		s.move.cancel()
	}
	return nil, nil
}

// isBreak reports whether a stop is at a breakpoint or watchpoint.
func isBreak(k api.StopKind) bool {
	switch k {
	case api.StopBreakpoint, api.StopHWBreakpoint, api.StopWatchWrite, api.StopWatchRead, api.StopWatchAccess:
		return true
	default:
		return false
	}
}

// stopped tells the client that a movement has ended.
func (s *session) stopped(stop api.Stop, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.output("vplay: " + err.Error() + "\n")
	}
	if stop.Kind == api.StopNone {
		stop = s.target.Stop()
	}
	s.stop = stop
	s.tellStop()
}

// tellThreads tells the client which threads are there now and were not at the stop before,
// and the other way round, whichever way time ran. It asks for those of the first stop.
func (s *session) tellThreads() {
	now := map[int]bool{}
	for _, t := range s.threads {
		if now[t.TID] = true; s.told != nil && !s.told[t.TID] {
			s.event("thread", godap.ThreadEventBody{Reason: "started", ThreadId: t.TID})
		}
	}
	for tid := range s.told {
		if !now[tid] {
			s.event("thread", godap.ThreadEventBody{Reason: "exited", ThreadId: tid})
		}
	}
	s.told = now
}

// tellStop sends the stopped event for the present stop.
func (s *session) tellStop() {
	s.tellProgram()
	s.tellThreads()
	body := s.describe(s.stop)
	body.ThreadId, body.AllThreadsStopped = s.stop.TID, true
	if _, err := s.thread(s.stop.TID); err != nil && len(s.threads) > 0 {
		body.ThreadId = s.threads[0].TID
	}
	body.HitBreakpointIds = s.breaks.hit
	s.breaks.hit = nil
	s.event("stopped", body)
}

// describe says why the program stopped in the protocol's words.
func (s *session) describe(stop api.Stop) godap.StoppedEventBody {
	switch stop.Kind {
	case api.StopSignal, api.StopKilled:
		if stop.Signo == sigTRAP {
			return godap.StoppedEventBody{Reason: "entry", Description: "Paused in a recording"}
		}
		name := signalName(stop.Signo)
		return godap.StoppedEventBody{Reason: "exception", Description: "Signal " + name, Text: name}
	case api.StopBreakpoint, api.StopHWBreakpoint:
		return godap.StoppedEventBody{Reason: s.breaks.reason(), Description: "Paused on breakpoint"}
	case api.StopWatchWrite, api.StopWatchRead, api.StopWatchAccess:
		what := map[api.StopKind]string{api.StopWatchWrite: "written", api.StopWatchRead: "read", api.StopWatchAccess: "accessed"}[stop.Kind]
		return godap.StoppedEventBody{Reason: "data breakpoint", Description: "Paused on data breakpoint", Text: fmt.Sprintf("%#x is %s", stop.Addr, what)}
	case api.StopExec:
		return godap.StoppedEventBody{Reason: "entry", Description: "Paused in another program"}
	case api.StopReplayBegin:
		return godap.StoppedEventBody{Reason: "entry", Description: "Beginning of the recording"}
	case api.StopReplayEnd:
		return godap.StoppedEventBody{Reason: "pause", Description: "End of the recording"}
	case api.StopExited:
		return godap.StoppedEventBody{Reason: "pause", Description: fmt.Sprintf("End of the recording: the program exits with code %d", stop.Code)}
	case api.StopInterrupted:
		return godap.StoppedEventBody{Reason: "pause", Description: "Paused"}
	default:
		return godap.StoppedEventBody{Reason: "step", Description: "Paused"}
	}
}
