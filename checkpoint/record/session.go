//go:build linux && amd64

package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// session is one recording in progress. All of it, and all that it leads to, belongs to
// the tracer's thread, except the timers and the relay, which have their own mutexes.
type session struct {
	opt    Options
	attach *attachment // nil where the program was started
	asks   *asks       // nil where nothing can be asked
	live   *live       // nil where no snapshot has begun
	beside []*live     // those that are being written
	source stopSource
	guard  *guard // nil for none
	log    zerolog.Logger
	ctx    context.Context
	result Result
	border borderCost // of the one that is being made

	logMemory logMemory // of the agents'
	leases    leases
	tscFiles  tscFiles
	tsc       sessionTSC
	found     map[codeRange]*foundCode // what has to fault in files
	fsByStops bool                     // there is no FSGSBASE
	haltsTSC  bool                     // RDTSC has to be looked for in the code: nothing else has it fault

	clockOffset uint64 // of clock_gettime in the vDSO, 0 while nobody has looked

	reapers    bool // a process is or was one to which orphans come
	relay      relay
	inherited  inheritance     // of the program
	threads    map[int]*thread // by tid
	unrecorded map[int]int     // threads that are traced and not recorded; the process of each
	parents    map[int]int     // of these processes
	executing  map[int]string  // the names that such threads have given to execve(2)
	groups     []*group        // whose processes live
	scheduler  scheduler
	ticker     ticker
	polls      []int                   // threads that pollNext comes to
	shadows    map[int]*shadow         // by pid, until they are reaped
	early      map[int]unix.WaitStatus // of children that stopped before the call that made them
	// mayHaveOrphans says that a process that is not recorded was killed, perhaps with a new child
	// that nobody tells of.
	mayHaveOrphans bool
	servers        []*process // that serve files, as far as they are recorded
	answering      *thread    // whose stop is being answered
	ending         bool       // endOthers is under way: there is more to write
	late           []past     // what it leaves to write when the processes go on

	first    *process             // the program that was started
	crashed  *process             // the first that crashed
	manifest checkpoint.Manifest  // but for what it says of processes
	cpu      *checkpoint.Identity // see hostCPU
	cpuOf    *process             // whose CPU manifest.CPU is to say, once a recording is written; nil where it does
	out      *output
	written  []*process // that have intervals in the file, by the first of them

	leaving   bool      // the threads that are not recorded are being let go
	strangers bool      // there are, or were, children that are not recorded
	reserved  sync.Once // reserveForRecorder
	storers   storers
	kicked    bool // a turn is free that nobody's stop has freed

	lastObject uint32 // the highest number of an object
	intervals  uint32 // how many have been started
	began      int64  // the time from which events are numbered (order.go), 0 until there is a second process
}

func newSession(ctx context.Context, opt Options) *session {
	out := &output{builds: map[fileVersion]string{}}
	var source stopSource = ptraceSource{}
	if opt.source != nil {
		source = opt.source
	}
	return &session{
		opt: opt, source: source, haltsTSC: opt.NoTrapTSC || !TSCFaults(), fsByStops: opt.NoFSGSBase || !hasCPUFlag("fsgsbase"), log: opt.Logger, ctx: ctx, out: out,
		threads: map[int]*thread{}, unrecorded: map[int]int{}, parents: map[int]int{}, executing: map[int]string{}, scheduler: newScheduler(opt),
		shadows: map[int]*shadow{}, early: map[int]unix.WaitStatus{},
		result: Result{Stats: Stats{Stopped: map[int64]uint64{}}},
	}
}

// newThread returns the first thread of a new process in a group of its own.
func (s *session) newThread(pid int) *thread {
	p := &process{session: s, pid: pid, live: pid}
	t := &thread{session: s, proc: p, tid: pid}
	s.newGroup(t)
	s.threads[pid] = t
	if s.first == nil {
		s.first = p
	}
	return t
}

// newGroup gives a thread's process, which has no other thread, a group and an address space
// of its own.
func (s *session) newGroup(t *thread) {
	g := &group{session: s, timer: forceTimer{source: s.source, every: s.opt.ForceEvery}, objects: newObjectStore(s.out, &s.lastObject), of: t.proc, procs: []*process{t.proc}}
	t.proc.space = newSpace(g, t.proc.pid)
	g.turns.threads = []*thread{t}
	for _, o := range s.groups {
		if a := o.of.space.agent; a != nil {
			a.shared.ForbidWrites() // the new one may map what they write
		}
	}
	s.groups = append(s.groups, g)
	s.ticker.add(&g.timer)
}

