//go:build linux && amd64

package record

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// How a program that runs already is recorded. All its threads are seized and stopped
// (seize.go), what execve does for a new program is done for it (attachthread.go, vdso.go,
// rseq.go), and its first interval begins with each thread where it stands: one that waited in
// a call is before its SYSCALL instruction, and makes it again. From there on nothing differs
// from a program that was started. The end, when it is asked for, is in asks.go.

// attachment is what a session that attaches has besides.
type attachment struct {
	pid int
}

// Attach records the program that runs as process pid, until it ends, or until that is asked
// for: when Options.For has passed, Stop is closed, or the recorder gets a signal that asks it
// to end. Then what is recorded is written, unless Options.UntilCrash says otherwise, and the
// program is let go as it was. A program that cannot be attached to is a *StartError, and is not
// changed. Args, Env, Dir, Files, Launcher and Vsyscall of opt are not used.
func Attach(ctx context.Context, pid int, opt Options) (Result, error) {
	opt.setDefaults()
	opt.Args, opt.Vsyscall = nil, false
	asks := opt.Handle.queue()
	defer asks.serve(0) // whatever comes of it, nobody waits for an answer
	if err := attachable(pid); err != nil {
		return Result{}, err
	}
	s := newSession(ctx, opt)
	s.attach, s.asks = &attachment{pid: pid}, asks
	s.relay.started = make(chan struct{})
	defer s.asks.listen(s)()
	defer s.asks.open(s)()
	errc := make(chan error, 1)
	go func() {
		// Never unlocked: the thread is pinned, and whatever it still traces is let go with it.
		runtime.LockOSThread()
		errc <- s.runAttached()
	}()
	err := <-errc
	return s.close(), err
}

// runAttached is the life of the tracer thread.
func (s *session) runAttached() error {
	s.asks.serve(unix.Gettid())
	defer s.asks.serve(0)
	s.reserved.Do(reserveForRecorder)
	s.startGuard()
	defer func() { s.guard.end() }()
	t, err := s.seizeProgram(s.attach.pid)
	if err != nil {
		return err
	}
	s.ticker.start(s.opt)
	defer s.ticker.stop()
	defer s.cleanup()
	if err = t.beginAttached(); err == nil {
		if s.opt.Started != nil {
			s.opt.Started(t.proc.pid)
		}
		err = s.loop(t)
	}
	if ends(err) {
		return nil
	}
	s.fail(err)
	_ = s.letAllGo() // what is left is let go with the thread
	var r *refusal
	if errors.As(err, &r) {
		return attachError(s.attach.pid, err)
	}
	return fmt.Errorf("record: %w", err)
}

// beginAttached starts the recording of the process whose threads are seized; t is its first.
func (t *thread) beginAttached() error {
	g, p, sp := t.group(), t.proc, t.space()
	if err := sp.open(); err != nil {
		return err
	}
	if err := sp.readModel(); err != nil {
		return err
	}
	sp.image = 1
	sp.readForkAdvice()
	sp.noteExecImplied()
	if err := t.prepareThreads(); err != nil {
		return err
	}
	end, err := t.callOnce(unix.SYS_BRK, 0)
	if err != nil {
		return err
	}
	sp.brk = uint64(end)
	list, err := sp.kernelMaps() // a step may have made the stack grow
	if err != nil {
		return err
	}
	sp.maps.adopt(list)
	if p.about.Auxv, err = readAuxv(p.pid); err != nil {
		return err
	}
	if err := p.describe(); err != nil {
		return err
	}
	p.wanted = t.session.wantsExec(p.pid, "")
	t.session.noteOnce("recording began when vplayd attached to the running program")
	if t.session.opt.Keep == KeepAlways {
		if err := t.session.out.create(t.session.opt.Path); err != nil {
			return err
		}
	}
	if err := sp.keepInherited(sp); err != nil {
		return err
	}
	sp.findStorers()
	if err := t.bringAgentAttached(); err != nil {
		return err
	}
	m, err := sp.takeSnapshot()
	if err != nil {
		return err
	}
	return g.startInterval(t, m, g.contexts(t))
}

// bringAgentAttached brings the agent into the program, where it may be, with a block for each thread. All are stopped where calls
// can be injected: threads that were not recorded from their start get no block later.
func (t *thread) bringAgentAttached() error {
	s, sp := t.session, t.space()
	if !sp.allowsAgent() {
		return nil
	}
	if err := t.bringAgent(); err != nil || sp.agent == nil {
		return err
	}
	for _, o := range t.group().turns.threads {
		if o == t {
			continue
		}
		if err := o.bringBlock(); err != nil {
			return fmt.Errorf("thread %d: %w", o.tid, err)
		}
		if o.block == nil {
			s.noteOnce("a thread got no memory of the agent's, and makes its calls with stops")
		}
	}
	return nil
}

// prepareThreads does for each thread, once all are stopped, what execve and clone do.
func (t *thread) prepareThreads() error {
	g, sp := t.group(), t.space()
	for _, o := range g.turns.threads { // before any call is injected
		if err := o.leaveKernel(); err != nil {
			return err
		}
	}
	if err := sp.findVDSO(); err != nil {
		return err
	}
	traps, err := t.proc.dispositionOf(int(unix.SIGTRAP))
	if err != nil {
		return err
	}
	for _, o := range g.turns.threads {
		if err := o.leaveVDSO(); err != nil {
			return err
		}
		if err := ptrace.SetOptions(o.tid, t.session.options()); err != nil {
			return err
		}
	}
	if err := sp.patchVDSO(); err != nil {
		return err
	}
	if err := t.readActions(); err != nil {
		return err
	}
	if err := t.ignoreAgain(int(unix.SIGTRAP), traps); err != nil {
		return err
	}
	for _, o := range g.turns.threads {
		if err := o.prepareAttached(); err != nil {
			return fmt.Errorf("thread %d: %w", o.tid, err)
		}
	}
	return t.handleSegv()
}

// findStorers looks for processes that have mapped what the program has, and may store there.
func (sp *space) findStorers() {
	var ops []checkpoint.MapOp
	for _, m := range sp.maps.all() {
		if m.private() || m.Object == 0 {
			continue
		}
		ops = append(ops, checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: m.Start, End: m.End, Map: m.Mapping})
		o := sp.objects.at(m.Object)
		if o.Path == sharedAnonymous && m.Prot&checkpoint.ProtWrite != 0 && sp.session.storerOf(fileID{o.Dev, o.Inode}) != 0 {
			sp.session.strangers = true
			sp.noteSharers()
		}
	}
	sp.noteStorers(ops)
}
