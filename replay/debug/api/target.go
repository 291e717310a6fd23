package api

import (
	"context"
	"errors"
	"io"
)

// What a front end asks of a debugger, and what it is told: the interfaces and the types of
// stops, resumes, breakpoints and modules, in no protocol's words. There is no behaviour here,
// and nothing of how a recording is replayed. Names and types of the program are in symbols.go,
// registers in registers.go.

// A Target is a process that can be looked at and moved along its history.
//
// The server never calls two methods at once: calls may come from different
// goroutines, but one returns before the next is made. That holds from one
// session to the next of the same server too. Slices and pointers returned
// belong to the target; the server reads them before its next call and does
// not keep them. Signal numbers are Linux's; the server translates.
type Target interface {
	// Process tells what is being debugged. It is asked at any time and must
	// be cheap. PID and Features must not change during a session, ExecFile only
	// with StopExec.
	Process() Process

	// Threads lists the threads that exist at the present position, at least
	// one. The order is the client's order.
	Threads() []Thread

	// Stop tells why the target is where it is, without moving it. It is
	// asked when a client connects, attaches or rewinds. At the crash it is
	// the crash's signal.
	Stop() Stop

	// Registers returns the registers of thread tid at the present position.
	// It is called with ids from Threads only. The error says why they are
	// not known.
	Registers(tid int) (*Registers, error)

	// ReadMemory fills b from addr on and returns how many bytes are valid:
	// the readable prefix. When n < len(b) the error names why the byte at
	// addr+n cannot be read (not captured, not mapped). The range does not
	// wrap around the end of the address space.
	ReadMemory(addr uint64, b []byte) (n int, err error)

	// Resume moves the target and blocks until it stops. When ctx ends it
	// stops as soon as it can, within 100 ms, and returns StopInterrupted
	// (or the stop that happened just before). It must not stop at a
	// breakpoint on the instruction it starts from, unless it comes back to
	// it. An error, such as a divergence, means that the target stands at
	// the place the Stop says (or Stop() if it is zero) and could not go on;
	// its text is shown to the user.
	Resume(ctx context.Context, r Resume) (Stop, error)

	// SetBreakpoint adds b, or replaces the conditions of the breakpoint
	// with the same Kind, Addr and Len. Any address is valid, mapped or not.
	// ErrNotSupported makes the client fall back on another kind.
	SetBreakpoint(b Breakpoint) error

	// ClearBreakpoint removes the breakpoint with the same Kind, Addr and
	// Len. It is called only for one that was set.
	ClearBreakpoint(b Breakpoint) error

	// Libraries lists what the dynamic loader has loaded at the present
	// position, the program itself included (with Main set), in link-map
	// order. Nil if there is no dynamic loader or it has not run yet.
	Libraries() []Library

	// Siginfo returns the siginfo_t (128 bytes) of the signal that thread
	// tid is stopped with. An error means there is none: one thread is at most.
	Siginfo(tid int) ([]byte, error)

	// OpenFile opens a file of the recorded system: the program and its
	// libraries as ELF images, /proc/PID/maps and the like. Never a file of
	// the replaying machine. For what it does not have the error is
	// os.ErrNotExist. The server calls Close if the File has it.
	OpenFile(path string) (File, error)

	// Readlink reads a symbolic link of the recorded system, such as
	// /proc/PID/exe. Errors as for OpenFile.
	Readlink(path string) (string, error)

	// Monitor runs one "monitor" command and writes what the user shall see
	// to out, as it comes; out is not used after the return, and implements
	// Progress where somebody is shown how it goes on. The error's
	// text is shown to the user. When ctx ends it returns soon. It may move
	// the target; clients do not notice by themselves that it did. ErrExit
	// ends the server, as "monitor exit" does with gdbserver.
	Monitor(ctx context.Context, line string, out io.Writer) error

	// Rewind moves to the beginning of the history ("run" and "restart").
	Rewind() error

	// Detached is called once when a client lets go of the process: detach,
	// kill or connection end. All breakpoints have been cleared. The
	// position stays.
	Detached()
}

// A ProcessTarget has several processes. All other methods are about one of them: that
// which Select was called with last, and the first one before.
type ProcessTarget interface {
	// PIDs lists the processes in the client's order, the one that the recording is about
	// first. It must be cheap, and does not change.
	PIDs() []int

	// Select makes a process the one that all methods are about. It must be cheap for the
	// present one. The error says why it cannot be shown; then nothing changes.
	Select(pid int) error
}

// A PositionTarget can tell one moment from another.
type PositionTarget interface {
	// Position is the present moment in the target's own notation. It is cheap.
	Position() string
}

