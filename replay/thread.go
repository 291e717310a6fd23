package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay/x86"
)

// One thread of a process runs at a time, and the log says when another goes on. The one
// that runs has its registers in the machine's processor. The others are here.

// thread is a thread that does not run. It is never changed.
type thread struct {
	tid    checkpoint.TID
	name   string
	cpu    x86.State // Retired and RepIter have no meaning
	inCall bool      // its next event is the exit of a call
	// noXState says that the extended state is not known: the exit of the call has it.
	noXState bool
}

// threads are the threads of a process that do not run, by number. A list is never
// changed, so that snapshots share it.
type threads []*thread

func (l threads) search(tid checkpoint.TID) (int, bool) {
	return slices.BinarySearchFunc(l, tid, func(t *thread, tid checkpoint.TID) int { return cmp.Compare(t.tid, tid) })
}

// find returns the thread with a number, nil when there is none.
func (l threads) find(tid checkpoint.TID) *thread {
	if i, ok := l.search(tid); ok {
		return l[i]
	}
	return nil
}

// with returns the list with t, whose number it does not have, as well.
func (l threads) with(t *thread) threads {
	i, _ := l.search(t.tid)
	return slices.Insert(slices.Clone(l), i, t)
}

// without returns the list without the thread of that number.
func (l threads) without(tid checkpoint.TID) threads {
	i, ok := l.search(tid)
	if !ok {
		return l
	}
	return slices.Delete(slices.Clone(l), i, i+1)
}

// newThread returns the thread of a recorded context.
func (s *Session) newThread(c *checkpoint.Context) (*thread, error) {
	t := &thread{tid: c.TID, name: c.Name, inCall: c.InCall, noXState: c.InCall && len(c.XState) == 0}
	loader.SetRegs(&t.cpu, &c.Regs)
	if t.noXState {
		return t, nil
	}
	return t, t.cpu.SetXState(c.XState, s.layout)
}

// startThreads returns the threads at an interval's start: the one that runs, and the
// others.
func (s *Session) startThreads(iv *checkpoint.Interval) (first *thread, rest threads, err error) {
	for i := range iv.Start {
		t, err := s.newThread(&iv.Start[i])
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("thread %d: %w", iv.Start[i].TID, err)
		case &iv.Start[i] == checkpoint.Running(iv.Start):
			first = t
		case t.tid == first.tid || rest.find(t.tid) != nil:
			return nil, nil, fmt.Errorf("thread %d is there twice", t.tid)
		default:
			rest = rest.with(t)
		}
	}
	return first, rest, nil
}

// switchTo makes the thread that a sched event names the one that runs.
func (m *Machine) switchTo(e *checkpoint.Event) error {
	next := m.others.find(e.TID)
	if next == nil {
		return m.diverged(fmt.Sprintf("a switch to thread %d, which is not there", e.TID), "", "")
	}
	rest := m.others.without(e.TID)
	if !m.gone {
		rest = rest.with(&thread{tid: m.tid, name: m.name, cpu: m.CPU.State, inCall: m.inCall, noXState: m.noXState})
	}
	m.others = rest
	m.resume(next)
	return nil
}

// resume makes a thread the one that runs; time goes on.
func (m *Machine) resume(t *thread) {
	retired := m.CPU.Retired
	m.CPU.State = t.cpu
	m.CPU.Retired, m.CPU.RepIter = retired, 0
	m.tid, m.name, m.inCall, m.noXState, m.gone = t.tid, t.name, t.inCall, t.noXState, false
}

// changeThread applies an event that starts or ends a thread.
func (m *Machine) changeThread(e *checkpoint.Event) error {
	if e.Thread == checkpoint.ThreadExit {
		if e.TID != m.tid {
			return m.diverged(fmt.Sprintf("the end of thread %d, which does not run", e.TID), "", "")
		}
		m.gone = true
		return m.compare(e)
	}
	switch {
	case e.TID == m.tid || m.others.find(e.TID) != nil:
		return m.diverged(fmt.Sprintf("the start of thread %d, which is there", e.TID), "", "")
	case e.Regs == nil || checkpoint.HashRegs(e.Regs) != e.RegHash:
		return m.diverged(fmt.Sprintf("the start of thread %d, without its registers", e.TID), "", "")
	case m.noXState:
		return m.diverged(fmt.Sprintf("the start of thread %d by one whose extended state is not known", e.TID), "", "")
	}
	t := &thread{tid: e.TID, name: m.name, cpu: m.CPU.State}
	loader.SetRegs(&t.cpu, e.Regs)
	m.others = m.others.with(t)
	return nil
}

// noteName takes note of the name that the running thread gives itself with the call at
// whose entry it is.
func (m *Machine) noteName(e *checkpoint.Event) {
	if e.NR != abi.SYS_PRCTL || e.Args[0] != abi.PR_SET_NAME {
		return
	}
	var b [16]byte // TASK_COMM_LEN
	n, _ := m.Mem.Peek(e.Args[1], b[:len(b)-1])
	name, _, _ := bytes.Cut(b[:n], []byte{0})
	m.name = string(name)
}

// Thread is a thread of a machine's process at one position.
type Thread struct {
	TID    checkpoint.TID
	Name   string // that it has given itself (PR_SET_NAME), "" when it is not known
	State  x86.State
	InCall bool // it is inside a system call, or waits to leave it
}

// Threads returns the threads of the process at the current position, by number. There is
// none when the last has ended.
func (m *Machine) Threads() []Thread {
	out := make([]Thread, 0, len(m.others)+1)
	for _, t := range m.others {
		out = append(out, Thread{t.tid, t.name, t.cpu, t.inCall})
	}
	if m.gone {
		return out
	}
	i, _ := m.others.search(m.tid)
	return slices.Insert(out, i, Thread{m.tid, m.name, m.CPU.State, m.inCall || m.afterSyscall})
}

// hasEnded reports whether there is no such thread at the current position.
func (m *Machine) hasEnded(tid checkpoint.TID) bool {
	if tid == m.tid {
		return m.gone
	}
	return m.others.find(tid) == nil
}

// byTID orders threads by number.
func byTID(a, b Thread) int { return cmp.Compare(a.TID, b.TID) }

// checkThreads compares the threads with those that the recorder saw at the interval's
// end.
func (m *Machine) checkThreads(end []checkpoint.Context) error {
	n := len(m.others)
	if !m.gone {
		n++
	}
	if len(end) > 0 && n != len(end) {
		return m.diverged("threads at the interval's end", fmt.Sprint(len(end)), fmt.Sprint(n))
	}
	for i := range end {
		want := &end[i]
		st, of := &m.CPU.State, ""
		if len(end) > 1 {
			of = fmt.Sprintf(" of thread %d", want.TID)
		}
		if want.TID != m.tid {
			t := m.others.find(want.TID)
			if t == nil {
				return m.diverged(fmt.Sprintf("thread %d at the interval's end", want.TID), "there", "not there")
			}
			st = &t.cpu
		}
		got := loader.Regs(st)
		if name, w, g, same := compareRegs(&want.Regs, &got); !same {
			return m.diverged(name+of+" at the interval's end", w, g)
		}
		if d := m.diffXState(st, want.XState); d != "" {
			return m.diverged("extended state"+of+" at the interval's end: "+d, "", "")
		}
	}
	return nil
}
