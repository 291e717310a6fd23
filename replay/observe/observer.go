package observe

import (
	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// What an observer may be told, and what it sees then.

// Observer are the callbacks of one interval. What is nil is not looked for, and costs
// nothing. The View and what else they get is theirs until they return.
type Observer struct {
	// Addresses are instructions that Exec is called before, with the machine at them. An
	// instruction that is executed again behind a signal's handler is told again.
	Addresses []uint64
	Exec      func(v *View)

	// Functions are the first instructions of functions: Enter is called before them, and Leave
	// where a call has returned, with the place of the return address. Calls that were under way when
	// the interval began are not known by function: Leave is called for each return address
	// that was on a stack then and is returned to. Who has followed Enter through the intervals in
	// order (Options.Ordered) knows by thread and slot which they are; see Calls.
	Functions []uint64
	Enter     func(v *View)
	Leave     func(v *View, slot uint64)

	// Mapped is called behind each event that maps code, as the dynamic linker does for a library, or changes protection,
	// as it does when it has relocated one, and returns what Addresses and Functions are to have as well from then on. It is called at once, whatever
	// Options.Ordered says.
	Mapped func(v *View) (addresses, functions []uint64)

	// Ranges are the bytes whose accesses are told: Access is called behind the instruction, or the event, that
	// made them. With AllAccesses it is called for each access to memory that an instruction makes,
	// whatever Ranges are, behind that instruction and before the next one.
	Ranges      []mem.Watch
	AllAccesses bool
	Access      func(v *View, a *Access)
	NoData      bool // accesses have no bytes, and take less time by that
	// Later has AllAccesses, or Accesses, begin where a callback calls View.TellAccesses, Start at the earliest. Until then the program is executed as fast as
	// if nobody asked for them, and Access is called for Ranges and Marks. Beside Instr or Run it has no effect.
	Later bool

	// Accesses is called with all accesses to memory that instructions make, in their order and many at once: some time behind them, and before
	// anything else is told. v is where the machine has come to; see View.At. Generated code executes the program: that costs a part of
	// what AllAccesses does, which it does not go together with, nor with Instr and Run. It begins as Later says. The list is valid until Accesses returns,
	// View.Bytes has the bytes of its accesses.
	Accesses func(v *View, list []PastAccess)
	Revisits bool // Accesses may call View.At: that costs a snapshot now and then

	// Marks, when set, are bytes whose accesses are told as those of Ranges are. The callbacks may change them at any time. An interval is
	// replayed only when its turn has come then, since the marks are not known before; intervals may share one set, which
	// nothing else uses meanwhile. Memory that is unmapped, or mapped anew, loses its marks.
	Marks *mem.Marks
	// Wants, when set, is asked at each access to Ranges or Marks whether Access is to be called for it. It is in the midst of the
	// instruction, or event, for a small part of what a call of Access costs: v must be asked for nothing but registers and thread, and the access has
	// no Data and no Old.
	Wants func(v *View, a *Access) bool

	// Touched, when set, gets the pages that the interval accesses, by events too, as they are accessed. Who reads it, in a callback, may clear
	// its maps: then a page may come again.
	Touched *mem.Sets

	// Instr is called before each instruction, with the machine at it; an instruction
	// that faults is told again when it is executed again. A REP string instruction is
	// one, with all its iterations.
	Instr func(v *View, in *x86.Inst)

	// Executed, with Instr, is called behind each instruction for which *Pending is set then, with what it
	// came to, as x86.CPU.AfterInst has it: behind one that faulted too. Instr is called again then where a REP string
	// instruction goes on that was left between two iterations.
	Executed func(v *View, in *x86.Inst, e x86.Exit)
	Pending  *bool

	// Run is called behind each run of instructions: one or more that follow each other in memory and have retired one after
	// the other, the last of which may have branched, made a system call, or be followed by one that faults. The machine is behind
	// them. All instructions that retire are told but those that an event retires (RDTSC, CPUID). It costs a tenth of what Instr does, which it does not go
	// together with, nor with AllAccesses. r is valid until Run returns.
	Run func(v *View, r *x86.Run)

	// Branch is called behind each instruction that has retired and gone elsewhere: conditional branches that are taken, jumps, calls and
	// returns. A conditional branch to the next instruction is not told, as it is not known whether it was taken. The machine is at
	// Branch.To then. It is built on Run, and goes together with what that does. b is valid until Branch returns.
	Branch func(v *View, b *Branch)

	// Event is called before an event of the log is applied, Applied behind it: system calls
	// (enter and exit), signals, faults, trapped instructions, switches of threads. An
	// event whose effects cannot be applied is not told as applied. The caller must not change it.
	Event, Applied func(v *View, e *checkpoint.Event)

	// Start is called at the interval's start, Done is called at the end of the interval, once it is known to be that of the recording.
	Start, Done func(v *View)
}

// Branch is a control transfer that was made. Events, as the kernel's way to a signal handler and back, are none.
type Branch struct {
	From, To   uint64 // addresses of instructions: it, and the one that is next
	Kind       x86.Transfer
	IsIndirect bool // a register or memory said where to; not of a return
	Inst       *x86.Inst
}

// runs reports whether runs of instructions must be looked at.
func (o *Observer) runs() bool { return o.Run != nil || o.Branch != nil }

// watches reports whether accesses to some of the memory must be looked at.
func (o *Observer) watches() bool { return o.Access != nil && (len(o.Ranges) > 0 || o.Marks != nil) }

// traces reports whether every instruction must be looked at.
func (o *Observer) traces() bool {
	return o.Instr != nil || o.runs() || o.wantsAll() || o.wantsPast()
}

// wantsPast reports whether every access is told some time behind it.
func (o *Observer) wantsPast() bool {
	return o.Accesses != nil && !o.AllAccesses && o.Instr == nil && !o.runs()
}

// wantsAll reports whether every access must be looked at, from the beginning or later.
func (o *Observer) wantsAll() bool { return o.AllAccesses && o.Access != nil && !o.runs() }

// tracesLater reports whether that begins with View.TellAccesses.
func (o *Observer) tracesLater() bool {
	return o.Later && (o.wantsAll() && o.Instr == nil || o.wantsPast())
}

// tracesAccesses reports whether it begins with the interval.
func (o *Observer) tracesAccesses() bool { return o.wantsAll() && !o.tracesLater() }

// Access is an access to memory by one instruction, by one iteration of a REP string
// instruction, or by an event.
type Access struct {
	PC    uint64 // of the instruction; of an event, where the program goes on
	Addr  uint64 // of the first byte
	Size  int    // bytes
	Store bool
	Event bool // by an event: the kernel's, with Observer.Ranges and Marks alone
	// Data are the bytes that were loaded or stored, Old those that a store
	// replaced; as far as they are known, and 64 of an event's at most. Both are
	// valid until the callback returns.
	Data, Old []byte
}

// View is the machine at the moment that a callback is about. It may be read by all
// that [replay.Machine] and its parts offer for that, and must not be run or changed.
type View struct {
	m    *replay.Machine
	stop func(error)
	// runs says that the machine is in the midst of a run, as where each instruction is told. It counts steps
	// anew only behind that; event is the instruction count at which it has applied an event last.
	runs  bool
	event uint64
	// tellAccesses is View.TellAccesses.
	tellAccesses func()
	past         *past // of Observer.Accesses
}

// Machine returns the machine, which is at the moment that is told of.
func (v *View) Machine() *replay.Machine { return v.m }

// CPU returns its processor: the registers of the thread that runs.
func (v *View) CPU() *x86.CPU { return v.m.CPU }

// Position returns where the machine is.
func (v *View) Position() checkpoint.Position {
	p := v.m.Position()
	if v.runs && p.Instr != v.event {
		p.Step = uint32(v.m.CPU.RepIter)
	}
	return p
}

// TID returns the thread that runs.
func (v *View) TID() checkpoint.TID { return v.m.TID() }

// ArgumentRegisters are the registers of the first six integer arguments of a function (System V ABI, AMD64 supplement, 3.2.3).
var ArgumentRegisters = [6]uint8{x86.RDI, x86.RSI, x86.RDX, x86.RCX, x86.R8, x86.R9}

// Arguments returns the first six integer arguments of a function that the machine is at the first instruction of.
func (v *View) Arguments() (args [6]uint64) {
	for i, r := range ArgumentRegisters {
		args[i] = v.m.CPU.R[r]
	}
	return args
}

// ReadMemory copies the readable prefix of the bytes at addr and returns how many there are. Nothing
// changes by that, protection is not looked at, and bytes that were not captured cannot be read.
func (v *View) ReadMemory(addr uint64, b []byte) int {
	n, _ := v.m.Mem.Peek(addr, b)
	return n
}

// At returns what there was to see behind an access of the list that Observer.Accesses is called with: it executes up to there once more,
// for up to a tenth of a second. It is valid until the next call, or Accesses returns. Errors: those of replay.Machine.Run.
// Preconditions: v is what Accesses is called with.
func (v *View) At(a *PastAccess) (*View, error) { return v.past.w.at(a) }

// Bytes returns the bytes that an access of the list that Observer.Accesses is called with has loaded or stored, and those that a store has replaced; nil with
// Observer.NoData. They are valid until the next call, or Accesses returns.
// Preconditions: as At.
func (v *View) Bytes(a *PastAccess) (data, old []byte) {
	if v.past.noData {
		return nil, nil
	}
	return v.past.bytesOf(a)
}

// TellAccesses has Observer.AllAccesses or Observer.Accesses begin, which Observer.Later has put off.
// Preconditions: the callback is Start, Event or Applied.
func (v *View) TellAccesses() { v.tellAccesses() }

// Stop ends the whole Run, which returns err, or nil where that is nil. Callbacks may come until
// the next look at that, a millisecond later at most.
func (v *View) Stop(err error) { v.stop(err) }
