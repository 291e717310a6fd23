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
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// tracer is one recording in progress. All of it belongs to the tracer thread,
// except preempt and relay, which have their own mutexes.
type tracer struct {
	opt    Options
	log    zerolog.Logger
	ctx    context.Context
	result Result
	done   bool // the recording is over; only the program's end is awaited

	pid      int
	mem      int // /proc/PID/mem, -1 before the first execve
	pmap     pagemapReader
	origMask unix.CPUSet // affinity that the program would have
	pinned   unix.CPUSet
	site     uint64 // address of a SYSCALL instruction in the vdso
	vdso     uint64 // its start
	image    uint32 // number of execves

	regs       unix.PtraceRegs // at the current stop
	call       call
	sig        signalState
	trap       trapState
	preempt    preempt
	relay      relay
	inherited  inheritance // of the program
	maps       mapModel
	spacing    time.Duration // CPU time until the next border
	brk        uint64
	readExec   bool // PROT_READ means PROT_EXEC too
	objs       objectTable
	stamps     map[[2]uint64]stamp // of mapped files, by device and inode
	fileDone   map[pageKey]bool
	filePend   []objectPage
	wholeBytes uint64 // kept by keepWhole
	accDirty   ranges // dirty pages seen before forks of the program, since the last shadow
	moved      ranges // pages remapped since the last shadow

	manifest  checkpoint.Manifest
	cur       *live
	ring      []*live // crash: intervals before cur, oldest first
	nextID    uint32
	out       *output
	noShadow  bool // clones are refused: copy instead
	artefact  []checkpoint.Artefact
	prev      *live   // the interval before, between close and open
	between   *moment // the memory between them, while a border is made
	unwritten bool    // prev is not in the file yet
	execEnd   *pendingEnd
	forcedAt  []time.Time    // the last forced ends
	reaped    sync.WaitGroup // of killed shadows
	// outside holds the shared pages that others may write as they were at the
	// last call's exit; nil while there are no others.
	outside      map[uint64][]byte
	outsideFresh bool // the program has not run since
	// sharedNow holds the pages that a fork would not hold, at the current
	// interval's start.
	sharedNow map[uint64][]byte
	// zapped are pages of objects that were in the page tables of a shared mapping
	// and that a call has removed from there.
	zapped map[pageKey]struct{}
	// sharedBase holds the pages of objects as they were when mapped shared.
	sharedBase map[pageKey][]byte
	// holes are the pages of objects that had no data when they were mapped shared, and
	// missing is how many bytes were there that were not read.
	holes   map[uint32]ranges
	missing map[uint32]uint64
	// logged holds the pages of private mappings that the log, not the program,
	// has written in this interval: their content at its start, nil for zero.
	logged map[uint64][]byte
}

// call is the system call the program is in.
type call struct {
	in       bool
	nr       int64
	args     [6]uint64
	entry    unix.PtraceRegs // as the program made it
	patched  bool            // arguments were replaced for the kernel
	answered bool            // the kernel does not run it: answer is the result
	answer   int64
	pending  bool                  // the exit is seen but how it ends is the next stop's business
	before   map[uint64][]byte     // a file write's entry: mapped pages of its file
	gap      bool                  // effects cannot be listed: a new interval starts at the exit
	sharing  bool                  // the child it made goes on sharing the program's memory
	shown    []checkpoint.MemWrite // pages that a new view of an object shows, changed since they were kept
	refill   ranges                // private pages of changed files that it may drop
	exec     bool
	toOwnMem bool // it writes to the program's own memory, at ownMem
	ownMem   uint64
	since    time.Time // when it was entered, for time-outs
	mem      callMem
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
	t := &tracer{opt: opt, log: opt.Logger, ctx: ctx, mem: -1, out: &output{}, fileDone: map[pageKey]bool{}, stamps: map[[2]uint64]stamp{}, sharedBase: map[pageKey][]byte{}}
	t.pmap.fd = -1
	t.inherited = inherited()
	t.relay.interrupt = t.out.interrupt
	defer t.relay.start()()
	errc := make(chan error, 1)
	go func() {
		// Never unlocked: the thread is pinned, and must end with the goroutine.
		runtime.LockOSThread()
		errc <- t.run(prog)
	}()
	err = <-errc
	return t.result, err
}

