package debug

import (
	"path/filepath"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/debug/api"
)

// openTurns opens a recording of two threads that execute the same code, two times "add $1,
// %eax; syscall". The one that runs first waits in its first call while the other one goes
// up to its own, and then goes on to its second.
func openTurns(t *testing.T) *Cursor {
	t.Helper()
	path := filepath.Join(t.TempDir(), "turns.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	code := make([]byte, checkpoint.PageSize)
	copy(code, "\x83\xc0\x01\x0f\x05\x83\xc0\x01\x0f\x05")
	ref, err := w.AddPage(code)
	if err != nil {
		t.Fatal(err)
	}
	at := func(rip, rax, rcx uint64) (r checkpoint.Regs) {
		r.RIP, r.RFLAGS, r.R[0], r.R[1] = threadsCode+rip, 0x202, rax, rcx
		if rcx != 0 {
			r.R[1], r.R[11] = threadsCode+rcx, 0x202
		}
		return r
	}
	event := func(kind checkpoint.EventKind, tid checkpoint.TID, r checkpoint.Regs) checkpoint.Event {
		e := checkpoint.Event{Kind: kind, TID: tid, NR: 1, RegHash: checkpoint.HashRegs(&r)}
		if kind == checkpoint.EventSched {
			e.NR, e.Why = 0, checkpoint.SchedBlocked
		}
		return e
	}
	context := func(tid checkpoint.TID, r checkpoint.Regs) checkpoint.Context {
		return checkpoint.Context{TID: tid, Regs: r, XState: make([]byte, 576)}
	}
	begin, called, returned := at(0, 0, 0), at(5, 1, 5), at(5, 0, 5)
	end := []checkpoint.Context{context(runningTID, at(10, 1, 10)), context(waitingTID, called)}
	end[1].InCall = true
	maps := []checkpoint.Mapping{{Start: threadsCode, End: threadsCode + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec}}
	if err := w.AddInterval(&checkpoint.Interval{
		PID: waitingTID, Start: []checkpoint.Context{context(runningTID, begin), context(waitingTID, begin)}, Maps: maps,
		Pages: []checkpoint.PageEntry{{Addr: threadsCode, Ref: ref}},
		Events: []checkpoint.Event{
			event(checkpoint.EventEnter, runningTID, called), event(checkpoint.EventSched, waitingTID, begin),
			event(checkpoint.EventEnter, waitingTID, called), event(checkpoint.EventSched, runningTID, called),
			event(checkpoint.EventExit, runningTID, returned), event(checkpoint.EventEnter, runningTID, end[0].Regs),
		},
		End: checkpoint.End{Kind: checkpoint.EndSync, Contexts: end},
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(checkpoint.Manifest{PID: waitingTID, CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 3}}); err != nil {
		t.Fatal(err)
	}
	return openFile(t, path)
}

// TestStepOfThread steps threads that run and threads that do not, both ways: a step ends
// where its thread stands behind it, or at what another one meets before.
func TestStepOfThread(t *testing.T) {
	g := openTurns(t)
	const first, second = runningTID, waitingTID
	for _, c := range []struct {
		what   string
		at     uint64 // begin at this place of the first thread; 0: at the beginning
		breaks uint64 // a breakpoint, 0: none
		r      api.Resume
		want   api.StopKind
		tid    int
		rip    uint64
	}{
		{"the one that runs", 0, 0, api.Resume{Kind: api.Step, TID: first}, api.StopStep, first, 3},
		{"the one that runs, over a switch", 3, 0, api.Resume{Kind: api.Step, TID: first}, api.StopStep, first, 5},
		{"whichever runs, over a switch", 3, 0, api.Resume{Kind: api.Step}, api.StopStep, second, 0},
		{"over a switch to a breakpoint", 3, threadsCode + 3, api.Resume{Kind: api.Step, TID: first}, api.StopBreakpoint, second, 3},
		{"over a switch at a breakpoint", 3, threadsCode, api.Resume{Kind: api.Step, TID: first}, api.StopBreakpoint, second, 0},
		{"one that waits for its turn", 0, 0, api.Resume{Kind: api.Step, TID: second}, api.StopStep, second, 3},
		{"one that does not go on", 5, 0, api.Resume{Kind: api.Step, TID: second}, api.StopReplayEnd, first, 10},
		{"a range", 0, 0, api.Resume{Kind: api.RangeStep, TID: first, Start: threadsCode, End: threadsCode + 8}, api.StopStep, first, 8},
		{"back over a switch", 5, 0, api.Resume{Dir: api.Backward, Kind: api.Step, TID: first}, api.StopStep, first, 3},
		{"back, whichever runs", 5, 0, api.Resume{Dir: api.Backward, Kind: api.Step}, api.StopStep, second, 3},
		{"back over a switch to a breakpoint", 5, threadsCode, api.Resume{Dir: api.Backward, Kind: api.Step, TID: first}, api.StopBreakpoint, second, 0},
		{"back, one that waits", 5, 0, api.Resume{Dir: api.Backward, Kind: api.Step, TID: second}, api.StopStep, second, 3},
		{"back, one that has not run", 3, 0, api.Resume{Dir: api.Backward, Kind: api.Step, TID: second}, api.StopReplayBegin, first, 0},
	} {
		if err := g.Rewind(); err != nil {
			t.Fatal(err)
		}
		for g.tid() != first || g.state().RIP != threadsCode+c.at {
			if stop, err := g.Resume(t.Context(), api.Resume{Kind: api.Step, TID: first}); err != nil || stop.Kind != api.StopStep {
				t.Fatalf("%s: %+v, %v", c.what, stop, err)
			}
		}
		b := api.Breakpoint{Addr: c.breaks}
		if c.breaks != 0 {
			if err := g.SetBreakpoint(b); err != nil {
				t.Fatal(err)
			}
		}
		stop, err := g.Resume(t.Context(), c.r)
		if rip := g.state().RIP; err != nil || stop.Kind != c.want || stop.TID != c.tid || g.tid() != c.tid || rip != threadsCode+c.rip {
			t.Errorf("%s: %+v, %v, at %#x", c.what, stop, err, rip)
		}
		if err := g.ClearBreakpoint(b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Resume(t.Context(), api.Resume{Kind: api.Step, TID: 30}); err == nil || !strings.Contains(err.Error(), "no thread 30") {
		t.Errorf("a step of a thread that is not there: %v", err)
	}
}

// TestDivertedThread changes the registers of a thread that does not run: the copy then
// executes that one, and the other keeps its own.
func TestDivertedThread(t *testing.T) {
	g := openTurns(t)
	if err := g.Rewind(); err != nil {
		t.Fatal(err)
	}
	if err := g.Divert(nil); err != nil {
		t.Fatal(err)
	}
	r, err := g.Registers(waitingTID)
	if err != nil {
		t.Fatal(err)
	}
	r.GPR[0], r.RIP = 41, threadsCode+5
	if err := g.WriteRegisters(waitingTID, r); err != nil {
		t.Fatal(err)
	}
	stop, err := g.ResumeDiverted(t.Context(), api.Resume{Kind: api.Step}, false)
	if err != nil || stop.TID != waitingTID {
		t.Errorf("the copy's step: %+v, %v", stop, err)
	}
	for tid, want := range map[int][2]uint64{waitingTID: {42, threadsCode + 8}, runningTID: {0, threadsCode}} {
		if r, err := g.Registers(tid); err != nil || r.GPR[0] != want[0] || r.RIP != want[1] {
			t.Errorf("thread %d has %+v, %v", tid, r, err)
		}
	}
	if err := g.WriteRegisters(30, r); err == nil {
		t.Error("the registers of a thread that is not there are written")
	}
	g.Undivert()
	if r, err := g.Registers(waitingTID); err != nil || r.GPR[0] != 0 || r.RIP != threadsCode {
		t.Errorf("after the copy: %+v, %v", r, err)
	}
}

// TestSiginfoOfThread asks for the signal that ends a recording: it is one thread's.
func TestSiginfoOfThread(t *testing.T) {
	g := openDemo(t)
	if info, err := g.Siginfo(g.tid()); err != nil || len(info) != 128 {
		t.Errorf("%d bytes, %v", len(info), err)
	}
	if _, err := g.Siginfo(g.tid() + 1); err == nil {
		t.Error("another thread has a signal")
	}
}
