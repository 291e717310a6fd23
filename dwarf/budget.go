package dwarf

import (
	"runtime"
	"sync"
)

// Files can be a stranger's: those rebuilt from a recording, and symbol files. What
// a few bytes of DWARF ask for has no bound of its own: sections that compress a
// thousandfold, abbreviations with thousands of attributes that take no bytes, names that
// a million entries refer to, tables that many units share. So whatever is kept is charged
// as memory, and whatever is gone through as work. What there is no room for is not
// found.

// Budget bounds what a module may cost. It is safe for concurrent use. Errors say
// which limit does not allow it.
type Budget interface {
	// Take charges n bytes of memory, which Give gives back.
	Take(n int64, part string) error
	Give(n int64)
	// Spend charges the way through n bytes, or what takes as long: a
	// nanosecond or so for each.
	Spend(n int64, part string) error
}

// meter charges a budget for one module.
type meter struct {
	budget Budget // nil has no bounds

	mu    sync.Mutex
	taken int64
	due   int64 // spent, but not charged yet
	err   error // the first refusal
	full  bool  // memory was refused: nothing more is asked for
}

// what is the part of a recording that errors name.
const what = "symbols and debugging information"

// spendAtOnce is how much work is charged at once: the budget is shared.
const spendAtOnce = 1 << 16

// newMeter returns the meter of what p points to, whose memory is given back when
// nothing refers to p.
func newMeter[T any](b Budget, p *T) *meter {
	m := &meter{budget: b}
	if b != nil {
		runtime.AddCleanup(p, (*meter).close, m)
	}
	return m
}

func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget.Give(m.taken)
	m.taken = 0
}

// spend charges n bytes of work. A nil meter has no bounds.
func (m *meter) spend(n int) error {
	if m == nil || m.budget == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.due += int64(n); m.due < spendAtOnce {
		return nil
	}
	err := m.budget.Spend(m.due, what)
	m.due = 0
	if err != nil {
		m.due = spendAtOnce // so that the next one is refused, too
	}
	return m.refused(err)
}

// isSpent reports whether nothing more can be spent, as far as is known.
func (m *meter) isSpent() bool {
	if m == nil || m.budget == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.due >= spendAtOnce
}

// take charges n bytes of memory.
func (m *meter) take(n int) error {
	if m == nil || m.budget == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return m.err
	}
	if err := m.budget.Take(int64(n), what); err != nil {
		m.full = true
		return m.refused(err)
	}
	m.taken += int64(n)
	return nil
}

func (m *meter) refused(err error) error {
	if m.err == nil {
		m.err = err
	}
	return err
}

// Limited returns the error of the budget that left something of the file out, nil
// when nothing was.
func (m *Module) Limited() error {
	if m.meter == nil {
		return nil
	}
	m.meter.mu.Lock()
	defer m.meter.mu.Unlock()
	return m.meter.err
}
