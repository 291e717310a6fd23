//go:build linux && amd64

package record

import (
	"errors"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// thread is one thread (a tid): its registers, the call that it is in, and the signals
// that are its own. Its methods answer the stops that it comes to.
type thread struct {
	session *session
	proc    *process

	tid      int
	affinity unix.CPUSet // that it would have
	name     string      // PR_SET_NAME
	regs     ptrace.Regs // at the current stop
	regsRead bool        // at the stop that is answered
	call     call
	sig      signalState
	parked   parked

	scratch         abi.Range        // where the kernel writes while the thread waits
	lastRedirection *abi.Redirection // of its last call that waited

	rseq        ptrace.Rseq     // that is taken from it while it is recorded, no Area for none
	interrupted interruptedCall // by the stop at which it was attached to
	jobStopped  bool            // by job control, when it was attached to

	block    *threadAgent // where the agent keeps its own, nil for none
	patience patience

	listened    bool        // its calls may wait for who listens to its seccomp filter (listeners.go)
	tscRuns     bool        // RDTSC does not fault in it
	agent       bool        // it runs under the agent, or did so up to the stop that is answered
	placing     bool        // it was under the agent, and is not where it is in the program yet
	aside       aside       // where it is kept instead
	led         bool        // its RDTSC was to go on in a stub (leadTSC)
	redo        bool        // it makes a call again, which the agent has left to the recorder
	atSync      bool        // the stop that was answered last is one that the log can name
	starting    bool        // it has not left clone yet
	leaves      bool        // it is let go at its next stop
	exiting     bool        // it is in exit(2), and others stay
	atExitEvent bool        // its last stop is answered
	dead        bool        // it has come to PTRACE_EVENT_EXIT
	ended       bool        // it has gone
	clearTID    uint64      // the word that the kernel clears at its end, 0 for none
	robust      uint64      // its struct robust_list_head, 0 for none
	exitWords   []abi.Range // what the kernel may write at its end
}

func (t *thread) space() *space { return t.proc.space }
func (t *thread) group() *group { return t.proc.space.group }

// readRegs reads the registers of the stop that the thread is at, as the program has them: one with a
// block of the agent's has 0 as its base of GS.
func (t *thread) readRegs() error {
	err := t.session.source.getRegs(t.tid, &t.regs)
	t.regsRead = t.regsRead || err == nil
	if t.block != nil && t.regs.Gs_base == t.block.gsBase() {
		t.regs.Gs_base = 0
	}
	if t.aside.is() && t.regs.Rip == t.aside.stub {
		t.regs.Rip = t.aside.rip
	}
	return err
}

// setRegs sets the thread's registers; t.regs stays.
func (t *thread) setRegs(r *ptrace.Regs) error {
	own := t.withBlock(r)
	return t.session.source.setRegs(t.tid, &own)
}

// withBlock returns registers of the program's as the kernel is to have them.
func (t *thread) withBlock(r *ptrace.Regs) ptrace.Regs {
	own := *r
	if t.block != nil && r.Gs_base == 0 {
		own.Gs_base = t.block.gsBase()
	}
	if t.aside.is() && r.Rip == t.aside.rip {
		own.Rip = t.aside.stub
	}
	return own
}

// pending returns the signals that are queued for the thread, blocked or not.
func (t *thread) pending() uint64 { return t.session.source.pending(t.tid) }

// call is the system call the thread is in.
type call struct {
	in          bool
	nr          int64
	args        [6]uint64
	entry       ptrace.Regs // as the program made it
	patched     bool        // arguments were replaced for the kernel
	given       ptrace.Regs // what it has then
	answered    bool        // the kernel does not run it: answer is the result
	answer      int64
	pending     bool                  // the exit is seen but how it ends is the next stop's business
	targets     []target              // files that it may change
	maps        fileID                // the file that it maps
	before      map[uint64][]byte     // a file write's entry: mapped pages of its file
	gap         bool                  // effects cannot be listed: a new interval starts at the exit
	sharing     bool                  // the child it made goes on sharing the program's memory
	shown       []checkpoint.MemWrite // pages that a new view of an object shows, changed since they were kept
	refill      ranges                // private pages of changed files that it may drop
	exec        bool
	replaced    bool             // the image of the execve is in place
	executes    string           // the name given to execve(2)
	joined      bool             // it brought processes together that share memory
	mayBlock    bool             // it may wait for another thread
	redirection *abi.Redirection // it writes to scratch memory
	overAgent   bool             // memory for stubs is, or was, where it acts
	byAgent     bool             // the agent has made it, with the program's own arguments
	thread      *thread          // that it has made
	entering    bool             // it is logged, and waits for the turn before it is made
	tries       bool             // it is made so that it does not wait, and again when it need not
	pipe        *os.File         // what it waits for meanwhile
	remote      *remoteWrite     // it writes to the memory of another process
	views       []fileView       // of other processes, of the files that it may change
	toOwnMem    bool             // it writes to the program's own memory, at ownMem
	ownMem      uint64
	since       time.Time // when it was entered, for time-outs
	mem         callMem
	vectors     []abi.Write // what names its buffers, as it was at its entry
}

// blocks reports whether the kernel is to run a call that may wait for another thread.
func (c *call) blocks() bool { return c.in && c.mayBlock && !c.answered && !c.gap }

// Bits of rflags. RF belongs to fault delivery. TF is the program's own: what a single step of the tracer has set the kernel does not
// show (linux arch/x86/kernel/ptrace.c, get_flags).
const (
	flagTF = 1 << 8
	flagDF = 1 << 10
	flagRF = 1 << 16
)

// noteNoXState logs that the thread's extended state could not be read. One that was killed meanwhile
// has none any more, and needs none.
func (t *thread) noteNoXState(err error) {
	level := zerolog.ErrorLevel
	if errors.Is(err, unix.ESRCH) {
		level = zerolog.DebugLevel
	}
	t.session.log.WithLevel(level).Err(err).Int("tid", t.tid).Msg("extended state")
}

// context returns the thread's state at the current stop.
func (t *thread) context() checkpoint.Context {
	c := checkpoint.Context{TID: checkpoint.TID(t.tid), Regs: regsOf(&t.regs), OrigRAX: -1, Name: t.name}
	c.Regs.RFLAGS &^= flagRF
	if t.call.in || t.call.pending { // its exit is to be logged yet
		c.InCall, c.OrigRAX = true, t.call.nr
		c.Regs = t.replayed() // not what the kernel was given, nor what execve has put in their place
	}
	if !c.InCall || c.OrigRAX != unix.SYS_RT_SIGRETURN { // which may have restored it already, as its exit tells, unless a signal killed the thread
		c.XState = t.xstate()
	}
	return c
}

// xstate returns the extended state of a thread that is at a stop. One that has just been killed there cannot be
// read on its way to PTRACE_EVENT_EXIT, and there it can.
func (t *thread) xstate() []byte {
	x, err := t.session.source.getXState(t.tid)
	for end := time.Now().Add(exitLimit); errors.Is(err, unix.ESRCH) && !hasEnded(t.tid) && time.Now().Before(end); time.Sleep(callTick) {
		x, err = t.session.source.getXState(t.tid)
	}
	if err != nil {
		t.noteNoXState(err)
	}
	return x
}

// exitLimit is how long that way may take.
const exitLimit = time.Second
