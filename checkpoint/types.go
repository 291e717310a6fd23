package checkpoint

import (
	"fmt"
	"strings"
	"time"
)

// The types that a recording is made of: positions, registers, mappings, pages, events,
// intervals and the manifest. They say what a recording holds; how it is coded is in
// spec.go, codec.go and manifest.go, and FORMAT.md describes the bytes on disk.

// PageSize is the unit of memory capture, in bytes.
const PageSize = 4096

// Position names a moment of a recording: I:N.S. Positions are totally
// ordered. Instr counts the instructions retired since the interval's start;
// Step counts what happened at that count without retiring an instruction
// (applied events, signal frames, then REP iterations). The end of an interval
// and the start of the next are one moment; the later name is canonical.
type Position struct {
	Interval uint32
	Instr    uint64
	Step     uint32
}

// MarshalText implements encoding.TextMarshaler: the text form I:N.S.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String returns the text form I:N.S.
func (p Position) String() string {
	return fmt.Sprintf("%d:%d.%d", p.Interval, p.Instr, p.Step)
}

// Compare returns -1, 0 or +1 as p is before, at or after q.
func (p Position) Compare(q Position) int {
	switch {
	case p.Interval != q.Interval:
		return cmpU64(uint64(p.Interval), uint64(q.Interval))
	case p.Instr != q.Instr:
		return cmpU64(p.Instr, q.Instr)
	default:
		return cmpU64(uint64(p.Step), uint64(q.Step))
	}
}

func cmpU64(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Regs are the general registers of a thread. R is in encoding order: rax,
// rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
type Regs struct {
	R              [16]uint64
	RIP            uint64
	RFLAGS         uint64
	FSBase, GSBase uint64
	CS, SS         uint16
	DS, ES, FS, GS uint16
}

// TID is the number of a thread, as gettid(2) gives it to the program. The thread that
// began a process has the process's number.
type TID int32

// Context is one thread's processor state.
type Context struct {
	TID  TID
	Regs Regs
	// XState is the XSAVE image in the standard (non-compacted) format that
	// PTRACE_GETREGSET NT_X86_XSTATE returns: 512 bytes of legacy area, 64
	// bytes of header, then the components at the offsets of Identity.XSAVE. It may be
	// empty for a thread inside a call, whose exit then carries it.
	XState []byte
	// OrigRAX is the system call number while the thread is inside a call,
	// else -1.
	OrigRAX int64
	// InCall is set when the thread is inside a system call, so that its
	// next event is an exit.
	InCall bool
	// Restart is, for a thread inside a call, the kernel's pending restart
	// code (-512, -513, -514 or -516, see Event.Result), else 0.
	Restart int64
	// Name is what the thread calls itself (PR_SET_NAME), "" when it is not known; since
	// version 2.
	Name string
}

// Running returns the thread that runs, of the threads of a process at one moment: it
// is the first. Nil when there is none.
func Running(threads []Context) *Context {
	if len(threads) == 0 {
		return nil
	}
	return &threads[0]
}

// ObjectKind says what stands behind a range of memory.
type ObjectKind uint8

// The kinds of memory object.
const (
	ObjectAnon    ObjectKind = iota // private anonymous memory: pages belong to the address
	ObjectFile                      // a file, mapped privately or shared
	ObjectShared                    // shared anonymous memory, memfd, System V segment
	ObjectSpecial                   // vdso, vvar, vsyscall
)

// Object is what a mapping refers to. ID 0 is the anonymous object.
type Object struct {
	ID      uint32
	Kind    ObjectKind
	Path    string // as /proc/PID/maps says it
	BuildID string // lower-case hex of the GNU build-id note, "" when unknown
	Dev     uint64
	Inode   uint64
	Size    int64 // bytes, at the time of mapping
	Changed bool  // the file's content changed while the recording ran
}

// Protection bits of a mapping (PROT_* of mman.h).
const (
	ProtRead  = 1
	ProtWrite = 2
	ProtExec  = 4
)

// Mapping flags.
const (
	MapShared    = 1 << iota // stores reach the object (MAP_SHARED)
	MapGrowsDown             // a stack: extends downwards on a fault
	MapStack                 // the main thread's stack
	MapHeap                  // the brk area
)

// Mapping is one range of the memory map; Start and End are page-aligned.
type Mapping struct {
	Start, End uint64
	Prot       uint8
	Flags      uint8
	Object     uint32 // an Object's ID
	Offset     uint64 // bytes into the object at Start
	Name       string // as /proc/PID/maps shows it: "[heap]", "[stack]", a path, or ""
}

// PageKind is the kind of a page record.
type PageKind uint8

// The five kinds of page record, and removal in a delta table.
const (
	PageFull     PageKind = iota // 4096 bytes, in the page store
	PageZero                     // all zero
	PageAbsent                   // known not to be captured
	PagePartial                  // some bytes captured: a mask and the bytes
	PageRedacted                 // removed on purpose
	PageRemoved                  // delta tables only: no longer in the table
)

// PageHash is the content address of a page: SHA-256 cut to 128 bits.
type PageHash [16]byte

// PageRef says where the content of a page is found.
type PageRef struct {
	Kind PageKind
	Hash PageHash // PageFull: of the 4096 bytes; PagePartial: of mask and bytes
}

// PageEntry is one row of an interval's page table.
type PageEntry struct {
	Addr uint64 // page-aligned guest address
	Ref  PageRef
}

// ObjectPage is the content of one page of a mapped file, as the program saw
// it before writing to it.
type ObjectPage struct {
	Object uint32
	Index  uint64 // offset in the object / PageSize
	Ref    PageRef
}

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
	Out   [4]uint64 // instr: rax, rbx, rcx, rdx afterwards

	// Seq is the event's place in the session's one stream of events, from 1, where
	// several processes were recorded together, else 0: of events of different
	// processes, which have no other order, that with the smaller number was first.
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
)

