package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay/mem/rangemap"
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

// threads are the threads of a process that do not run, by number. They are a value that
// never changes, so that snapshots share it, and a switch costs the logarithm of their
// number: a log can switch a million times among a hundred thousand.
type threads struct{ byTID rangemap.Map[*thread] }

// place is where a thread's number stands among all that fit the type.
func place(tid checkpoint.TID) uint64 { return uint64(int64(tid) - math.MinInt32) }

// Bounds implements rangemap.Value.
func (t *thread) Bounds() (start, end uint64) { return place(t.tid), place(t.tid) + 1 }

// Cut implements rangemap.Value; there is nothing to cut.
func (t *thread) Cut(uint64, uint64) *thread { return t }

// find returns the thread with a number, nil when there is none.
func (l threads) find(tid checkpoint.TID) *thread {
	if t := l.byTID.Find(place(tid)); t != nil {
		return *t
	}
	return nil
}

// with returns the threads with t in the place of the one of its number.
func (l threads) with(t *thread) threads {
	start, end := t.Bounds()
	return threads{l.byTID.Replace(start, end, t)}
}

// without returns the threads without the one of that number.
func (l threads) without(tid checkpoint.TID) threads {
	return threads{l.byTID.Replace(place(tid), place(tid)+1)}
}

// chargeThread charges the budget for a thread, which takes ten times what it has in a
// recording, for as long as somebody has it.
func (s *Session) chargeThread(t *thread) error {
	const size = int64(unsafe.Sizeof(thread{})) + threadNode
	b := s.Rec.Budget()
	if b == nil {
		return nil
	}
	if err := b.Take(size, "its threads"); err != nil {
		return err
	}
	runtime.AddCleanup(t, b.Give, size)
	return nil
}

const (
	// threadNode is what a thread takes in threads, in bytes.
	threadNode = 64
	// fewThreads is how many may come and go without a charge.
	fewThreads = 1000
)

// chargeThread is that of the session, for one that is made while it replays.
func (m *Machine) chargeThread(t *thread) error {
	if m.others.byTID.Len() < fewThreads {
		return nil
	}
	err := m.s.chargeThread(t)
	var limit *checkpoint.LimitError
	if errors.As(err, &limit) {
		limit.File = m.s.Rec.File()
	}
	return err
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
		if err == nil {
			err = s.chargeThread(t)
		}
		switch {
		case err != nil:
			return nil, threads{}, fmt.Errorf("thread %d: %w", iv.Start[i].TID, err)
		case &iv.Start[i] == checkpoint.Running(iv.Start):
			first = t
		case t.tid == first.tid || rest.find(t.tid) != nil:
			return nil, threads{}, fmt.Errorf("thread %d is there twice", t.tid)
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
		t := &thread{tid: m.tid, name: m.name, cpu: m.CPU.State, inCall: m.inCall, noXState: m.noXState}
		if err := m.chargeThread(t); err != nil {
			return err
		}
		rest = rest.with(t)
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
	if err := m.chargeThread(t); err != nil {
		return err
	}
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
	out := make([]Thread, 0, m.others.byTID.Len()+1)
	for t := range m.others.byTID.From(0) {
		out = append(out, Thread{(*t).tid, (*t).name, (*t).cpu, (*t).inCall})
	}
	if m.gone {
		return out
	}
	mine := Thread{m.tid, m.name, m.CPU.State, m.inCall || m.afterSyscall}
	i, _ := slices.BinarySearchFunc(out, mine, byTID)
	return slices.Insert(out, i, mine)
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
	n := m.others.byTID.Len()
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
