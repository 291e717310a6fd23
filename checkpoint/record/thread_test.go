//go:build linux && amd64

package record

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// kinds returns the kinds of an interval's events.
func kinds(iv *checkpoint.Interval) (list []checkpoint.EventKind) {
	for i := range iv.Events {
		list = append(list, iv.Events[i].Kind)
	}
	return list
}

// intervalOf returns interval id of a recording.
func intervalOf(t *testing.T, rec *checkpoint.Recording, id uint32) *checkpoint.Interval {
	t.Helper()
	iv, err := rec.Interval(id)
	if err != nil {
		t.Fatal(err)
	}
	return iv
}

// pageOf returns the page at addr of a table.
func pageOf(t *testing.T, rec *checkpoint.Recording, table []checkpoint.PageEntry, addr uint64) []byte {
	t.Helper()
	for _, p := range table {
		if p.Addr == addr {
			var b [checkpoint.PageSize]byte
			if _, err := rec.Page(p.Ref, &b); err != nil {
				t.Fatal(err)
			}
			return b[:]
		}
	}
	return nil
}

// TestMadeUpProgram records a program that exists on paper: it reads 8 bytes, at whose
// call's exit the interval is over, stores to another page, and dies of a signal.
func TestMadeUpProgram(t *testing.T) {
	f, th := newFake(t, Options{Keep: KeepCrash})
	th.group().spacing, th.group().guessed = 0, true // the next sync point ends the interval
	f.script = slices.Concat(
		f.call(unix.SYS_READ, 8, func() { f.store(fakeData+0x100, "12345678") }, 0, fakeData+0x100, 8),
		f.dies(unix.SIGSEGV),
	)
	store := f.script[2]
	f.script[2] = func(how ptrace.Request, sig int) unix.WaitStatus {
		f.store(fakeData+checkpoint.PageSize, "its own")
		return store(how, sig)
	}
	rec := f.run(th)
	if m := rec.Manifest(); !m.Crash || m.Signo != int32(unix.SIGSEGV) || len(rec.Intervals()) != 2 {
		t.Fatalf("%d intervals, %+v", len(rec.Intervals()), m)
	}
	first, second := intervalOf(t, rec, 0), intervalOf(t, rec, 1)
	if got := kinds(first); !slices.Equal(got, []checkpoint.EventKind{checkpoint.EventEnter, checkpoint.EventExit}) {
		t.Fatalf("events %v", got)
	}
	if exit := &first.Events[1]; exit.Result != 8 || len(exit.Writes) != 1 || exit.Writes[0].Addr != fakeData+0x100 || string(exit.Writes[0].Data) != "12345678" {
		t.Errorf("exit: %+v", exit)
	}
	if first.End.Kind != checkpoint.EndSync || first.End.Contexts[0].Regs.RIP != fakeSite+syscallInsnLen {
		t.Errorf("first end: %+v", first.End)
	}
	if second.End.Kind != checkpoint.EndCrash || second.End.Signo != int32(unix.SIGSEGV) || len(second.Events) != 0 {
		t.Errorf("second end: %+v", second.End)
	}
	if b := pageOf(t, rec, second.Pages, fakeData); b == nil || string(b[0x100:0x108]) != "12345678" {
		t.Error("what the call has read is not in the second interval's memory")
	}
	if b := pageOf(t, rec, second.Pages, fakeData+checkpoint.PageSize); b != nil && string(b[:7]) == "its own" {
		t.Error("the second interval begins with what was stored in it")
	}
	final, err := rec.Final()
	if err != nil {
		t.Fatal(err)
	}
	if b := pageOf(t, rec, final.Pages, fakeData+checkpoint.PageSize); b == nil || string(b[:7]) != "its own" {
		t.Error("what the program has stored is not in the final image")
	}
}