// errGone says that the program no longer exists.
var errGone = errors.New("the program has gone")

// Run records one program from start to end and returns when it has ended.
// A program that could not be started is a *StartError. Any other error
// says that the recorder failed; the program's end is in Result all the same, and with KeepAlways
// what came before is kept, if it could be.
// When ctx ends, writing stops, the recording is given up, and the program
// runs on unrecorded.
func Run(ctx context.Context, opt Options) (Result, error) {
	opt.setDefaults()
	asks := opt.Handle.queue()
	defer asks.serve(0) // whatever comes of it, nobody waits for an answer
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
	s.asks = asks
	prepareWake()
	defer s.asks.open(s)()
	errc := make(chan error, 1)
	go func() {
		// Never unlocked: the thread is pinned, and must end with the goroutine.
		runtime.LockOSThread()
		errc <- s.run(prog)
	}()
	err = <-errc
	return s.close(), err
}

// close gives up what the recording has held, and returns what became of it. Its thread has ended.
func (s *session) close() Result {
	s.logMemory.close()
	s.leases.close()
	s.tscFiles.close()
	s.log.Debug().EmbedObject(&s.result.Stats).Msg("recording ended")
	return s.result
}

// run is the life of the tracer thread.
func (s *session) run(prog string) error {
	if s.opt.TimerSlack != 0 {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(s.opt.TimerSlack), 0, 0, 0) // it does not fail
	}
	s.startGuard()
	defer func() { s.guard.end() }()
	t, err := s.start(prog)
	if err != nil {
		return err
	}
	s.asks.serve(unix.Gettid())
	defer s.asks.serve(0)
	s.ticker.start(s.opt)
	defer s.ticker.stop()
	s.relay.program(t.proc.pid)
	defer s.relay.program(0)
	defer s.cleanup()
	if s.opt.Started != nil {
		s.opt.Started(t.proc.pid)
	}
	err = s.loop(t)
	s.endLive(ErrOver)
	s.asks.serve(0) // a program that was let go may run on for long, and who asks is told now
	if ends(err) {
		s.dropIntervals()
		return s.first.waitDetached()
	}
	s.fail(err)
	if derr := s.letAllGo(); derr == nil {
		s.dropIntervals()
		if werr := s.first.waitDetached(); werr != nil {
			return werr
		}
	}
	return fmt.Errorf("record: %w", err)
}

// ends reports whether err, of a thread's stop, says that a process has ended or was let go.
func ends(err error) bool { return err == nil || errors.Is(err, errGone) || errors.Is(err, errDetach) }

// loop has the threads run, from the stop that first is at, and answers their stops, whichever
// thread comes to one, until none is left.
func (s *session) loop(first *thread) error {
	if err := first.group().pass(first); err != nil {
		return err
	}
	if err := first.goOn(first.parked.next); err != nil {
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
			err = s.notOurs(tid, ws)
		default:
			err = s.runReady()
		}
		if err == nil || s.goesOn(err) {
			if aerr := s.onAsked(); aerr != nil {
				return aerr
			}
		}
		if s.kicked && (err == nil || s.goesOn(err)) {
			s.kicked = false
			if rerr := s.runReady(); rerr != nil && !s.goesOn(rerr) {
				return rerr
			}
		}
		if err != nil && !s.goesOn(err) {
			return err
		}
	}
}

// goesOn reports whether err is the end of a thread, or of a process's recording, that
// leaves others behind.
func (s *session) goesOn(err error) bool {
	return ends(err) && len(s.threads)+len(s.unrecorded) > 0
}

