//go:build linux && amd64

package record

import (
	"os"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// What becomes of the program when the recorder is killed outright. Its threads run from the moment
// that their tracer is gone, as they stand: in a call that was injected, with instructions that
// fault, on one CPU. So beside the recorder there is a guardian, another process of this same
// executable, which then stops them and gives them back what is their own (guardian.go). What that
// is the recorder writes to a journal in memory that both have mapped, before each change.

// GuardVerb is the hidden verb of the default guardian.
const GuardVerb = "__guard"

// undo is what the journal says of a thread. The entry is written by the tracer's thread alone; the
// guardian reads it when that has ended.
type undo struct {
	tid      atomic.Int32 // 0 for an entry that is free
	pid      int32
	ownTSC   bool // the program itself has made RDTSC fault
	ownCPUID bool
	segv     uint64 // the handler that takes SIGSEGV in the program, 0 for its own action
	agent    uint64 // where the agent of the process is, 0 for none
	site     uint64 // where it makes calls for the recorder, 0 for nowhere
	healer   bool   // it has SIGSYS's action
	affinity unix.CPUSet
	rseq     ptrace.Rseq
	scratch  abi.Range
	held     uint64 // signals that are held back, signal n at bit n-1
	listens  bool   // job control has stopped the thread

	// The signal at whose delivery the thread is, 0 for none, and what came with it: when the recorder has waited for that stop the
	// kernel has forgotten the signal, and gives it to the thread only where the recorder says so as it has the thread go on.
	arrived     atomic.Uint32
	arrivedInfo ptrace.Siginfo

	// The thread makes calls for the recorder: its own registers, and its mask where that is changed, too.
	borrowed atomic.Uint32
	depth    int
	regs     ptrace.Regs
	mask     uint64
	copies   atomic.Uint32 // one of the calls makes a copy of the process

	// The kernel was given other arguments of its call, or another call, than the program has made.
	patched  atomic.Uint32
	entry    ptrace.Regs // as the program made it
	answered bool        // the kernel runs nothing: answer is the result
	answer   int64
}

// Values of undo.borrowed.
const (
	regsBorrowed = 1 + iota
	maskBorrowed // and the registers
)

// maxUndo bounds the threads that the guardian knows of. Pages of the journal that are not used take no memory.
const maxUndo = 1 << 15

// robustEntries is how many entries the list of the tracer's thread has, of the 2,048 that the kernel looks at
// (ROBUST_LIST_LIMIT of linux/futex.h).
const robustEntries = 2000

// robustEntry is an entry of a list of robust futexes, and its futex.
type robustEntry struct {
	next uint64
	word atomic.Uint32
	_    uint32
}

// robustHead is the kernel's struct robust_list_head (linux/futex.h).
type robustHead struct{ list, offset, pending uint64 }

// journal is the memory that the recorder and the guardian share.
type journal struct {
	done       atomic.Uint32 // the recording has ended in order, and nothing is to be done
	recorder   atomic.Int32
	tracer     atomic.Int32  // the thread that traces
	tsc, cpuid atomic.Uint32 // RDTSC, and CPUID, are made to fault
	halts      atomic.Uint32 // by HLT, where nothing else has RDTSC fault
	herald     atomic.Int32  // a child of the guardian that does the most urgent, 0 for none
	heralded   atomic.Uint32 // not 0: the herald is on watch. It changes when that has seen the recorder's end

	// A list of robust futexes (man 2 set_robust_list) that the tracer's thread owns. At its end the kernel walks it before it
	// lets the tracees go, marks the first, and wakes the guardian, which waits for that. The other
	// entries are there for the time that they take: in it the guardian sends each tracee a SIGSTOP, so
	// that it executes no instruction of its own.
	head    robustHead
	entries [robustEntries]robustEntry

	// Likewise of the sentry, a thread of the recorder that does nothing but to die with it, as soon as a CPU is to be had.
	sentryHead robustHead
	sentry     robustEntry

	used  atomic.Int32 // entries of undos up to the last that was ever in use
	undos [maxUndo]undo
}

// guard is the recorder's side: its methods do nothing for nil.
type guard struct {
	journal *journal
	mapped  []byte
	proc    *os.Process
	scope   string        // kernel.yama.ptrace_scope
	over    chan struct{} // closed to end the sentry
	undos   map[int]*undo // by thread
	free    []*undo
}

// startGuard starts the guardian of the calling thread, which is the tracer's, where Options.Guardian
// names one. A recording goes on without.
func (s *session) startGuard() {
	if len(s.opt.Guardian) == 0 {
		return
	}
	g, err := newGuard(s.opt.Guardian)
	if err != nil {
		s.log.Warn().Err(err).Msg("no guardian: if vplayd is killed by SIGKILL, the program may not go on as if it had not been recorded")
		return
	}
	s.guard, s.source = g, ptraceSource{g}
}

// newGuard starts a guardian by a command.
func newGuard(command []string) (*guard, error) {
	fd, err := unix.MemfdCreate("vplay guardian", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "journal")
	defer file.Close() // what is mapped stays
	mapped, j, err := newJournal(fd)
	if err != nil {
		return nil, err
	}
	self, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return nil, err
	}
	pidfd := os.NewFile(uintptr(self), "recorder")
	defer pidfd.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	j.recorder.Store(int32(unix.Getpid()))
	j.tracer.Store(int32(unix.Gettid()))
	if err := j.own(); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	if err := j.post(over); err != nil {
		disown()
		close(over)
		return nil, err
	}
	proc, err := os.StartProcess(command[0], guardCommand(command), &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, null, file, pidfd},
		Sys: &unix.SysProcAttr{Setsid: true}, // what is meant for the recorder's group or terminal is not for it
	})
	if err != nil {
		disown()
		close(over)
		return nil, err
	}
	hurry(proc.Pid) // it does so itself, but had to wait for a CPU first
	return &guard{journal: j, mapped: mapped, proc: proc, scope: readScope(), over: over, undos: map[int]*undo{}}, nil
}