// TestHeldSignal: a signal that comes in the middle of the program's code waits for the next
// call, is sent again there, and is delivered with what came with it.
func TestHeldSignal(t *testing.T) {
	const handler = fakeText + 0x800
	f, th := newFake(t, Options{Keep: KeepCrash})
	queued := ptrace.Siginfo{0: byte(unix.SIGUSR1), 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff, 24: 42} // SI_QUEUE with a value
	entry := f.call(unix.SYS_GETPID, 1, nil)
	again := f.call(unix.SYS_GETPID, 7, nil)
	sigs := []int{}
	note := func(s step) step {
		return func(how ptrace.Request, sig int) unix.WaitStatus {
			sigs = append(sigs, sig)
			return s(how, sig)
		}
	}
	f.script = slices.Concat([]step{
		note(func(ptrace.Request, int) unix.WaitStatus { // in its own code
			f.regs.Rip, f.info = fakeText+0x40, queued
			return stopOf(unix.SIGUSR1)
		}),
		note(entry[0]),
		note(func(ptrace.Request, int) unix.WaitStatus { // the call that was undone
			if f.regs.Orig_rax != ^uint64(0) {
				t.Errorf("call %d was made", int64(f.regs.Orig_rax))
			}
			return stopOf(ptrace.SyscallTrap)
		}),
		note(func(ptrace.Request, int) unix.WaitStatus { // sent by the recorder
			if !slices.Equal(f.sent, []unix.Signal{unix.SIGUSR1}) {
				t.Errorf("sent %v", f.sent)
			}
			f.info = ptrace.Siginfo{0: byte(unix.SIGUSR1), 8: 0xfa, 9: 0xff, 10: 0xff, 11: 0xff} // SI_TKILL
			return stopOf(unix.SIGUSR1)
		}),
		func(how ptrace.Request, sig int) unix.WaitStatus { // the handler's frame is built
			if how != ptrace.SingleStep || sig != int(unix.SIGUSR1) || f.info != queued {
				t.Errorf("delivered by request %d, signal %d, with % x", how, sig, f.info[:32])
			}
			f.regs.Rip, f.regs.Rsp = handler, f.regs.Rsp-0x400
			f.store(f.regs.Rsp, "frame")
			return stopOf(unix.SIGTRAP)
		},
	}, again, f.dies(unix.SIGKILL))
	rec := f.run(th)
	if slices.ContainsFunc(sigs, func(sig int) bool { return sig != 0 }) {
		t.Errorf("resumed with signals %v before the sync point", sigs)
	}
	iv := intervalOf(t, rec, 0)
	want := []checkpoint.EventKind{checkpoint.EventEnter, checkpoint.EventExit, checkpoint.EventSignal, checkpoint.EventEnter, checkpoint.EventExit}
	if got := kinds(iv); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	if e := &iv.Events[1]; !e.Restart || e.RestartNR != unix.SYS_GETPID || e.Result != restartNoIntr {
		t.Errorf("the call that was undone: %+v", e)
	}
	if e := &iv.Events[2]; e.Regs.RIP != handler || !bytes.Equal(e.Siginfo, queued[:]) || len(e.Writes) != 1 || !bytes.HasPrefix(e.Writes[0].Data, []byte("frame")) {
		t.Errorf("the signal: rip %#x, % x, %d writes", e.Regs.RIP, e.Siginfo, len(e.Writes))
	}
	if e := &iv.Events[4]; e.Restart || e.Result != 7 {
		t.Errorf("the call that was made: %+v", e)
	}
}

// TestKilledAtEntry: a program that is killed where it makes a call ends in that call, whatever the
// recorder was about to do there.
func TestKilledAtEntry(t *testing.T) {
	for _, c := range []struct {
		name string
		held []heldSignal // the call is undone to send one
		undo bool
	}{
		{name: "before its registers are read"},
		{"where its call is undone", []heldSignal{{signo: int(unix.SIGUSR1)}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, th := newFake(t, Options{Keep: KeepAlways})
			th.sig.held = c.held
			entry, dies := f.call(unix.SYS_GETPID, 1, nil)[0], f.dies(unix.SIGKILL)
			f.script = []step{func(how ptrace.Request, sig int) unix.WaitStatus {
				f.regs.Rbx, f.regs.Rcx = 42, fakeSite+syscallInsnLen
				f.killed = !c.undo
				return entry(how, sig)
			}}
			if c.undo {
				f.script = append(f.script, dies[0])
			}
			f.script = append(f.script, dies[1])
			rec := f.run(th)
			iv := intervalOf(t, rec, 0)
			if got := kinds(iv); !slices.Equal(got, []checkpoint.EventKind{checkpoint.EventEnter}) {
				t.Fatalf("events %v", got)
			}
			at := &iv.End.Contexts[0]
			if iv.End.Kind != checkpoint.EndCrash || iv.End.Forced || !at.InCall || at.OrigRAX != unix.SYS_GETPID || at.Regs.R[3] != 42 || at.Regs.RIP != fakeSite+syscallInsnLen {
				t.Errorf("end: %+v", iv.End)
			}
		})
	}
}

