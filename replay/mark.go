package replay

import (
	"sync/atomic"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Mark is a kept moment of a machine: O(1) to take and to go back to. It is
// immutable and may be restored on several goroutines at once; the last Release
// gives its memory back.
type Mark struct {
	Pos checkpoint.Position

	refs  atomic.Int32
	iv    *interval
	cpu   x86.State
	mem   *mem.Snapshot
	tid   int32
	next  int
	step  uint32
	after bool // afterSyscall
	in    bool // inCall
	fault bool // faulted
	ended bool
}

// Save returns a mark of the present moment. A machine that is searching a
// forced end by state cannot be marked there without losing the search, so
// that the search simply begins again after a Restore.
func (m *Machine) Save() *Mark {
	k := &Mark{
		Pos: m.Position(), iv: m.iv, cpu: m.CPU.State, mem: m.Mem.Snapshot(), tid: m.tid,
		next: m.next, step: m.step, after: m.afterSyscall, in: m.inCall, fault: m.faulted, ended: m.ended,
	}
	k.refs.Store(1)
	return k
}

// Restore makes the machine what it was at the mark, which may be of another
// interval of the same session.
func (m *Machine) Restore(k *Mark) {
	if m.search {
		m.stopSearch()
	}
	m.iv, m.tid, m.next, m.step = k.iv, k.tid, k.next, k.step
	m.afterSyscall, m.inCall, m.faulted, m.ended = k.after, k.in, k.fault, k.ended
	m.CPU.State = k.cpu
	m.Mem.Restore(k.mem)
}

// hold adds a reference, which a Release of its own gives up.
func (k *Mark) hold() *Mark {
	k.refs.Add(1)
	return k
}

// Release gives up a reference, and with the last the mark's memory.
func (k *Mark) Release() {
	if k.refs.Add(-1) == 0 {
		k.mem.Release()
	}
}

// atEnd reports whether the mark stands at its interval's end.
func (k *Mark) atEnd() bool {
	return k.next == len(k.iv.Events) && (!k.iv.End.Forced || k.ended) || k.atCrash()
}

// atCrash reports whether the mark stands at the fault that ends its interval.
func (k *Mark) atCrash() bool {
	return k.fault && k.next == len(k.iv.Events)-1 && k.iv.End.Kind == checkpoint.EndCrash
}

// Start returns a mark at the start of interval id. Errors: as Machine.
func (s *Session) Start(id uint32) (*Mark, error) {
	m, err := s.Machine(id)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Save(), nil
}
