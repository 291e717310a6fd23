//go:build linux && amd64

package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

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
	t.group().preempt.start(t, s.opt)
	defer t.group().preempt.stop()
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
		return t.proc.waitDetached()
	}
	s.log.Debug().Err(err).Msg("recording failed")
	s.result.Reason, s.result.Err = err.Error(), err
	s.abandon()
	if derr := t.detach(); derr == nil {
		if werr := t.proc.waitDetached(); werr != nil {
			return werr
		}
	}
	return fmt.Errorf("record: %w", err)
}

// start makes the launcher, seizes it, and brings it to the end of execve.
func (s *session) start(prog string) (*thread, error) {
	fail := func(err error, hint string) (*thread, error) {
		return nil, &StartError{Program: s.opt.Args[0], Code: 125, Err: err, Hint: hint}
	}
	r, w, err := socketPair()
	if err != nil {
		return fail(err, "")
	}
	defer func() { _ = w.Close() }() // its end is news to nobody
	passed, closePassed := passedOn(len(s.opt.Files))
	files := slices.Concat(s.opt.Files, passed, []*os.File{r})
	args := append(append([]string{}, s.opt.Launcher...), strconv.Itoa(len(files)-1), prog)
	proc, err := os.StartProcess(s.opt.Launcher[0], append(args, s.opt.Args...), &os.ProcAttr{
		Dir: s.opt.Dir, Env: s.startEnv(prog), Files: files,
	})
	_ = r.Close() // the launcher has its own
	closePassed()
	if err != nil {
		return fail(err, "")
	}
	t := s.newThread(proc.Pid)
	if err := proc.Release(); err != nil {
		return fail(err, "")
	}
	kill := func() {
		_ = unix.Kill(t.proc.pid, unix.SIGKILL) // it may be gone, which is as good
		_, _ = ptrace.Wait(t.tid, 0)
	}
	// The launcher says when it runs: seized in the midst of its own execve, its
	// exec event would be taken for the program's.
	if _, err := w.Read(make([]byte, 1)); err != nil {
		kill()
		return fail(errors.New("the launcher did not start"), "")
	}
	if err := ptrace.Seize(t.tid, launcherOptions); err != nil {
		kill()
		return fail(fmt.Errorf("ptrace: %w", err), "ptrace is forbidden here: see kernel.yama.ptrace_scope, or a container's seccomp profile")
	}
	if err := s.pin(t); err != nil {
		kill()
		return fail(fmt.Errorf("sched_setaffinity: %w", err), "")
	}
	if _, err := w.Write(s.inherited.encode()); err != nil {
		kill()
		return fail(err, "")
	}
	ws, err := s.untilExec(t)
	if err != nil {
		kill()
		return fail(err, "")
	}
	if ws.Exited() {
		why := make([]byte, 200)
		n, _ := w.Read(why) // at its end when the launcher said nothing
		return nil, &StartError{
			Program: s.opt.Args[0], Code: 126, Err: fmt.Errorf("cannot be executed: %s", why[:n]),
			Hint: "is it a program for this machine, or a script with a valid #! line?",
		}
	}
	if err := t.onExec(); err != nil {
		kill()
		return fail(err, "")
	}
	return t, nil
}

// socketPair returns two ends of a stream: the launcher's and the recorder's.
func socketPair() (launcher, recorder *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "launcher"), os.NewFile(uintptr(fds[1]), "recorder"), nil
}

// untilExec runs the launcher up to the exec stop, or to its exit.
func (s *session) untilExec(t *thread) (unix.WaitStatus, error) {
	for {
		ws, err := ptrace.Wait(t.tid, 0)
		if err != nil || ws.Exited() || ws.Signaled() {
			return ws, err
		}
		sig := 0
		switch ptrace.Event(ws) { // the event
		case unix.PTRACE_EVENT_EXEC:
			return ws, nil
		case 0:
			sig = int(ws.StopSignal())
		}
		if err := ptrace.Resume(t.tid, ptrace.Cont, sig); err != nil {
			return ws, err
		}
	}
}

