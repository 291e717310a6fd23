package debug

import (
	"path/filepath"
	"slices"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/debug/api"
)

// Places and numbers in the recording of openThreads.
const (
	threadsCode = 0x401000
	waitingTID  = 10
	runningTID  = 20
)

// openThreads opens a recording of a process of two threads: the one with the greater
// number executes "add $1, %eax; syscall", the other waits in a call.
func openThreads(t *testing.T) *Cursor {
	t.Helper()
	path := filepath.Join(t.TempDir(), "threads.vplay")
	w, err := checkpoint.Create(path, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	code := make([]byte, checkpoint.PageSize)
	copy(code, []byte{0x83, 0xc0, 0x01, 0x0f, 0x05})
	ref, err := w.AddPage(code)
	if err != nil {
		t.Fatal(err)
	}
	runs := checkpoint.Context{TID: runningTID, XState: make([]byte, 576)}
	runs.Regs.RIP, runs.Regs.RFLAGS = threadsCode, 0x202
	waits := checkpoint.Context{TID: waitingTID, InCall: true, XState: make([]byte, 576)}
	waits.Regs.RIP, waits.Regs.RFLAGS, waits.Regs.R[3] = threadsCode+5, 0x202, 0x77
	after := runs
	after.Regs.RIP, after.Regs.R[0], after.Regs.R[1], after.Regs.R[11] = threadsCode+5, 1, threadsCode+5, 0x202
	maps := []checkpoint.Mapping{{Start: threadsCode, End: threadsCode + checkpoint.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec}}
	end := []checkpoint.Context{after, waits}
	if err := w.AddInterval(&checkpoint.Interval{
		PID: waitingTID, Start: []checkpoint.Context{runs, waits}, Maps: maps, Pages: []checkpoint.PageEntry{{Addr: threadsCode, Ref: ref}},
		Events: []checkpoint.Event{{Kind: checkpoint.EventEnter, TID: runningTID, NR: 1, RegHash: checkpoint.HashRegs(&after.Regs)}},
		End:    checkpoint.End{Kind: checkpoint.EndSync, Contexts: end},
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.SetFinal(&checkpoint.Final{Contexts: end, Maps: maps}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(checkpoint.Manifest{PID: waitingTID, CPU: checkpoint.Identity{Vendor: "GenuineIntel", XCR0: 3}}); err != nil {
		t.Fatal(err)
	}
	return openFile(t, path)
}

// TestThreads asks for the threads of a process, in the final image and in replay: all are
// there by their numbers, each with its own registers, and the process stands where
// the one that runs is.
func TestThreads(t *testing.T) {
	g := openThreads(t)
	look := func(where string, rip uint64) {
		t.Helper()
		var tids []int
		for _, th := range g.Threads() {
			tids = append(tids, th.TID)
			if th.PID != waitingTID {
				t.Errorf("%s: thread %d is of process %d", where, th.TID, th.PID)
			}
		}
		if !slices.Equal(tids, []int{waitingTID, runningTID}) {
			t.Errorf("%s: the threads are %v", where, tids)
		}
		if g.tid() != runningTID || g.state().RIP != rip {
			t.Errorf("%s: thread %d is at %#x", where, g.tid(), g.state().RIP)
		}
		if r, err := g.Registers(runningTID); err != nil || r.RIP != rip || r.GPR[3] != 0 {
			t.Errorf("%s: the thread that runs has %+v, %v", where, r, err)
		}
		if r, err := g.Registers(waitingTID); err != nil || r.RIP != threadsCode+5 || r.GPR[3] != 0x77 {
			t.Errorf("%s: the thread that waits has %+v, %v", where, r, err)
		}
		symbols := NewSymbols(g)
		for tid, pc := range map[int]uint64{runningTID: rip, waitingTID: threadsCode + 5} {
			if frames := symbols.Stack(tid, 1); len(frames) != 1 || frames[0].PC != pc {
				t.Errorf("%s: the stack of thread %d is %+v", where, tid, frames)
			}
		}
		if frames := symbols.Stack(30, 1); len(frames) != 0 {
			t.Errorf("%s: thread 30 has a stack", where)
		}
		if _, err := g.Registers(30); err == nil {
			t.Errorf("%s: thread 30 has registers", where)
		}
		for _, name := range []string{"/proc/10/status", "/proc/10/task/20/status", "/proc/10/task/10/status"} {
			if _, err := g.OpenFile(name); err != nil {
				t.Errorf("%s: %s: %v", where, name, err)
			}
		}
	}
	look("the final image", threadsCode+5)
	if err := g.Rewind(); err != nil {
		t.Fatal(err)
	}
	look("the beginning", threadsCode)
	if _, err := g.Resume(t.Context(), api.Resume{Kind: api.Step}); err != nil {
		t.Fatal(err)
	}
	look("behind a step", threadsCode+3)
	if err := g.Divert(nil); err != nil {
		t.Fatal(err)
	}
	look("a diversion", threadsCode+3)
}
