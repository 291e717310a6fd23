package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// A program of two threads, by hand. The first makes the second and waits in read, the
// second stores 42 and ends, the first makes the call whose number was stored.
const (
	firstCode  = 0x401000
	secondCode = 0x401100
	shared     = 0x402000 // the number, what set_tid_address named, what was read
	tidWord    = shared + 8
	readBuffer = shared + 16

	firstTID, secondTID = 10, 20
)

var firstText = []byte{
	0x0f, 0x05, // syscall: clone
	0xb8, 0, 0, 0, 0, // mov $0, %eax
	0x0f, 0x05, // syscall: read
	0x8b, 0x04, 0x25, 0x00, 0x20, 0x40, 0x00, // mov 0x402000, %eax
	0x0f, 0x05, // syscall: 42
}

var secondText = []byte{
	0xc7, 0x04, 0x25, 0x00, 0x20, 0x40, 0x00, 42, 0, 0, 0, // movl $42, 0x402000
	0xb8, 60, 0, 0, 0, // mov $60, %eax
	0x0f, 0x05, // syscall: exit
}

// atCall returns registers behind a SYSCALL of number nr at rip.
func atCall(r checkpoint.Regs, rip, nr uint64) checkpoint.Regs {
	r.RIP, r.R[1], r.R[11], r.R[0] = rip+2, rip+2, r.RFLAGS, nr
	return r
}

// returned returns registers behind a call.
func returned(r checkpoint.Regs, result uint64) checkpoint.Regs {
	r.R[0] = result
	return r
}

// xstateWith returns an XSAVE image with a value in XMM0 and all else initial.
func xstateWith(xmm0 byte) []byte {
	b := make([]byte, 576)
	binary.LittleEndian.PutUint16(b, 0x37f)       // x87 control word
	binary.LittleEndian.PutUint32(b[24:], 0x1f80) // MXCSR
	b[160], b[512] = xmm0, 2                      // XSTATE_BV: SSE
	return b
}

// twoThreads returns the log of the program above in two intervals; the second begins
// where the first thread waits in read.
func twoThreads() []*checkpoint.Interval {
	var r checkpoint.Regs
	r.RIP, r.RFLAGS, r.R[4] = firstCode, 0x202, 0x7ff0
	first := r
	first.R[0] = abi.SYS_CLONE
	clone := atCall(first, firstCode, abi.SYS_CLONE)
	cloned := returned(clone, secondTID)
	second := checkpoint.Regs{RIP: secondCode, RFLAGS: 0x202, FSBase: 0x1234}
	read := atCall(cloned, firstCode+7, abi.SYS_READ)
	exit := atCall(second, secondCode+16, abi.SYS_EXIT)
	done := returned(read, 5)
	last := atCall(done, firstCode+16, 42)

	x1 := xstateWith(1)
	event := func(kind checkpoint.EventKind, tid checkpoint.TID, nr int64, r checkpoint.Regs) checkpoint.Event {
		return checkpoint.Event{Kind: kind, TID: tid, NR: nr, RegHash: checkpoint.HashRegs(&r)}
	}
	start := event(checkpoint.EventThread, secondTID, 0, second)
	start.Thread, start.Parent, start.Flags, start.Regs = checkpoint.ThreadStart, firstTID, abi.CLONE_VM|abi.CLONE_THREAD, &second
	start.Writes = []checkpoint.MemWrite{{Addr: tidWord, Data: []byte{secondTID, 0, 0, 0}}}
	toSecond := event(checkpoint.EventSched, secondTID, 0, second)
	toSecond.Why = checkpoint.SchedBlocked
	ends := event(checkpoint.EventThread, secondTID, 0, exit)
	ends.Thread, ends.Writes = checkpoint.ThreadExit, []checkpoint.MemWrite{{Addr: tidWord, Data: make([]byte, 4)}}
	toFirst := event(checkpoint.EventSched, firstTID, 0, read)
	toFirst.Why = checkpoint.SchedExit
	cloneExit := event(checkpoint.EventExit, firstTID, abi.SYS_CLONE, cloned)
	cloneExit.Result = secondTID
	readExit := event(checkpoint.EventExit, firstTID, abi.SYS_READ, done)
	readExit.Result, readExit.XState = 5, x1
	readExit.Writes = []checkpoint.MemWrite{{Addr: readBuffer, Data: []byte("hello")}}

	waiting := checkpoint.Context{TID: firstTID, Regs: read, InCall: true, OrigRAX: abi.SYS_READ}
	runs := checkpoint.Context{TID: secondTID, Regs: second, XState: x1, OrigRAX: -1}
	return []*checkpoint.Interval{
		{
			ID: 0, PID: firstTID, Start: []checkpoint.Context{{TID: firstTID, Regs: first, XState: x1, OrigRAX: -1}},
			Events: []checkpoint.Event{
				event(checkpoint.EventEnter, firstTID, abi.SYS_CLONE, clone), cloneExit, start,
				event(checkpoint.EventEnter, firstTID, abi.SYS_READ, read), toSecond,
			},
			End: checkpoint.End{Kind: checkpoint.EndSync, Contexts: []checkpoint.Context{runs, waiting}},
		},
		{
			ID: 1, PID: firstTID, Start: []checkpoint.Context{runs, waiting},
			Events: []checkpoint.Event{
				event(checkpoint.EventEnter, secondTID, abi.SYS_EXIT, exit), ends, toFirst, readExit,
				event(checkpoint.EventEnter, firstTID, 42, last),
			},
			End: checkpoint.End{Kind: checkpoint.EndSync, Contexts: []checkpoint.Context{{TID: firstTID, Regs: last, XState: x1}}},
		},
	}
}