// pin puts the program and the tracer thread on one CPU: a stop between CPUs
// costs 20 times more.
func (s *session) pin(t *thread) error {
	if err := unix.SchedGetaffinity(t.tid, &t.affinity); err != nil {
		return err
	}
	cpu, err := currentCPU()
	if err != nil || !t.affinity.IsSet(cpu) {
		for cpu = 0; !t.affinity.IsSet(cpu) && cpu < 1024; cpu++ {
		}
	}
	t.group().cpu.Zero()
	t.group().cpu.Set(cpu)
	if err := unix.SchedSetaffinity(0, &t.group().cpu); err != nil {
		return err
	}
	return unix.SchedSetaffinity(t.tid, &t.group().cpu)
}

// currentCPU returns the number of the CPU the calling thread is on.
func currentCPU() (int, error) {
	var cpu uint32
	err := getcpuRaw(&cpu)
	return int(cpu), err
}

// resume lets the program run to its next stop. user says that it will run its
// own code, so that the timer may interrupt it.
func (t *thread) resume(req ptrace.Request, sig int, user bool) (unix.WaitStatus, error) {
	t.space().outsideFresh = false
	t.group().preempt.enter(user)
	ws, err := resumePID(req, t.tid, sig)
	t.group().preempt.leave()
	return ws, err
}

// loop resumes the program and answers its stops until it has gone.
func (s *session) loop(t *thread) error {
	sig := 0
	req := ptrace.Syscall
	for {
		ws, err := t.resume(req, sig, !t.call.in && !t.call.pending && req == ptrace.Syscall)
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		for again := true; again; {
			req = ptrace.Syscall
			var next action
			if next, err = t.answer(ws); err != nil {
				if next, err = t.salvage(err); err != nil {
					return err
				}
			}
			if next.req != 0 {
				req = next.req
			}
			sig = next.sig
			ws, again = next.status, next.status != 0
		}
	}
}

// salvage is for a program that was killed while the recorder had it do
// something or looked at it: at PTRACE_EVENT_EXIT its memory is still there, and
// its registers are those of the last stop. Other errors are returned.
func (t *thread) salvage(err error) (action, error) {
	ws, killed := t.killed(err)
	if !killed {
		return action{}, err
	}
	if !ws.Stopped() || ptrace.Event(ws) != unix.PTRACE_EVENT_EXIT || t.session.done {
		return action{status: ws}, nil
	}
	msg, err := ptrace.EventMessage(t.tid)
	if err != nil {
		return action{}, err
	}
	if t.group().cur == nil {
		return t.group().crashBetween(int(msg & 0x7f))
	}
	if _, err := t.crash(int(msg&0x7f), nil, !t.call.in); err != nil {
		return action{}, err
	}
	return action{}, nil
}

// killed says whether an error comes from the program's end, and then at what
// stop, or how, it ended.
func (t *thread) killed(err error) (unix.WaitStatus, bool) {
	var gone *goneError
	if errors.As(err, &gone) {
		return gone.ws, true
	}
	if errors.Is(err, unix.ESRCH) {
		// On its way there: requests find no stopped program.
		ws, werr := ptrace.Wait(t.tid, 0)
		return ws, werr == nil
	}
	return ptrace.Poll(t.tid)
}

// crashBetween writes the recording of a program that was killed between two
// intervals: the one before ends with the crash.
func (g *group) crashBetween(sig int) (action, error) {
	err := errors.New("killed before its first interval")
	if g.prev != nil {
		end := &g.prev.rec.End
		end.Kind, end.Signo = checkpoint.EndCrash, int32(sig)
		g.session.manifest.Crash, g.session.manifest.Signo = true, int32(sig)
		err = g.finishBetween(sig)
	}
	if err != nil {
		g.session.log.Debug().Err(err).Msg("recording not written")
		g.session.result.Reason, g.session.result.Err = err.Error(), err
		g.session.abandon()
	}
	g.session.done = true
	g.preempt.off()
	return action{}, nil
}

