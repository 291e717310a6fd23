package checkpoint

import "time"

// Intervals: what replay begins with, and what an interval's end must look like. The parts
// have files of their own: context.go, mapping.go, pagetable.go, event.go.

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
	// replay compares them. With Interval.FirstLoads a page may be partial, or absent where nothing of it is known.
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
	Pages []PageEntry
	Delta bool
	Slim  bool // pages whose content nothing needs are PageAbsent
	// FirstLoads goes with Slim: of pages only the bytes are known that replay reads before it writes them, and
	// what debuggers need. In End, MemHash takes the others as zeros, and Pages compare the known bytes: those of
	// the start, and what the interval has written.
	FirstLoads bool
	Events     []Event
	End        End
	Artefact   []Artefact
	CPUStart   time.Duration // CPU time of the process at the start
	WallTime   time.Time     // at the start
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
