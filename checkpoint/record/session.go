//go:build linux && amd64

package record

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// session is one recording in progress. All of it, and all that it leads to, belongs to
// the tracer's thread, except the groups' timers and the relay, which have their own mutexes.
type session struct {
	opt    Options
	source stopSource
	log    zerolog.Logger
	ctx    context.Context
	result Result
	done   bool // the recording is over; only the program's end is awaited

	relay     relay
	inherited inheritance     // of the program
	threads   map[int]*thread // by tid
	groups    []*group
	scheduler scheduler
	shadows   map[int]*shadow         // by pid, until they are reaped
	early     map[int]unix.WaitStatus // of children that stopped before the call that made them

	manifest checkpoint.Manifest
	out      *output
	objects  objectStore
}

func newSession(ctx context.Context, opt Options) *session {
	out := &output{}
	return &session{
		opt: opt, source: ptraceSource{}, log: opt.Logger, ctx: ctx, out: out, objects: newObjectStore(out),
		threads: map[int]*thread{}, scheduler: newScheduler(opt),
		shadows: map[int]*shadow{}, early: map[int]unix.WaitStatus{},
	}
}

// newThread returns the first thread of a new process in a group of its own.
func (s *session) newThread(pid int) *thread {
	g := &group{session: s}
	p := &process{session: s, space: newSpace(g, pid), pid: pid, live: pid}
	t := &thread{session: s, proc: p, tid: pid}
	g.procs = append(g.procs, p)
	g.turns.threads = []*thread{t}
	s.groups = append(s.groups, g)
	s.threads[pid] = t
	return t
}

// errGone says that the program no longer exists.
var errGone = errors.New("the program has gone")

// Run records one program from start to end and returns when it has ended.
// A program that could not be started is a *StartError. Any other error
// says that the recorder failed; the program's end is in Result all the same.
// When ctx ends, writing stops, the recording is given up, and the program
// runs on unrecorded.
func Run(ctx context.Context, opt Options) (Result, error) {
	opt.setDefaults()
	if len(opt.Args) == 0 {
		return Result{}, &StartError{Code: 127, Err: errors.New("no program given")}
	}
	prog, err := lookProgram(opt.Args[0], opt.Dir)
	if err != nil {
		return Result{}, err
	}
	s := newSession(ctx, opt)
	if opt.Chaos {
		s.noteOnce(fmt.Sprintf("chaos, seed %d", opt.ChaosSeed))
	}
	s.inherited = inherited()
	s.relay.interrupt = s.out.interrupt
	defer s.relay.start()()
	errc := make(chan error, 1)
	go func() {
		// Never unlocked: the thread is pinned, and must end with the goroutine.
		runtime.LockOSThread()
		errc <- s.run(prog)
	}()
	err = <-errc
	return s.result, err
}

// run is the life of the tracer thread.
func (s *session) run(prog string) error {
	t, err := s.start(prog)
	if err != nil {
		return err
	}
	t.group().timer.start(s.source, s.opt)
	defer t.group().timer.stop()
	s.relay.program(t.proc.pid)
	defer s.relay.program(0)
	defer s.cleanup()
	if s.opt.Started != nil {
		s.opt.Started(t.proc.pid)
	}
	err = s.loop(t)
	switch {
	case err == nil, errors.Is(err, errGone):
		return nil
	case errors.Is(err, errDetach):
		s.dropIntervals() // the program may run on for long
		return t.proc.waitDetached()
	}
	s.log.Debug().Err(err).Msg("recording failed")
	s.result.Reason, s.result.Err = err.Error(), err
	s.abandon()
	if has := t.group().turns.has; has != nil {
		t = has
	}
	if derr := t.detach(); derr == nil {
		s.dropIntervals()
		if werr := t.proc.waitDetached(); werr != nil {
			return werr
		}
	}
	return fmt.Errorf("record: %w", err)
}