// MemWrite is a run of bytes that came in from outside.
type MemWrite struct {
	Addr uint64
	Data []byte
}

// MapOpKind names a change of the memory map.
type MapOpKind uint8

// The changes of the memory map.
const (
	// MapOpMap maps [Start,End) anew; whatever was there is unmapped first.
	// Pages of an anonymous range are zero, pages of a file are found by object.
	MapOpMap MapOpKind = 1 + iota
	// MapOpUnmap removes all of [Start,End).
	MapOpUnmap
	// MapOpProtect sets Prot on all mapped parts of [Start,End).
	MapOpProtect
	// MapOpMove moves the mapping and its pages from [Start,End) to New
	// (mremap); NewEnd-New may differ from End-Start.
	MapOpMove
	// MapOpDrop forgets private pages in [Start,End) (MADV_DONTNEED): they read
	// as the object again, or as zero.
	MapOpDrop
)

// MapOp is one change of the memory map.
type MapOp struct {
	Kind        MapOpKind
	Start, End  uint64
	New, NewEnd uint64  // MapOpMove
	Map         Mapping // MapOpMap: Prot, Flags, Object, Offset, Name; its range is Start, End when read
	Prot        uint8   // MapOpProtect
}

// EndKind says how an interval ended.
type EndKind uint8

// The ways an interval ends.
const (
	EndSync   EndKind = 1 + iota // right after the last event; the state there is exact
	EndForced                    // a preemption elsewhere, found by state
	EndCrash                     // the fatal signal: the last event is a fault, or the end is forced
	EndExit                      // exit or exit_group
	EndExec                      // execve: a new image follows
	EndGap                       // at the entry of a call whose effects cannot be listed
	EndStop                      // the recorder stopped recording here (setuid exec, a process that shares the memory, ...)
)

// End is what an interval's end must look like.
type End struct {
	Kind EndKind
	// Forced says that the end is not at the last event but at the first
	// moment after it whose registers are Contexts[0].Regs and extended state
	// and whose additive memory hash is MemHash.
	Forced   bool
	Signo    int32 // EndCrash: the signal that killed
	ExitCode int32 // EndExit
	Contexts []Context
	// MemHash is the sum of HashWord over all aligned 8-byte words of memory
	// at the end, minus the same at the interval's start: private pages at their
	// address then and now, shared pages at the addresses that they have at the end.
	// Clean pages of files count neither way.
	MemHash uint64
	// Pages are hashes of the pages written in the interval, at its end;
	// replay compares them.
	Pages   []PageEntry
	CPUTime time.Duration // the process's CPU time spent in the interval
	Reason  string        // EndStop, EndGap: why
}

// Interval is one unit of recording and of replay.
type Interval struct {
	ID    uint32
	PID   int32
	Image uint32 // counts execve: intervals of one image share it
	Start []Context
	Maps  []Mapping
	Brk   uint64
	// StackLimit is RLIMIT_STACK in bytes: how far a MapGrowsDown mapping may
	// extend. 0 when unknown, ^0 when unlimited.
	StackLimit uint64
	// Pages are sorted by Addr. With Delta they are the changes against the
	// table of the interval before: the one of the same PID and Image with
	// the greatest smaller ID, which must exist in the file.
	Pages    []PageEntry
	Delta    bool
	Slim     bool // pages whose content nothing needs are PageAbsent
	Events   []Event
	End      End
	Artefact []Artefact
	CPUStart time.Duration // CPU time of the process at the start
	WallTime time.Time     // at the start
}

