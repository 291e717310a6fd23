package replay

import (
	"sync/atomic"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Snapshots of a machine. Which are kept is the index's business (index.go), and what memory
// they share is package mem's.

// Snapshot is the state of a machine at one position: O(1) to take and to go back to. It is
// immutable and may be restored on several goroutines at once; the last Release
// gives its memory back.
type Snapshot struct {
	Pos checkpoint.Position

	refs  atomic.Int32
	iv    *interval
	cpu   x86.State
	mem   *mem.Snapshot
	tid   checkpoint.TID
	next  int
	step  uint32
	after bool // afterSyscall
	in    bool // inCall
	fault bool // faulted
	ended bool

	name     string
	others   threads
	noXState bool
	gone     bool
}

// Save returns a snapshot of the current position. A machine that is searching a
// forced end by state cannot be marked there without losing the search, so
// that the search simply begins again after a Restore.
func (m *Machine) Save() *Snapshot {
	k := &Snapshot{
		Pos: m.Position(), iv: m.iv, cpu: m.CPU.State, mem: m.Mem.Snapshot(), tid: m.tid,
		next: m.next, step: m.step, after: m.afterSyscall, in: m.inCall, fault: m.faulted, ended: m.ended,
		name: m.name, others: m.others, noXState: m.noXState, gone: m.gone,
	}
	k.refs.Store(1)
	return k
}

// Restore makes the machine what it was at the snapshot, which may be of another
// interval of the same session.
func (m *Machine) Restore(k *Snapshot) {
	if m.search != nil {
		m.search.stop()
	}
	m.iv, m.tid, m.next, m.step = k.iv, k.tid, k.next, k.step
	m.afterSyscall, m.inCall, m.faulted, m.ended = k.after, k.in, k.fault, k.ended
	m.name, m.others, m.noXState, m.gone = k.name, k.others, k.noXState, k.gone
	m.CPU.State = k.cpu
	m.Mem.Restore(k.mem)
	m.allowed = false
}

// hold adds a reference, which a Release of its own gives up.
func (k *Snapshot) hold() *Snapshot {
	k.refs.Add(1)
	return k
}

// Release gives up a reference, and with the last the snapshot's memory.
func (k *Snapshot) Release() {
	if k.refs.Add(-1) == 0 {
		k.mem.Release()
	}
}

// atEnd reports whether the snapshot stands at its interval's end.
func (k *Snapshot) atEnd() bool {
	return k.next == len(k.iv.Events) && (!k.iv.End.Forced || k.ended) || k.atCrash()
}

// atCrash reports whether the snapshot stands at the fault that ends its interval.
func (k *Snapshot) atCrash() bool {
	return k.fault && k.next == len(k.iv.Events)-1 && k.iv.End.Kind == checkpoint.EndCrash
}

// Start returns a snapshot at the start of interval id. Errors: as Machine.
func (s *Session) Start(id uint32) (*Snapshot, error) {
	iv, err := s.interval(id)
	if err != nil {
		return nil, err
	}
	m := s.machine(iv, nil, nil) // it executes nothing
	defer m.Close()
	return m.Save(), nil
}

// Viewer returns a machine at snapshot k that is there to be looked at: Restore brings it to other
// snapshots of the session. It executes by the interpreter. Close gives it back.
func (s *Session) Viewer(k *Snapshot) *Machine { return s.machineAt(k, nil) }

// machineAt returns a machine of its own at snapshot k, which executes by what maker makes.
func (s *Session) machineAt(k *Snapshot, maker EngineMaker) *Machine {
	m := &Machine{s: s, iv: k.iv, breaks: map[uint64]struct{}{}}
	m.attach(k.mem.Open(), maker)
	m.Restore(k)
	return m
}