// end tells the guardian that nothing is to be done any more, and waits for its end. The calling thread is the tracer's.
func (g *guard) end() {
	if g == nil {
		return
	}
	g.journal.done.Store(1)
	disown()
	close(g.over)
	g.journal.tell()
	_, _ = g.proc.Wait() // it may have been killed, which is as good
	g.undos, g.free, g.journal = nil, nil, nil
	_ = unix.Munmap(g.mapped) // it is what was mapped
}

// yamaRestricted is the value of kernel.yama.ptrace_scope with which only ancestors may trace a process, and whom it
// allows to (Documentation/admin-guide/LSM/Yama.rst).
const yamaRestricted = "1"

// readScope returns kernel.yama.ptrace_scope, nothing where the kernel has no Yama.
func readScope() string {
	b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// admit has the thread's process allow the guardian to trace it, which is none of its ancestors. A child does not
// inherit that. The thread is at a stop where calls can be injected.
func (t *thread) admit() error {
	const setPtracer = 0x59616d61 // PR_SET_PTRACER of linux/prctl.h
	g := t.session.guard
	if g == nil || g.scope != yamaRestricted {
		return nil
	}
	_, err := t.callOnce(unix.SYS_PRCTL, setPtracer, uint64(g.proc.Pid)) // where it is refused the guardian may have CAP_SYS_PTRACE
	return err
}

// traps notes that RDTSC, with halts by HLT, and with cpuid CPUID, is made to fault from now on.
func (g *guard) traps(halts, cpuid bool) {
	if g == nil {
		return
	}
	g.journal.tsc.Store(1)
	if halts {
		g.journal.halts.Store(1)
	}
	if cpuid {
		g.journal.cpuid.Store(1)
	}
}

// of returns the entry of a thread, nil for one that has none.
func (g *guard) of(tid int) *undo {
	if g == nil {
		return nil
	}
	return g.undos[tid]
}

// add returns an entry for a thread that has none yet; nil where there is no room.
func (g *guard) add(tid int) *undo {
	var u *undo
	switch n := g.journal.used.Load(); {
	case len(g.free) > 0:
		u, g.free = g.free[len(g.free)-1], g.free[:len(g.free)-1]
	case n < maxUndo:
		u = &g.journal.undos[n]
		g.journal.used.Store(n + 1)
		if n == 1 {
			nudge(&g.journal.sentry.word) // at first the guardian waits for this, too
		}
	default:
		return nil
	}
	g.undos[tid] = u
	return u
}

// drop forgets a thread that has ended, or that has its own again.
func (g *guard) drop(tid int) {
	if u := g.of(tid); u != nil {
		u.tid.Store(0)
		delete(g.undos, tid)
		g.free = append(g.free, u)
	}
}

// drop takes a thread out of those that are recorded.
func (s *session) drop(tid int) {
	delete(s.threads, tid)
	s.guard.drop(tid)
}

// note writes what is the thread's own to the journal. It is called before that is changed.
func (t *thread) note() {
	g := t.session.guard
	if g == nil || g.journal == nil || t.session.threads[t.tid] != t { // it has ended, or is let go
		return
	}
	u := g.of(t.tid)
	if u == nil {
		if u = g.add(t.tid); u == nil {
			return
		}
		u.depth = 0
		u.borrowed.Store(0)
		u.copies.Store(0)
		u.patched.Store(0)
		u.arrived.Store(0)
	}
	u.pid, u.affinity, u.rseq, u.scratch = int32(t.proc.pid), t.affinity, t.rseq, t.scratch
	u.ownTSC, u.ownCPUID, u.segv = t.proc.trap.ownTSC, t.proc.trap.ownCPUID, t.proc.trap.handler
	u.agent, u.site = t.space().agentAt(), t.space().site
	u.healer = u.agent != 0 && t.space().agent.sigsys == ofAgent
	u.setHeld(t.sig.held)
	u.tid.Store(int32(t.tid))
}

// note writes what is its own of each thread of the process.
func (p *process) note() {
	for _, t := range p.space.group.turns.threads {
		if t.proc == p {
			t.note()
		}
	}
}

// noteHeld writes which signals are held back for the thread.
func (t *thread) noteHeld() { t.session.guard.of(t.tid).setHeld(t.sig.held) }

func (u *undo) setHeld(list []heldSignal) {
	if u == nil {
		return
	}
	u.held = 0
	for _, h := range list {
		u.held |= 1 << (h.signo - 1)
	}
}

// lend notes the registers of a thread that is about to make calls for the recorder, and its mask where
// that is changed, too. returned says that it has them again.
func (u *undo) lend(how uint32, regs *ptrace.Regs, mask uint64) {
	if u == nil {
		return
	}
	if u.depth++; u.depth > 1 { // by what has borrowed it already, with the program's own
		return
	}
	u.regs, u.mask = *regs, mask
	u.borrowed.Store(how)
}

func (u *undo) returned() {
	if u == nil || u.depth == 0 {
		return
	}
	u.copies.Store(0)
	if u.depth--; u.depth == 0 {
		u.borrowed.Store(0)
	}
}

// copy notes that one of the calls that the thread makes for the recorder makes a copy of its process.
func (u *undo) copy() {
	if u != nil {
		u.copies.Store(1)
	}
}

// arrives notes that the thread is at the delivery of a signal.
func (u *undo) arrives(sig int, si *ptrace.Siginfo) {
	if u == nil {
		return
	}
	u.arrived.Store(0)
	u.arrivedInfo = *si
	u.arrived.Store(uint32(sig))
}

// delivered notes that the thread has gone on, with the signal or without it.
func (u *undo) delivered() {
	if u != nil {
		u.arrived.Store(0)
	}
}

// resumed notes that the thread goes on from a stop, or with listens stays stopped by job control. inCall says that it is
// inside a call.
func (u *undo) resumed(listens, inCall bool) {
	if u == nil {
		return
	}
	u.listens = listens
	if !inCall && u.patched.Load() != 0 { // what the call has written is where the program wants it
		u.patched.Store(0)
	}
}

// patch notes that the kernel is given something else than the program's call, until the thread goes on behind it.
func (u *undo) patch(c *call) {
	if u != nil {
		u.entry, u.answered, u.answer = c.entry, c.answered, c.answer
		u.patched.Store(1)
	}
}

// shield has a thread that is at the delivery of a signal live on if the recorder is killed: the kernel would
// deliver the signal, which is not the program's, unless it is blocked. The registers are those before the
// instruction that has caused it.
func (t *thread) shield() error {
	u := t.session.guard.of(t.tid)
	if u == nil {
		return nil
	}
	own := t.withBlock(&t.regs)
	u.lend(maskBorrowed, &own, t.sig.mask)
	return t.session.source.setSigmask(t.tid, ^uint64(0))
}

// unshield undoes that.
func (t *thread) unshield() error {
	u := t.session.guard.of(t.tid)
	if u == nil {
		return nil
	}
	defer u.returned()
	return t.session.source.setSigmask(t.tid, t.sig.mask)
}

// post starts the sentry, which is over when that is closed.
func (j *journal) post(over chan struct{}) error {
	posted := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := j.ownSentry()
		hurry(0)
		posted <- err
		<-over
		disown()
	}()
	return <-posted
}

// hurry has a thread, 0 for the calling one, run as soon as it has something to do, before all others where that is allowed, else
// before those that have had their share. What it makes does not inherit that.
func hurry(tid int) {
	const resetOnFork, fifo = 1, 1 // SCHED_FLAG_RESET_ON_FORK, SCHED_FIFO of linux/sched.h
	if unix.SchedSetAttr(tid, &unix.SchedAttr{Policy: fifo, Priority: 1, Flags: resetOnFork}, 0) != nil {
		const slice = 100_000 // nanoseconds, of Linux 6.12: who asks for less gets it sooner
		_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Flags: resetOnFork, Runtime: slice}, 0)
	}
}

// unhurry undoes that.
func unhurry() { _ = unix.SchedSetAttr(0, &unix.SchedAttr{}, 0) }

// isOver reports whether the sentry or the tracer's thread has ended, or there is nothing more to do.
func (j *journal) isOver() bool {
	return j.done.Load() != 0 || (j.sentry.word.Load()|j.entries[0].word.Load())&futexOwnerDied != 0
}

// Bits of a robust futex (linux/futex.h).
const (
	futexWaiters   = 0x80000000
	futexOwnerDied = 0x40000000
)