// A ProgressTarget can tell how far a long movement is.
type ProgressTarget interface {
	// Progress returns what tells, while a Resume from here runs, how much of the history
	// is known, from 0 to 1, and the same in words.
	Progress() func() (share float64, text string)
}

// A ReasonTarget can say more of why the program stops than a signal does.
type ReasonTarget interface {
	// Reason is what the program, or its C library, said when it gave up here; "" when
	// nothing is known.
	Reason() string
}

// A RegionTarget can describe mappings; lldb asks for it.
type RegionTarget interface {
	// Region returns the mapping that holds addr, or the hole around addr
	// with Mapped false.
	Region(addr uint64) (Region, error)
}

// A TLSTarget can find thread-local variables.
type TLSTarget interface {
	// TLSAddress returns the address of the byte at offset in thread tid's
	// block of thread-local storage for the module whose link_map is at lm.
	TLSAddress(tid int, offset, lm uint64) (uint64, error)
}

// ErrNotSupported is returned by a Target for what it cannot do by nature. The
// client gets the empty reply and uses another way if it has one.
var ErrNotSupported = errors.New("debug: not supported by the target")

// ErrExit is returned by Monitor to end the session and the server.
var ErrExit = errors.New("debug: exit asked for")

// Process identifies what is being debugged.
type Process struct {
	PID      int      // recorded process id, > 0
	ParentID int      // recorded parent, 0 if not known
	ExecFile string   // recorded absolute path of the program; may be empty
	Auxv     []byte   // the auxiliary vector as the kernel laid it out
	Attached bool     // true makes clients detach at quit, false makes them kill
	Features Features // optional register sets the recording has
}

// Features is a set of register groups.
type Features uint32

// The register groups. General registers are always there.
const (
	FeatureX87 Features = 1 << iota
	FeatureSSE
	FeatureAVX
	FeatureOrigRAX
	FeatureFSGS
	FeatureAVX512
)

// Thread describes one thread.
type Thread struct {
	PID  int    // process, as Process.PID
	TID  int    // recorded thread id, > 0
	Name string // comm; may be empty
	Core int    // recorded CPU number, 0 if not known
}

// StopKind tells why a target stopped. The zero value is no stop.
type StopKind uint8

// The kinds of stop and the fields of Stop they use besides TID.
const (
	StopNone          StopKind = iota
	StopSignal                 // Signo: about to be delivered, or the crash
	StopStep                   // a step or range step is done
	StopBreakpoint             // software breakpoint; RIP is its address
	StopHWBreakpoint           // hardware breakpoint; RIP is its address
	StopWatchWrite             // Addr: the watchpoint's address
	StopWatchRead              // Addr
	StopWatchAccess            // Addr
	StopReplayBegin            // the history's beginning was reached going back
	StopReplayEnd              // the history's end was reached going forward
	StopExited                 // Code: exit status, 0 to 255
	StopKilled                 // Signo: the signal that killed the process
	StopSyscallEntry           // Syscall: number
	StopSyscallReturn          // Syscall: number
	StopInterrupted            // Resume's context ended
	StopNoThread               // the thread that was to be moved is not there any more; TID is another
	StopExec                   // Program: execve has made another program of the process, whichever way time runs
)

// Stop says why and where a target stopped. Going forward a watchpoint stop is
// after the instruction that wrote; going backward it is before it.
type Stop struct {
	Kind    StopKind
	TID     int    // the thread the stop is about; 0 = the first one
	Signo   int    // Linux signal number
	Code    int    // exit status
	Addr    uint64 // address the watchpoint was set with
	Syscall int    // system call number
	Program string // path of the program
	Note    string // shown to the user as console output, may be empty
	// Moved says that the target was moved without being resumed, by a monitor
	// command, before or in this resume: the dynamic loader may have run and the
	// client not have noticed.
	Moved bool
}

// Direction is the sense in which time runs.
type Direction uint8

// The directions.
const (
	Forward Direction = iota
	Backward
)

// ResumeKind tells how far to go.
type ResumeKind uint8

// The kinds of resume.
const (
	// Continue runs to the next stop of any kind.
	Continue ResumeKind = iota
	// Step executes (or takes back) one instruction of thread TID. It ends
	// with StopStep also on the address of a breakpoint; watchpoints,
	// signals and the ends of history are reported as such.
	Step
	// RangeStep steps thread TID at least once and until its RIP is outside
	// [Start, End), then StopStep; whatever stops Continue stops it too.
	RangeStep
)