// loop has the threads run, from the stop that first is at, and answers their stops, whichever
// thread comes to one, until none is left.
func (s *session) loop(first *thread) error {
	first.group().pass(first)
	if err := first.goOn(action{}); err != nil {
		return err
	}
	for {
		tid, ws, err := s.wait()
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		switch t := s.threads[tid]; {
		case t != nil:
			err = t.onWait(ws)
		case tid != 0:
			s.notOurs(tid, ws)
		default:
			err = s.runReady()
		}
		if err != nil && !s.goesOn(err) {
			return err
		}
	}
}

// goesOn reports whether err is the end of a thread that leaves others behind.
func (s *session) goesOn(err error) bool { return errors.Is(err, errGone) && len(s.threads) > 0 }

// wait waits for the next stop, or end, of a thread; while threads are held back, for a while
// only, and then returns 0. The kernel looks at every shadow when it
// is asked for any: with a hundred of them that is a tenth of what a system call costs.
func (s *session) wait() (int, unix.WaitStatus, error) {
	if len(s.threads) == 1 {
		for tid := range s.threads {
			ws, err := s.source.wait(tid)
			return tid, ws, err
		}
	}
	if s.heldBack() {
		tid, ws, err := s.source.pollAny()
		if tid == 0 {
			time.Sleep(heldBackTick)
		}
		return tid, ws, err
	}
	return s.source.waitAny()
}

// notOurs takes a stop or an end of what is traced and is no thread of the program's: a
// shadow that was killed, or a child whose making is not known yet.
func (s *session) notOurs(tid int, ws unix.WaitStatus) {
	if sh := s.shadows[tid]; sh == nil {
		s.early[tid] = ws
	} else if !ws.Stopped() {
		sh.reaped = true
		delete(s.shadows, tid)
	}
}

// waitChild waits for the first stop, or the end, of a child that the program has made.
func (s *session) waitChild(pid int) (unix.WaitStatus, error) {
	if ws, ok := s.early[pid]; ok {
		delete(s.early, pid)
		return ws, nil
	}
	return ptrace.Wait(pid, 0)
}

// onEnd notes how the program has ended.
func (s *session) onEnd(ws unix.WaitStatus) {
	s.relay.program(0)
	s.result.setEnd(ws)
	s.lateEnd()
}

// setEnd sets the exit code, as a shell has it, and the signal.
func (r *Result) setEnd(ws unix.WaitStatus) {
	if ws.Exited() {
		r.ExitCode = ws.ExitStatus()
		return
	}
	r.Signal = int(ws.Signal())
	r.ExitCode = 128 + r.Signal
}

// lateEnd is for a program that went without a stop at which its end could be
// recorded.
func (s *session) lateEnd() {
	if !s.done {
		s.done = true
		s.abandon()
		if s.result.Reason == "" {
			s.result.Reason = "the program was gone before its end could be recorded"
		}
	}
}

// cleanup frees what the recorder holds: descriptors and shadows.
func (s *session) cleanup() {
	s.dropIntervals()
	s.abandon()
	s.sweep()
	for _, g := range s.groups {
		for _, p := range g.procs {
			p.space.close()
		}
	}
}

// dropIntervals gives up what is recorded and not written, and what holds its memory.
func (s *session) dropIntervals() {
	for _, g := range s.groups {
		g.close()
	}
	for pid, sh := range s.shadows {
		sh.reap()
		delete(s.shadows, pid)
	}
}

// noteOnce adds a note to the recording's manifest.
func (s *session) noteOnce(note string) {
	if !slices.Contains(s.manifest.Notes, note) {
		s.manifest.Notes = append(s.manifest.Notes, note)
		s.log.Info().Msg(note)
	}
}

// endEarly notes why recording ends before the program does, and says it.
func (s *session) endEarly(reason string) {
	s.result.Reason = reason
	s.noteOnce(reason)
	if s.opt.Ended != nil {
		s.opt.Ended(reason, s.opt.Keep == KeepAlways)
	}
}

// abandon gives the recording up.
func (s *session) abandon() { s.out.abort() }
