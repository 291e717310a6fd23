package replay

import (
	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Mark is a kept moment of a machine: O(1) to take and to go back to. It is
// immutable; Release gives its memory back.
type Mark struct {
	Pos checkpoint.Position

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
	return &Mark{
		Pos: m.Position(), iv: m.iv, cpu: m.CPU.State, mem: m.Mem.Snapshot(), tid: m.tid,
		next: m.next, step: m.step, after: m.afterSyscall, in: m.inCall, fault: m.faulted, ended: m.ended,
	}
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

// Release gives the mark's memory back.
func (k *Mark) Release() { k.mem.Release() }

// Start returns a mark at the start of interval id. Errors: as Machine.
func (s *Session) Start(id uint32) (*Mark, error) {
	m, err := s.Machine(id)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Save(), nil
}