// Resume is a request to move.
type Resume struct {
	Dir   Direction
	Kind  ResumeKind
	Start uint64 // RangeStep only
	End   uint64 // RangeStep only
	TID   int    // the thread to step; 0 = any. Others run as recorded.
	// Alone says that the client resumes thread TID and no other: what other threads come
	// to does not stop it, and the stop is one of TID.
	Alone  bool
	Signal int // signal the client wants delivered, 0 = none. A replay has its own.
	// All asks that the other processes of a ProcessTarget be moved to the same moment.
	// Without it they stay where they are.
	All bool

	// PassSignals lists the signals that need not stop. The crash's signal
	// stops in any case. Sorted.
	PassSignals []int
	// CatchAll asks to stop at every system call's entry and return,
	// CatchSyscalls at those listed. Sorted.
	CatchAll      bool
	CatchSyscalls []int
	// ExecEvents says that the client understands StopExec. Without it the boundary of
	// a program is an end of history.
	ExecEvents bool
}

// BreakpointKind is the number after Z in the protocol.
type BreakpointKind uint8

// The kinds of breakpoint.
const (
	BreakSoftware BreakpointKind = iota
	BreakHardware
	WatchWrite
	WatchRead
	WatchAccess
)

// Breakpoint is a breakpoint or watchpoint. Kind, Addr and Len identify it.
type Breakpoint struct {
	Kind BreakpointKind
	Addr uint64
	// Len is a watchpoint's length in bytes, 1 to MaxWatchLen; for a
	// breakpoint it is the client's instruction length and means nothing.
	Len uint64
	// Test, when it is not nil, is a condition: the breakpoint stops where it returns
	// true. It is called for the machine that stands there, which in a search is not
	// the target's own, and for several at once.
	Test func(m Machine) bool
	// Conditions are agent expressions (package agentexpr), of which Test is true where any is not 0 or cannot be evaluated. None says
	// nothing. With them the target need not call Test everywhere.
	Conditions [][]byte
}

// Machine is the machine that stands at a breakpoint, as its condition sees it.
type Machine interface {
	// GPR returns the general register with an index of Registers.GPR.
	GPR(index int) uint64
	RIP() uint64
	// Registers returns all registers, which takes longer.
	Registers() *Registers
	// ReadMemory is that of Target.
	ReadMemory(addr uint64, b []byte) (int, error)
}

// Limits on breakpoints.
const (
	MaxBreakpoints = 4096    // at a time, of all kinds
	MaxWatchLen    = 1 << 20 // bytes
)

// Progress is what the writer given to Target.Monitor implements when somebody
// is shown how a long command goes on.
type Progress interface {
	// Progress replaces what was said before. It may be called often.
	Progress(text string)
}

// Library is one entry of the dynamic loader's list (struct link_map).
type Library struct {
	Name    string // l_name: path of the file; one without a slash is not shown
	LinkMap uint64 // address of the link_map
	Base    uint64 // l_addr: load bias
	Dynamic uint64 // l_ld: address of the dynamic section
	NSID    uint64 // link namespace, 0 is the base namespace
	Main    bool   // the program itself
}

// File is a read-only file of the recorded system. ReadAt is called from one
// goroutine at a time.
type File interface {
	io.ReaderAt
	Size() int64  // in bytes
	Mode() uint32 // st_mode: type and permission bits
}

// Region is a stretch of the address space.
type Region struct {
	Start  uint64
	Size   uint64
	Mapped bool
	Read   bool
	Write  bool
	Exec   bool
	Name   string // file or [stack] and the like; may be empty
}

// A DivertTarget can make a copy of the process that runs away from the
// recording. From Divert to Undivert all methods of Target are about the copy, but
// Resume, Stop, Rewind and Monitor.
type DivertTarget interface {
	// Divert makes the copy. output takes what it writes to its terminal, while
	// ResumeDiverted runs.
	Divert(output func(b []byte)) error

	// Undivert throws the copy away. Without one it does nothing.
	Undivert()

	// WriteRegisters replaces thread tid's registers, but those of groups in
	// r.Missing and OrigRAX. The copy executes that thread from then on; until it is
	// called, the one that runs in the recording.
	WriteRegisters(tid int, r *Registers) error

	// WriteMemory stores b at addr, protected or not, all of it or nothing.
	WriteMemory(addr uint64, b []byte) error

	// ResumeDiverted runs the copy forward; r.Dir and r.Signal mean nothing. With
	// skip, a breakpoint at the present RIP does not stop it. StopExited ends
	// the copy's life. An error says why the copy cannot go on, as for Resume;
	// ctx is as for Resume.
	ResumeDiverted(ctx context.Context, r Resume, skip bool) (Stop, error)

	// AllocateMemory maps size bytes with protection prot (1 read, 2 write, 4
	// execute) for the client's use, and FreeMemory unmaps them.
	AllocateMemory(size uint64, prot int) (addr uint64, err error)
	FreeMemory(addr uint64) error
}