// Artefact is a trace of the recorder itself in the guest, which the loader
// undoes and debuggers never see.
type Artefact struct {
	Addr uint64
	Old  []byte // what would be there without the recorder
	What string
}

// Final is the image at the end of the last interval of a process: the pages that
// differ from that interval's start.
type Final struct {
	Pages    []PageEntry
	Maps     []Mapping
	Contexts []Context
	// Siginfo of the fatal signal, 128 bytes, or nil.
	Siginfo []byte
	Signo   int32
}

// CPUIDLeaf is one answer of the CPUID instruction, as the guest saw it.
type CPUIDLeaf struct {
	Leaf    uint32 `json:"leaf"`
	Subleaf uint32 `json:"subleaf"`
	EAX     uint32 `json:"eax"`
	EBX     uint32 `json:"ebx"`
	ECX     uint32 `json:"ecx"`
	EDX     uint32 `json:"edx"`
}

// XSAVEComponent is one state component of the standard XSAVE format.
type XSAVEComponent struct {
	Index  uint32 `json:"index"`  // bit number in XCR0
	Offset uint32 `json:"offset"` // bytes from the start of the XSAVE area
	Size   uint32 `json:"size"`   // bytes
}

// Identity describes the CPU as presented to the guest.
type Identity struct {
	Vendor   string      `json:"vendor"` // "GenuineIntel", "AuthenticAMD"
	Family   uint32      `json:"family"` // display values
	Model    uint32      `json:"model"`
	Stepping uint32      `json:"stepping"`
	Brand    string      `json:"brand"`
	CPUID    []CPUIDLeaf `json:"cpuid,omitempty"`
	Faulting bool        `json:"faulting"` // CPUID was trapped, so the answers may be edited
	// CPUIDReal has the CPU's own answers where those in CPUID are edited:
	// programs may execute what they are not shown.
	CPUIDReal []CPUIDLeaf `json:"cpuid_real,omitempty"`
	// TSCAux is what RDPID reads on the CPU that the program was kept on: its
	// number, and its node's shifted by 12. Nil when it is not known.
	TSCAux *uint32 `json:"tsc_aux,omitempty"`
	XCR0   uint64  `json:"xcr0"`
	// XSAVE is the layout of Context.XState, sorted by Index.
	XSAVE []XSAVEComponent `json:"xsave,omitempty"`
	Level string           `json:"level"` // "x86-64-v3"
}

// Name returns the CPU's brand with vendor, family and model in decimal:
// "AMD EPYC (AuthenticAMD, family 25, model 1)".
func (id *Identity) Name() string {
	return strings.TrimSpace(fmt.Sprintf("%s (%s, family %d, model %d)", strings.TrimSpace(id.Brand), id.Vendor, id.Family, id.Model))
}

// Process is one process of the session, at its last execve. How it ended is in the End of
// its last interval.
type Process struct {
	PID      int32    `json:"pid"`
	Parent   int32    `json:"parent"` // 0 when it is not in the session
	Image    uint32   `json:"image"`
	Program  string   `json:"program"`
	Args     []string `json:"args,omitempty"`
	Env      []string `json:"env,omitempty"`
	Cwd      string   `json:"cwd"`
	Auxv     []byte   `json:"auxv,omitempty"`
	Signo    int32    `json:"signo"`
	ExitCode int32    `json:"exit_code"`
}

// Manifest is what a recording says of itself; it is in the JSON member of
// the file. The fields that name a program speak of the process PID.
type Manifest struct {
	Version   int       `json:"version"` // of the format; the writer sets it
	Tool      string    `json:"tool"`
	ID        string    `json:"id"`      // random, 32 hex digits; the writer makes one when it is empty
	Program   string    `json:"program"` // path of the program at the last execve
	Args      []string  `json:"args,omitempty"`
	Env       []string  `json:"env,omitempty"`
	Cwd       string    `json:"cwd"`
	Hostname  string    `json:"hostname"`
	Kernel    string    `json:"kernel"`
	Start     time.Time `json:"start"`
	PID       int32     `json:"pid"`
	Parent    int32     `json:"parent,omitempty"` // 0 when it is not in the session; since version 2
	CPU       Identity  `json:"cpu"`
	Auxv      []byte    `json:"auxv,omitempty"`
	Crash     bool      `json:"crash"`
	Signo     int32     `json:"signo"`
	ExitCode  int32     `json:"exit_code"`
	Intervals int       `json:"intervals"` // the writer sets it
	Keep      string    `json:"keep"`      // "crash" or "always"
	Notes     []string  `json:"notes,omitempty"`
	// Processes lists the session's other processes, those that have an interval in the
	// file, each once. Empty when there is one. Where there are several, the recording is
	// about PID: the first that crashed, else the first program.
	Processes []Process `json:"processes,omitempty"`
}