func (g *group) finishBetween(sig int) error {
	m := g.between
	if m == nil {
		var err error
		if m, err = g.prev.space.look(); err != nil {
			return err
		}
	}
	final := &checkpoint.Final{Maps: g.prev.space.maps.mappings(), Contexts: g.prev.rec.End.Contexts, Signo: int32(sig)}
	if err := g.write(m, final); err != nil {
		return err
	}
	g.session.result.Recorded, g.session.result.Path = true, g.session.opt.Path
	return nil
}

// action is what an answered stop wants next.
type action struct {
	req    ptrace.Request  // ptrace request to resume with; 0 is PTRACE_SYSCALL
	sig    int             // signal to deliver
	status unix.WaitStatus // when not 0: the program is already in this next stop
}

// answer handles one stop.
func (t *thread) answer(ws unix.WaitStatus) (action, error) {
	switch {
	case ws.Exited():
		t.session.onExited(ws.ExitStatus())
		return action{}, errGone
	case ws.Signaled():
		t.session.onKilled(int(ws.Signal()))
		return action{}, errGone
	case !ws.Stopped():
		return action{}, fmt.Errorf("unexpected wait status %#x", uint32(ws))
	}
	sig := int(ptrace.StopSignal(ws))
	switch event := ptrace.Event(ws); event {
	case 0:
		if sig == int(ptrace.SyscallTrap) {
			return t.onSyscallStop()
		}
		return t.onSignal(sig)
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		return action{}, t.onChild()
	case unix.PTRACE_EVENT_EXEC:
		return action{}, t.onExec()
	case unix.PTRACE_EVENT_EXIT:
		return t.onExitEvent()
	case unix.PTRACE_EVENT_SECCOMP:
		return t.onSeccomp()
	case ptrace.EventStop:
		return t.onGroupStop(sig)
	default:
		return action{}, nil
	}
}

// onSyscallStop tells entry from exit.
func (t *thread) onSyscallStop() (action, error) {
	if err := ptrace.GetRegs(t.tid, &t.regs); err != nil {
		return action{}, err
	}
	if t.session.done {
		return action{}, nil
	}
	if t.call.in {
		return t.onExit()
	}
	return t.onEntry()
}

// onExited and onKilled note the program's end.
func (s *session) onExited(code int) {
	s.relay.program(0)
	s.result.ExitCode = code
	s.lateEnd()
}

func (s *session) onKilled(sig int) {
	s.relay.program(0)
	s.result.Signal = sig
	s.result.ExitCode = 128 + sig
	s.lateEnd()
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

// onGroupStop handles PTRACE_EVENT_STOP: a stop by job control, or its end.
func (t *thread) onGroupStop(sig int) (action, error) {
	switch unix.Signal(sig) {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		if unix.Signal(sig) != unix.SIGSTOP {
			stopWithJob()
		}
		return action{req: ptrace.Listen}, nil
	default:
		return action{}, nil
	}
}

// stopWithJob stops the recorder too, so that the shell sees its job stopped.
// It returns when the job is continued.
func stopWithJob() {
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // one may always stop oneself
}

// cleanup frees what the recorder holds: descriptors and shadows.
func (s *session) cleanup() {
	for _, g := range s.groups {
		g.close()
	}
	s.abandon()
	s.reaped.Wait()
	s.sweep()
	for _, t := range s.threads {
		t.space().closeProc()
	}
}

func (sp *space) closeProc() {
	if sp.mem >= 0 {
		_ = unix.Close(sp.mem) // nothing is buffered
	}
	if sp.pmap.fd >= 0 {
		_ = unix.Close(sp.pmap.fd) // only read
	}
	sp.mem, sp.pmap.fd = -1, -1
}
