package checkpoint

// The log: what came in from outside while an interval ran. How an event is coded is in
// spec.go, as a table with a row for each kind; its text form is in text.go.

// EventKind names an entry of the log.
type EventKind uint8

// The events. Values are part of the format.
const (
	EventEnter  EventKind = 1 + iota // system call entry
	EventExit                        // system call exit
	EventSignal                      // a signal frame was built
	EventSched                       // switch to another thread
	EventInstr                       // result of a trapped instruction
	EventFault                       // synchronous exception
	EventGap                         // effects that could not be listed; the interval ends here
	EventEnd                         // the interval's last event
	EventThread                      // a thread starts or ends; since version 2
)

// lastEvent is the last kind of event.
const lastEvent = EventThread

// SchedReason says why another thread goes on.
type SchedReason uint8

// The reasons of a switch, of the thread that ran before.
const (
	SchedBlocked SchedReason = 1 + iota // it waits in a call
	SchedSlice                          // others have waited for long enough
	SchedYield                          // sched_yield
	SchedExit                           // it has ended
	SchedStart                          // a thread that it made goes first
)

// ThreadOp says what an EventThread is.
type ThreadOp uint8

// What becomes of a thread.
const (
	// ThreadStart: the thread TID exists from now on, with the registers Regs and the
	// extended state of the thread that runs, its maker. It runs after an EventSched.
	ThreadStart ThreadOp = 1 + iota
	// ThreadExit: the thread TID, which runs, has ended. Writes are the words that the
	// kernel has written for it: its robust futexes and what set_tid_address(2) names. The
	// next event, if there is one, is an EventSched.
	ThreadExit
)

// Event is one entry of an interval's log. Which fields have a meaning
// depends on Kind.
type Event struct {
	Kind EventKind
	TID  TID
	// RegHash is HashRegs of the thread's registers: at an enter after the
	// SYSCALL instruction has retired (rip behind it, rcx = rip, r11 = flags,
	// rax = the number); at an exit and a signal after the event is applied;
	// at a fault and an instr before it, with rip at the instruction; at a sched of the
	// thread that goes on; at a thread's start of its registers there, at its exit of
	// those at the entry of its last call.
	RegHash uint64

	NR   int64     // enter, exit, gap: the system call number
	Args [6]uint64 // enter

	// Result is rax at the exit: a value, a negated errno, or one of the
	// restart codes (-512 ERESTARTSYS, -513 ERESTARTNOINTR, -514
	// ERESTARTNOHAND, -516 ERESTART_RESTARTBLOCK). After such a code the
	// kernel's restart is the next event's business: see Restart.
	Result int64
	// Restart: exit only. The call is to be executed again: rip moves back 2
	// and rax becomes RestartNR.
	Restart   bool
	RestartNR int64

	// Regs, when set, is the whole general register file after the event:
	// always for a signal, for an exit only where more than rax changes
	// (rt_sigreturn, arch_prctl, execve). An enter, a fault, an instr and a
	// sched may have the registers of RegHash here, to find out what differs.
	Regs *Regs
	// XState, when set, is the extended state after the event.
	XState []byte
	// Maps are changes of the memory map, in order, applied before Writes.
	Maps []MapOp
	// Writes are bytes that came in from outside, in order.
	Writes []MemWrite

	Signo   int32  // signal, fault
	Siginfo []byte // signal, fault: siginfo_t, 128 bytes
	Addr    uint64 // fault: the faulting address (si_addr)

	Why SchedReason // sched; since version 2

	Thread ThreadOp // thread
	Parent TID      // thread: who made it, at a start
	Flags  uint64   // thread: of clone(2), at a start
	Status int32    // thread: the exit code, at an exit

	Instr InstrKind // instr
	Out   [4]uint64 // instr: rax, rbx, rcx, rdx afterwards; of InstrRandom the destination and the carry flag

	// Seq is the event's place in the session's one stream of events, from 1, where
	// several processes were recorded together, else 0: of events of different
	// processes, which have no other order, that with the smaller number was first. Those with the
	// same number do not depend on each other.
	Seq uint64

	Reason string // gap: why; end: see End
	// Note is provenance for people: path or peer of a descriptor, sender of
	// a signal.
	Note string
}

// InstrKind names a trapped instruction.
type InstrKind uint8

// The trapped instructions.
const (
	InstrRDTSC InstrKind = 1 + iota
	InstrRDTSCP
	InstrCPUID
	InstrRandom // RDRAND or RDSEED
)

// MemWrite is a run of bytes that came in from outside.
type MemWrite struct {
	Addr uint64
	Data []byte
}