// writeThreads writes a recording of these intervals.
func writeThreads(t *testing.T, ivs []*checkpoint.Interval) *Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "threads.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	code := make([]byte, checkpoint.PageSize)
	copy(code, firstText)
	copy(code[secondCode-firstCode:], secondText)
	text, err := w.AddPage(code)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, checkpoint.PageSize)
	data[tidWord-shared] = secondTID
	later, err := w.AddPage(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, iv := range ivs {
		const rx, rw = checkpoint.ProtRead | checkpoint.ProtExec, checkpoint.ProtRead | checkpoint.ProtWrite
		iv.Maps = []checkpoint.Mapping{{Start: firstCode, End: firstCode + 4096, Prot: rx}, {Start: shared, End: shared + 4096, Prot: rw}}
		iv.Pages = []checkpoint.PageEntry{{Addr: firstCode, Ref: text}}
		if i > 0 {
			iv.Pages = append(iv.Pages, checkpoint.PageEntry{Addr: shared, Ref: later})
		}
		if err := w.AddInterval(iv); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewSession(finished(t, w, path, checkpoint.Manifest{PID: firstTID, CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 3}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// runThreads replays an interval to its end and compares that.
func runThreads(s *Session, id uint32) (*Machine, error) {
	m, err := s.Machine(id)
	if err != nil {
		return nil, err
	}
	if _, err := m.Run(Never, false); err != nil {
		m.Close()
		return nil, err
	}
	return m, m.CheckEnd()
}

// TestThreads replays two threads: each goes on with its own registers and extended
// state, and memory is one.
func TestThreads(t *testing.T) {
	s := writeThreads(t, twoThreads())
	for id := range uint32(2) {
		m, err := runThreads(s, id)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var tids []checkpoint.TID
		for _, th := range m.Threads() {
			tids = append(tids, th.TID)
		}
		if want := [][]checkpoint.TID{{firstTID, secondTID}, {firstTID}}[id]; !slices.Equal(tids, want) {
			t.Errorf("interval %d ends with the threads %v, want %v", id, tids, want)
		}
		if id == 0 {
			continue
		}
		var b [5]byte
		if _, f := m.Mem.Peek(readBuffer, b[:]); f.Kind != 0 || string(b[:]) != "hello" {
			t.Errorf("read brought %q, %v", b, f)
		}
		if x := m.CPU.V[0][0]; x != 1 || m.CPU.FSBase != 0 {
			t.Errorf("the first thread has %#x in XMM0 and FS base %#x", x, m.CPU.FSBase)
		}
	}
}

// newCursor returns a cursor on the timeline of a session for the length of a test.
func newCursor(t *testing.T, s *Session) *Cursor {
	t.Helper()
	tl, err := NewTimeline(s, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tl.Close)
	cur, err := tl.NewCursor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cur.Close)
	return cur
}

// TestThreadsBackward steps through both threads, and back: the same threads with the same
// registers at the same positions.
func TestThreadsBackward(t *testing.T) {
	cur := newCursor(t, writeThreads(t, twoThreads()))
	walk := func(step func(context.Context) (Stop, error)) (seen []string) {
		for range 100 {
			m := cur.Machine()
			line := fmt.Sprintf("%s runs %d:", cur.Position(), m.TID())
			for _, th := range m.Threads() {
				line += fmt.Sprintf(" %d at %#x, fs %#x, in call %t", th.TID, th.State.RIP, th.State.FSBase, th.InCall)
			}
			seen = append(seen, line)
			stop, err := step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if stop.Edge {
				return seen
			}
		}
		t.Fatal("there is no edge")
		return nil
	}
	forward := walk(cur.StepForward)
	back := walk(cur.StepBack)
	slices.Reverse(back)
	if !slices.Equal(forward, back) {
		t.Errorf("forward\n%s\nbackward\n%s", strings.Join(forward, "\n"), strings.Join(back, "\n"))
	}
	for _, want := range []string{"runs 10: 10 at 0x401002", "runs 20: 10 at 0x401009, fs 0x0, in call true 20 at 0x401100, fs 0x1234, in call false", "runs 10: 10 at 0x401010"} {
		if !slices.ContainsFunc(forward, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("nowhere %q in\n%s", want, strings.Join(forward, "\n"))
		}
	}
}

// TestThreadsDiverge changes the log so that it does not fit: each is a difference or
// damage that names the thread.
func TestThreadsDiverge(t *testing.T) {
	for _, c := range []struct {
		interval uint32
		change   func(iv *checkpoint.Interval)
		want     string
	}{
		{0, func(iv *checkpoint.Interval) { iv.Events[4].TID = 77 }, "a switch to thread 77, which is not there"},
		{0, func(iv *checkpoint.Interval) { iv.Events[4].RegHash++ }, "registers at event 5, a switch to thread 20"},
		{0, func(iv *checkpoint.Interval) { iv.Events[2].TID = firstTID }, "the start of thread 10, which is there"},
		{0, func(iv *checkpoint.Interval) { iv.Events[2].Regs = nil }, "the start of thread 20, without its registers"},
		{0, func(iv *checkpoint.Interval) { iv.End.Contexts[1].Regs.R[7] = 1 }, "rdi of thread 10 at the interval's end"},
		{0, func(iv *checkpoint.Interval) { iv.End.Contexts = iv.End.Contexts[:1] }, "threads at the interval's end"},
		{0, func(iv *checkpoint.Interval) { iv.End.Contexts[1].TID = 11 }, "thread 11 at the interval's end"},
		{0, func(iv *checkpoint.Interval) { iv.End.Contexts[0].XState = xstateWith(2) }, "extended state of thread 20"},
		{1, func(iv *checkpoint.Interval) { iv.Events[1].TID = firstTID }, "the end of thread 10, which does not run"},
		{1, func(iv *checkpoint.Interval) { iv.Events[3].XState = nil }, "the exit of a call without the thread's extended state"},
		{1, func(iv *checkpoint.Interval) { iv.Start[1].TID = secondTID }, "thread 20 is there twice"},
		{1, func(iv *checkpoint.Interval) { iv.Start[0].XState = nil }, "thread 20: x86: malformed XSAVE image"},
	} {
		ivs := twoThreads()
		c.change(ivs[c.interval])
		m, err := runThreads(writeThreads(t, ivs), c.interval)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if m != nil {
			m.Close()
		}
	}
}

// finished ends the recording that w writes to path, and opens it for the length of the test.
func finished(t *testing.T, w *checkpoint.Writer, path string, m checkpoint.Manifest) *checkpoint.Recording {
	t.Helper()
	if err := w.Finish(m); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// TestThreadsInOrder: the threads that do not run are a value, in the order of their numbers.
func TestThreadsInOrder(t *testing.T) {
	var none threads
	all := none
	for _, tid := range []checkpoint.TID{7, math.MaxInt32, 1, math.MinInt32, -3, 5} {
		all = all.with(&thread{tid: tid})
	}
	fewer := all.without(5).without(6)
	again := fewer.with(&thread{tid: 7, name: "newer"})
	list := func(l threads) (tids []checkpoint.TID) {
		for t := range l.byTID.From(0) {
			tids = append(tids, (*t).tid)
		}
		return tids
	}
	if got, want := fmt.Sprint(list(none), list(all), list(again)), "[] [-2147483648 -3 1 5 7 2147483647] [-2147483648 -3 1 7 2147483647]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if all.find(5) == nil || fewer.find(5) != nil || fewer.find(7).name != "" || again.find(7).name != "newer" {
		t.Errorf("%v %v %v", all, fewer, again)
	}
}