// run is the life of the tracer thread.
func (t *tracer) run(prog string) (err error) {
	if err := t.start(prog); err != nil {
		return err
	}
	t.preempt.start(t.pid, t.opt)
	defer t.preempt.stop()
	t.relay.program(t.pid)
	defer t.relay.program(0)
	defer t.cleanup()
	if t.opt.Started != nil {
		t.opt.Started(t.pid)
	}
	err = t.loop()
	switch {
	case err == nil, errors.Is(err, errGone):
		return nil
	case errors.Is(err, errDetach):
		return t.waitDetached()
	}
	t.log.Debug().Err(err).Msg("recording failed")
	t.result.Reason, t.result.Err = err.Error(), err
	t.abandon()
	if derr := t.detach(); derr == nil {
		if werr := t.waitDetached(); werr != nil {
			return werr
		}
	}
	return fmt.Errorf("record: %w", err)
}

// start makes the launcher, seizes it, and brings it to the end of execve.
func (t *tracer) start(prog string) error {
	fail := func(err error, hint string) error {
		return &StartError{Program: t.opt.Args[0], Code: 125, Err: err, Hint: hint}
	}
	r, w, err := socketPair()
	if err != nil {
		return fail(err, "")
	}
	defer func() { _ = w.Close() }() // its end is news to nobody
	passed, closePassed := passedOn(len(t.opt.Files))
	files := slices.Concat(t.opt.Files, passed, []*os.File{r})
	args := append(append([]string{}, t.opt.Launcher...), strconv.Itoa(len(files)-1), prog)
	proc, err := os.StartProcess(t.opt.Launcher[0], append(args, t.opt.Args...), &os.ProcAttr{
		Dir: t.opt.Dir, Env: t.startEnv(prog), Files: files,
	})
	_ = r.Close() // the launcher has its own
	closePassed()
	if err != nil {
		return fail(err, "")
	}
	t.pid = proc.Pid
	if err := proc.Release(); err != nil {
		return fail(err, "")
	}
	kill := func() {
		_ = unix.Kill(t.pid, unix.SIGKILL) // it may be gone, which is as good
		_, _ = waitPID(t.pid, 0)
	}
	// The launcher says when it runs: seized in the midst of its own execve, its
	// exec event would be taken for the program's.
	if _, err := w.Read(make([]byte, 1)); err != nil {
		kill()
		return fail(errors.New("the launcher did not start"), "")
	}
	if err := ptraceSeize(t.pid, launcherOptions); err != nil {
		kill()
		return fail(fmt.Errorf("ptrace: %w", err), "ptrace is forbidden here: see kernel.yama.ptrace_scope, or a container's seccomp profile")
	}
	if err := t.pin(); err != nil {
		kill()
		return fail(fmt.Errorf("sched_setaffinity: %w", err), "")
	}
	if _, err := w.Write(t.inherited.encode()); err != nil {
		kill()
		return fail(err, "")
	}
	ws, err := t.untilExec()
	if err != nil {
		kill()
		return fail(err, "")
	}
	if ws.Exited() {
		why := make([]byte, 200)
		n, _ := w.Read(why) // at its end when the launcher said nothing
		return &StartError{
			Program: t.opt.Args[0], Code: 126, Err: fmt.Errorf("cannot be executed: %s", why[:n]),
			Hint: "is it a program for this machine, or a script with a valid #! line?",
		}
	}
	if err := t.onExec(); err != nil {
		kill()
		return fail(err, "")
	}
	return nil
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
func (t *tracer) untilExec() (unix.WaitStatus, error) {
	for {
		ws, err := waitPID(t.pid, 0)
		if err != nil || ws.Exited() || ws.Signaled() {
			return ws, err
		}
		sig := uintptr(0)
		switch int(ws>>16) & 0xff { // the event
		case unix.PTRACE_EVENT_EXEC:
			return ws, nil
		case 0:
			sig = uintptr(ws.StopSignal())
		}
		if err := ptraceRaw(unix.PTRACE_CONT, t.pid, 0, sig); err != nil {
			return ws, err
		}
	}
}

// pin puts the program and the tracer thread on one CPU: a stop between CPUs
// costs 20 times more.
func (t *tracer) pin() error {
	if err := unix.SchedGetaffinity(t.pid, &t.origMask); err != nil {
		return err
	}
	cpu, err := currentCPU()
	if err != nil || !t.origMask.IsSet(cpu) {
		for cpu = 0; !t.origMask.IsSet(cpu) && cpu < 1024; cpu++ {
		}
	}
	t.pinned.Zero()
	t.pinned.Set(cpu)
	if err := unix.SchedSetaffinity(0, &t.pinned); err != nil {
		return err
	}
	return unix.SchedSetaffinity(t.pid, &t.pinned)
}

// currentCPU returns the number of the CPU the calling thread is on.
func currentCPU() (int, error) {
	var cpu uint32
	err := getcpuRaw(&cpu)
	return int(cpu), err
}

// resume lets the program run to its next stop. user says that it will run its
// own code, so that the timer may interrupt it.
func (t *tracer) resume(req int, sig uintptr, user bool) (unix.WaitStatus, error) {
	t.outsideFresh = false
	t.preempt.enter(user)
	ws, err := resumePID(req, t.pid, sig)
	t.preempt.leave()
	return ws, err
}

// loop resumes the program and answers its stops until it has gone.
func (t *tracer) loop() error {
	var sig uintptr
	req := unix.PTRACE_SYSCALL
	for {
		ws, err := t.resume(req, sig, !t.call.in && !t.call.pending && req == unix.PTRACE_SYSCALL)
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		for again := true; again; {
			req = unix.PTRACE_SYSCALL
			var next action
			if next, err = t.answer(ws); err != nil {
				if next, err = t.salvage(err); err != nil {
					return err
				}
			}
			if next.req != 0 {
				req = next.req
			}
			sig = uintptr(next.sig)
			ws, again = next.status, next.status != 0
		}
	}
}

// salvage is for a program that was killed while the recorder had it do
// something or looked at it: at PTRACE_EVENT_EXIT its memory is still there, and
// its registers are those of the last stop. Other errors are returned.
func (t *tracer) salvage(err error) (action, error) {
	ws, killed := t.killed(err)
	if !killed {
		return action{}, err
	}
	if !ws.Stopped() || int(ws>>16)&0xff != unix.PTRACE_EVENT_EXIT || t.done {
		return action{status: ws}, nil
	}
	msg, err := eventMsg(t.pid)
	if err != nil {
		return action{}, err
	}
	if t.cur == nil {
		return t.crashBetween(int(msg & 0x7f))
	}
	if _, err := t.crash(int(msg&0x7f), nil, !t.call.in); err != nil {
		return action{}, err
	}
	return action{}, nil
}

// killed says whether an error comes from the program's end, and then at what
// stop, or how, it ended.
func (t *tracer) killed(err error) (unix.WaitStatus, bool) {
	var gone *goneError
	if errors.As(err, &gone) {
		return gone.ws, true
	}
	if errors.Is(err, unix.ESRCH) {
		// On its way there: requests find no stopped program.
		ws, werr := waitPID(t.pid, 0)
		return ws, werr == nil
	}
	return pollPID(t.pid)
}

// crashBetween writes the recording of a program that was killed between two
// intervals: the one before ends with the crash.
func (t *tracer) crashBetween(sig int) (action, error) {
	err := errors.New("killed before its first interval")
	if t.prev != nil {
		end := &t.prev.rec.End
		end.Kind, end.Signo = checkpoint.EndCrash, int32(sig)
		t.manifest.Crash, t.manifest.Signo = true, int32(sig)
		err = t.finishBetween(sig)
	}
	if err != nil {
		t.log.Debug().Err(err).Msg("recording not written")
		t.result.Reason, t.result.Err = err.Error(), err
		t.abandon()
	}
	t.done = true
	t.preempt.off()
	return action{}, nil
}

func (t *tracer) finishBetween(sig int) error {
	m := t.between
	if m == nil {
		var err error
		if m, err = t.look(); err != nil {
			return err
		}
	}
	final := &checkpoint.Final{Maps: t.maps.mappings(), Contexts: t.prev.rec.End.Contexts, Signo: int32(sig)}
	if err := t.write(m, final); err != nil {
		return err
	}
	t.result.Recorded, t.result.Path = true, t.opt.Path
	return nil
}

// action is what an answered stop wants next.
type action struct {
	req    int             // ptrace request to resume with; 0 is PTRACE_SYSCALL
	sig    int             // signal to deliver
	status unix.WaitStatus // when not 0: the program is already in this next stop
}

// answer handles one stop.
func (t *tracer) answer(ws unix.WaitStatus) (action, error) {
	switch {
	case ws.Exited():
		t.onExited(ws.ExitStatus())
		return action{}, errGone
	case ws.Signaled():
		t.onKilled(int(ws.Signal()))
		return action{}, errGone
	case !ws.Stopped():
		return action{}, fmt.Errorf("unexpected wait status %#x", uint32(ws))
	}
	sig := int(ws>>8) & 0xff
	switch event := int(ws>>16) & 0xff; event {
	case 0:
		if sig == int(unix.SIGTRAP)|0x80 {
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
	case ptraceEventStop:
		return t.onGroupStop(sig)
	default:
		return action{}, nil
	}
}

// onSyscallStop tells entry from exit.
func (t *tracer) onSyscallStop() (action, error) {
	if err := getRegs(t.pid, &t.regs); err != nil {
		return action{}, err
	}
	if t.done {
		return action{}, nil
	}
	if t.call.in {
		return t.onExit()
	}
	return t.onEntry()
}

// onExited and onKilled note the program's end.
func (t *tracer) onExited(code int) {
	t.relay.program(0)
	t.result.ExitCode = code
	t.lateEnd()
}

func (t *tracer) onKilled(sig int) {
	t.relay.program(0)
	t.result.Signal = sig
	t.result.ExitCode = 128 + sig
	t.lateEnd()
}

// lateEnd is for a program that went without a stop at which its end could be
// recorded.
func (t *tracer) lateEnd() {
	if !t.done {
		t.done = true
		t.abandon()
		if t.result.Reason == "" {
			t.result.Reason = "the program was gone before its end could be recorded"
		}
	}
}

// onGroupStop handles PTRACE_EVENT_STOP: a stop by job control, or its end.
func (t *tracer) onGroupStop(sig int) (action, error) {
	switch unix.Signal(sig) {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		if unix.Signal(sig) != unix.SIGSTOP {
			stopWithJob()
		}
		return action{req: reqListen}, nil
	default:
		return action{}, nil
	}
}

// stopWithJob stops the recorder too, so that the shell sees its job stopped.
// It returns when the job is continued.
func stopWithJob() {
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // one may always stop oneself
}

// cleanup frees what the tracer holds: descriptors and shadows.
func (t *tracer) cleanup() {
	for _, iv := range t.ring {
		iv.close()
	}
	if t.cur != nil {
		t.cur.close()
	}
	t.ring, t.cur = nil, nil
	t.prev.close()
	t.abandon()
	t.reaped.Wait()
	t.sweep()
	t.closeProc()
}

func (t *tracer) closeProc() {
	if t.mem >= 0 {
		_ = unix.Close(t.mem) // nothing is buffered
	}
	if t.pmap.fd >= 0 {
		_ = unix.Close(t.pmap.fd) // only read
	}
	t.mem, t.pmap.fd = -1, -1
}