// wait waits for the next stop, or end, of a thread; while threads are held back, for a while
// only, and then returns 0. The kernel looks at every shadow when it
// is asked for any: with a hundred of them that is a tenth of what a system call costs.
func (s *session) wait() (int, unix.WaitStatus, error) {
	tid := s.onlyThread()
	if tid == 0 {
		if tid, ws := s.pollNext(); tid != 0 {
			return tid, ws, nil
		}
	}
	if s.heldBack() {
		tid, ws, err := s.source.pollAny()
		if tid == 0 {
			time.Sleep(heldBackTick)
		}
		return tid, ws, err
	}
	switch {
	case s.asks != nil:
		return waitOrAsked(tid)
	case tid != 0:
		ws, err := s.source.wait(tid)
		return tid, ws, err
	}
	return s.source.waitAny()
}

// pollNext returns the stop of one thread, each at its turn, or 0. The kernel looks at those first that are traced last: where
// they are always ready, as when a stop takes the recorder longer than the program needs to come to the next, it never
// comes to the others.
func (s *session) pollNext() (int, unix.WaitStatus) {
	if len(s.polls) == 0 {
		s.polls = slices.AppendSeq(slices.AppendSeq(s.polls, maps.Keys(s.threads)), maps.Keys(s.unrecorded))
	}
	last := len(s.polls) - 1
	if last < 0 {
		return 0, 0
	}
	tid := s.polls[last]
	s.polls = s.polls[:last]
	if ws, stopped := s.source.poll(tid); stopped {
		return tid, ws
	}
	return 0, 0
}

// onlyThread returns the thread where there is no more than one to wait for, else 0.
func (s *session) onlyThread() int {
	if len(s.threads) == 1 && len(s.unrecorded) == 0 && !s.mayHaveOrphans {
		for tid := range s.threads {
			return tid
		}
	}
	return 0
}

// notOurs takes a stop or an end of what is no thread that is recorded: a thread that is
// only traced, a shadow that was killed, the program after it was let go, or a child whose
// making is not known yet.
func (s *session) notOurs(tid int, ws unix.WaitStatus) error {
	if pid, ok := s.unrecorded[tid]; ok {
		return s.onUnrecorded(pid, tid, ws)
	}
	switch sh := s.shadows[tid]; {
	case sh != nil:
		if !ws.Stopped() {
			sh.reaped = true
			delete(s.shadows, tid)
		}
	case tid == s.first.pid && s.first.detached && !ws.Stopped():
		s.noteEnd(tid, ws)
	default:
		s.early[tid] = ws
		return s.letOrphansGo()
	}
	return nil
}

// noteEnd takes note of the end of a thread that is let go, or is about to be: the program's is
// the recorder's result.
func (s *session) noteEnd(tid int, ws unix.WaitStatus) {
	if tid == s.first.pid {
		s.first.over = true
		s.result.setEnd(ws)
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

// onEnd notes how the process has ended.
func (p *process) onEnd(ws unix.WaitStatus) {
	s, g := p.session, p.space.group
	if p == s.first {
		p.over = true
		s.relay.program(0)
		s.result.setEnd(ws)
	}
	if !g.shares() {
		g.lateEnd(p)
	}
	g.leave(p)
}

// recorded notes that a recording is whole.
func (r *Result) recorded(path string) {
	if r.Recorded {
		r.More = append(r.More, path)
		return
	}
	r.Recorded, r.Path = true, path
}

// setEnd sets the exit code and the signal.
func (r *Result) setEnd(ws unix.WaitStatus) {
	r.ExitCode = exitCode(ws)
	if ws.Signaled() {
		r.Signal = int(ws.Signal())
	}
}

// exitCode returns how a process or a thread has ended, as a shell has it.
func exitCode(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// lateEnd is for a process that went without a stop at which its end could be
// recorded.
func (g *group) lateEnd(p *process) {
	s := g.session
	if g.done {
		return
	}
	g.over()
	if s.intervals > 1 && p != s.first {
		s.noteOnce(fmt.Sprintf("process %d was gone before its end could be recorded", p.pid))
		return
	}
	s.abandon()
	if s.result.Reason == "" {
		s.result.Reason = "the program was gone before its end could be recorded"
	}
}

// cleanup frees what the recorder holds: descriptors and shadows.
func (s *session) cleanup() {
	s.endLive(ErrOver)
	s.finishBeside(nil)
	s.dropLate()
	s.dropIntervals()
	s.abandon()
	s.sweep()
	for _, g := range slices.Clone(s.groups) {
		for _, p := range slices.Clone(g.procs) {
			g.leave(p)
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