// TestForcedEnd: a program that makes no call is stopped by the timer, and the hash of the
// end is that of the pages that have changed.
func TestForcedEnd(t *testing.T) {
	f, th := newFake(t, Options{Keep: KeepCrash})
	before := slices.Clone(f.pages[fakeData])
	timer := &th.group().timer
	f.script = slices.Concat([]step{
		func(ptrace.Request, int) unix.WaitStatus {
			f.store(fakeData, "computed")
			timer.holdUntil(time.Now().Add(-time.Second))
			timer.check(time.Now())
			if !slices.Equal(f.sent, []unix.Signal{reservedSignal}) {
				t.Errorf("the timer has sent %v", f.sent)
			}
			f.regs.Rip = fakeText + 0x44
			f.info = ptrace.Siginfo{0: byte(reservedSignal), 8: 0xfa, 9: 0xff, 10: 0xff, 11: 0xff}
			pid := uint32(unix.Getpid())
			f.info[16], f.info[17], f.info[18], f.info[19] = byte(pid), byte(pid>>8), byte(pid>>16), byte(pid>>24)
			return stopOf(reservedSignal)
		},
	}, f.dies(unix.SIGKILL))
	rec := f.run(th)
	iv := intervalOf(t, rec, 0)
	if iv.End.Kind != checkpoint.EndForced || !iv.End.Forced || iv.End.Contexts[0].Regs.RIP != fakeText+0x44 || len(iv.Events) != 0 {
		t.Errorf("end %+v, %d events", iv.End, len(iv.Events))
	}
	if want := checkpoint.HashPage(fakeData, f.pages[fakeData]) - checkpoint.HashPage(fakeData, before); iv.End.MemHash != want {
		t.Errorf("hash %#x, want %#x", iv.End.MemHash, want)
	}
	if n := th.session.result.Stats.ForcedEnds; n != 2 { // and the program's end, in its own code
		t.Errorf("%d forced ends", n)
	}
}

// TestTimerLosesRace: the timer's signal comes when the program has entered the kernel. The
// call counts as interrupted and is made again, so that the signal does not end it.
func TestTimerLosesRace(t *testing.T) {
	f, th := newFake(t, Options{Keep: KeepCrash})
	timer := &th.group().timer
	entry, again := f.call(unix.SYS_GETPID, 0, nil), f.call(unix.SYS_GETPID, 7, nil)
	f.script = slices.Concat([]step{
		func(how ptrace.Request, sig int) unix.WaitStatus {
			timer.holdUntil(time.Now().Add(-time.Second))
			timer.check(time.Now())
			timer.holdUntil(time.Time{})
			return entry[0](how, sig)
		},
		func(ptrace.Request, int) unix.WaitStatus { return stopOf(ptrace.SyscallTrap) }, // undone
		func(ptrace.Request, int) unix.WaitStatus {
			f.info = ptrace.Siginfo{0: byte(reservedSignal), 8: 0xfa, 9: 0xff, 10: 0xff, 11: 0xff}
			pid := uint32(unix.Getpid())
			f.info[16], f.info[17], f.info[18], f.info[19] = byte(pid), byte(pid>>8), byte(pid>>16), byte(pid>>24)
			return stopOf(reservedSignal)
		},
	}, again, f.dies(unix.SIGKILL))
	rec := f.run(th)
	if n := len(rec.Intervals()); n != 1 {
		t.Errorf("%d intervals: the signal that was too late has ended one", n)
	}
	iv := intervalOf(t, rec, 0)
	if len(iv.Events) != 4 || !iv.Events[1].Restart || iv.Events[3].Result != 7 {
		t.Errorf("events %v", kinds(iv))
	}
}

// TestStopsOfOthers: what the loop collects that is no thread's is kept for whom it is for: a
// child's first stop, which may come before its parent's call reports it, and a shadow's end.
func TestStopsOfOthers(t *testing.T) {
	_, th := newFake(t, Options{})
	s := th.session
	s.notOurs(71, stopOf(unix.SIGSTOP))
	if ws, err := s.waitChild(71); err != nil || ws != stopOf(unix.SIGSTOP) {
		t.Errorf("the child's stop is %#x, %v", uint32(ws), err)
	}
	if len(s.early) != 0 {
		t.Errorf("kept: %v", s.early)
	}
	sh := &shadow{pid: 72}
	s.shadows[72] = sh
	s.notOurs(72, stopOf(unix.SIGCONT))
	if sh.reaped {
		t.Error("a shadow that has stopped counts as reaped")
	}
	s.notOurs(72, diedOf(unix.SIGKILL))
	if !sh.reaped || !isLost(sh) || len(s.shadows) != 0 || len(s.early) != 0 {
		t.Errorf("reaped %t, %d shadows, %v", sh.reaped, len(s.shadows), s.early)
	}
}

// TestTwoThreads: the loop answers the stops of whichever thread comes to one, and ends with
// the last.
func TestTwoThreads(t *testing.T) {
	f, th := newFake(t, Options{})
	s := th.session
	th.group().done = true // nothing is recorded, the threads run to their ends
	const second = 1 << 30
	other := &thread{session: s, proc: th.proc, tid: second}
	s.threads[second] = other
	var resumed []int
	th.group().turns.threads = append(th.group().turns.threads, other)
	f.any = []stopOfThread{
		{th.tid, stopOf(ptrace.SyscallTrap)}, {second, stopOf(unix.SIGTERM)}, {99, stopOf(unix.SIGSTOP)},
		{second, diedOf(unix.SIGTERM)}, {th.tid, stopOf(ptrace.SyscallTrap)}, {th.tid, unix.WaitStatus(3 << 8)},
	}
	f.onResume = func(tid int) { resumed = append(resumed, tid) }
	if err := s.loop(th); !errors.Is(err, errGone) {
		t.Fatal(err)
	}
	if want := []int{th.tid, th.tid, second, th.tid}; !slices.Equal(resumed, want) {
		t.Errorf("resumed %d, want %d", resumed, want)
	}
	if r := &s.result; len(s.threads) != 0 || r.ExitCode != 3 || r.Signal != 0 {
		t.Errorf("%d threads are left, exit code %d, signal %d", len(s.threads), r.ExitCode, r.Signal)
	}
	if _, ok := s.early[99]; !ok {
		t.Error("the stop of an unknown child is lost")
	}
}

// TestLetGoAndEnded: a thread that was let go is its parent's to wait for, and one whose end comes
// in place of a stop has ended, with exit code 0 as with another.
func TestLetGoAndEnded(t *testing.T) {
	f, th := newFake(t, Options{})
	s := th.session
	f.polled = func() (unix.WaitStatus, bool) {
		t.Error("a thread that was let go was waited for")
		return 0, false
	}
	if _, err := th.salvage(errDetach); err != errDetach {
		t.Errorf("let go: %v", err)
	}
	f.any = []stopOfThread{{th.tid, 0}} // exit code 0
	next, err := th.salvage(unix.ESRCH)
	if err != nil {
		t.Fatal(err)
	}
	if err := th.goOn(next); err != errGone || !s.first.over || len(s.threads) != 0 {
		t.Errorf("%v, over %v, %d threads left", err, s.first.over, len(s.threads))
	}
}

// TestKilledAtContext: a thread that is killed while an interval begins has its extended state in it, though that cannot
// be read before PTRACE_EVENT_EXIT.
func TestKilledAtContext(t *testing.T) {
	f, th := newFake(t, Options{})
	for name, context := range map[string]func() checkpoint.Context{"its turn": th.context, "another's turn": th.parkedContext} {
		if f.onWay = 3; len(context().XState) == 0 {
			t.Errorf("%s: no extended state", name)
		}
	}
}

// TestKilledInSigreturn: rt_sigreturn(2) restores the extended state before its exit is in the log, which is never where a signal kills the
// thread then. What it has by then is not what replay has at the call's entry.
func TestKilledInSigreturn(t *testing.T) {
	_, th := newFake(t, Options{})
	th.call.in, th.call.nr = true, unix.SYS_READ
	if c := th.context(); !c.InCall || len(c.XState) == 0 {
		t.Errorf("in read(2): %d bytes of extended state", len(c.XState))
	}
	th.call.nr = unix.SYS_RT_SIGRETURN
	if c := th.context(); !c.InCall || len(c.XState) != 0 {
		t.Errorf("in rt_sigreturn(2): %d bytes of extended state", len(c.XState))
	}
}
