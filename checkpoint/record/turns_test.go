//go:build linux && amd64

package record

import (
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// TestWaitingThread: a thread that computes without a call is stopped when another has
// waited for its turn until the limit, which counts from the last place where the turn could
// have ended, and not when nobody waits.
func TestWaitingThread(t *testing.T) {
	f, th := newFake(t, Options{})
	g := th.group()
	other := &thread{session: th.session, proc: th.proc, tid: 1 << 30}
	g.turns.threads = append(g.turns.threads, other)
	other.parked.waits = true
	g.pass(th)
	g.timer.enter(th, true)
	began := g.turns.since
	if g.timer.check(began.Add(time.Hour)); len(f.sent) != 0 {
		t.Fatalf("nobody waits, and %v was sent", f.sent)
	}
	other.stopped(stopOf(ptrace.SyscallTrap))
	if g.timer.check(began.Add(fairLimits.force - time.Millisecond)); len(f.sent) != 0 {
		t.Fatalf("too early, and %v was sent", f.sent)
	}
	if g.timer.check(began.Add(fairLimits.force + time.Millisecond)); !slices.Equal(f.sent, []unix.Signal{reservedSignal}) {
		t.Fatalf("%v was sent for the thread that waits", f.sent)
	}
	g.timer.gone(th.tid)
	g.forget(other)
	g.boundTurn()
	if g.timer.check(began.Add(time.Hour)); len(f.sent) != 1 {
		t.Errorf("the thread that waited has gone, and %v was sent", f.sent[1:])
	}
}

// TestTicker: the timers of all groups look at their deadlines until their groups end.
func TestTicker(t *testing.T) {
	f, th := newFake(t, Options{})
	s := th.session
	second := s.newThread(1 << 30)
	due := time.Now()
	for _, o := range []*thread{th, second} {
		o.group().timer.blocked(0)
		o.group().timer.enter(o, true)
		o.group().timer.holdUntil(due)
	}
	s.ticker.check(due.Add(time.Millisecond))
	if len(f.sent) != 2 {
		t.Fatalf("%v was sent to two groups", f.sent)
	}
	th.group().timer.gone(th.tid)
	second.group().timer.gone(second.tid)
	f.sent = nil
	second.group().leave(second.proc)
	s.ticker.check(due.Add(time.Millisecond))
	if len(f.sent) != 1 {
		t.Errorf("%v was sent to the group that is left", f.sent)
	}
}

// TestTimerOfDead: a thread is killed while a signal of the timer's is on its way to it. No call
// of another is taken for one that the signal has met.
func TestTimerOfDead(t *testing.T) {
	f, th := newFake(t, Options{})
	g := th.group()
	other := &thread{session: th.session, proc: th.proc, tid: 1 << 30}
	g.turns.threads = append(g.turns.threads, other)
	g.timer.enter(other, true)
	now := time.Now()
	g.timer.holdUntil(now)
	if g.timer.check(now.Add(time.Millisecond)); len(f.sent) != 1 {
		t.Fatalf("%v was sent", f.sent)
	}
	g.forget(other)
	if g.timer.comes(other) {
		t.Error("the signal is still awaited")
	}
}

// TestWaitingProcess: a process that computes without a call is stopped when another that shares
// its memory has waited for its turn until the limit, also after a call that it has made
// meanwhile; later where it takes long to compare what they share.
func TestWaitingProcess(t *testing.T) {
	f, th := newFake(t, Options{})
	g, s := th.group(), th.session
	other := &group{session: s}
	waits := &thread{session: s, proc: &process{session: s, space: newSpace(other, 1<<30)}, tid: 1 << 30}
	began := time.Now()
	g.sharers = &sharers{groups: []*group{g, other}, has: g, ran: g, since: began}
	other.sharers = g.sharers
	g.pass(th)
	f.onResume = func(int) {}
	resume := func() {
		if _, _, err := th.resume(ptrace.Syscall, 0, true); err != nil {
			t.Fatal(err)
		}
	}
	resume()
	if g.timer.check(began.Add(time.Hour)); len(f.sent) != 0 {
		t.Fatalf("nobody waits, and %v was sent", f.sent)
	}
	waits.stopped(stopOf(ptrace.SyscallTrap))
	for range 2 {
		if g.timer.check(began.Add(fairLimits.force - time.Millisecond)); len(f.sent) != 0 {
			t.Fatalf("too early, and %v was sent", f.sent)
		}
		if g.timer.check(began.Add(fairLimits.force + time.Millisecond)); !slices.Equal(f.sent, []unix.Signal{reservedSignal}) {
			t.Fatalf("%v was sent for the process that waits", f.sent)
		}
		g.timer.gone(th.tid)
		f.sent = nil
		resume() // from a call's exit
	}
	g.sharers.cost = time.Second
	resume()
	if g.timer.check(began.Add(cutShare*time.Second - time.Millisecond)); len(f.sent) != 0 {
		t.Errorf("too early for what a turn costs, and %v was sent", f.sent)
	}
	if g.timer.check(began.Add(cutShare*time.Second + time.Millisecond)); len(f.sent) != 1 {
		t.Error("nothing was sent for the process that waits")
	}
}

// TestTimersSignal: the timer's signal for one thread, which came to another stop first and gave up
// its turn, is no other thread's. That one makes its calls, the timer can stop it, and when the
// first has its turn again the signal does not end it.
func TestTimersSignal(t *testing.T) {
	f, th := newFake(t, Options{})
	g := th.group()
	other := &thread{session: th.session, proc: th.proc, tid: 1 << 30}
	g.turns.threads = append(g.turns.threads, other)
	send := func(to *thread) {
		t.Helper()
		before := len(f.sent)
		g.timer.enter(to, true)
		g.timer.turnEnds(time.Time{}, time.Now())
		if g.timer.check(time.Now().Add(time.Second)); len(f.sent) != before+1 {
			t.Fatalf("%v was sent", f.sent[before:])
		}
	}
	g.pass(th)
	send(th)
	th.giveUpTurn(action{}, false, checkpoint.SchedSlice)
	g.pass(other)
	entry := f.call(unix.SYS_GETPID, 1, nil)[0]
	f.onResume = func(int) {
		if f.regs.Orig_rax != unix.SYS_GETPID {
			t.Fatal("the call was undone")
		}
	}
	if ws := entry(0, 0); other.onStop(ws) != nil || !other.call.in {
		t.Fatal("the other thread is not in its call")
	}
	send(other)
	g.timer.leave()
	f.info = timersSiginfo()
	g.pass(th)
	if _, err := th.onSignal(int(reservedSignal)); err != nil {
		t.Fatal(err)
	}
	if n := th.session.result.Stats.ForcedEnds; n != 0 || g.timer.comes(th) || !g.timer.comes(other) {
		t.Errorf("%d forced ends; on its way: %v", n, g.timer.sent)
	}
}

// TestWaitHadEnded: the timer's signal is to end a call in which the thread waits, because another is ready, and comes when the call
// has ended by itself. No end of the interval is forced then, which costs much; it is when a deadline has passed.
func TestWaitHadEnded(t *testing.T) {
	for _, wait := range []bool{true, false} {
		f, th := newFake(t, Options{})
		g := th.group()
		g.pass(th)
		g.timer.sent = map[int]sentSignal{th.tid: {signo: reservedSignal, n: 1, wait: wait}}
		f.info = timersSiginfo()
		if _, err := th.onSignal(int(reservedSignal)); err != nil {
			t.Fatal(err)
		}
		if n := th.session.result.Stats.ForcedEnds; (n == 0) != wait || g.timer.comes(th) {
			t.Errorf("to end a wait %v: %d forced ends; on its way: %v", wait, n, g.timer.sent)
		}
	}
}

// timersSiginfo is what the kernel says of a signal of the timer's.
func timersSiginfo() ptrace.Siginfo {
	info := ptrace.Siginfo{0: byte(reservedSignal), 8: 0xfa, 9: 0xff, 10: 0xff, 11: 0xff}
	binary.LittleEndian.PutUint32(info[16:], uint32(os.Getpid()))
	return info
}

// TestLostStop: a SIGCONT has taken the timer's SIGSTOP out of the queue. The timer sends it again,
// to a thread that computes, and a call is made, not undone over and over.
func TestLostStop(t *testing.T) {
	f, th := newFake(t, Options{})
	g := th.group()
	g.pass(th)
	th.sig.mask = 1 << (reservedSignal - 1)
	g.timer.blocked(th.sig.mask)
	g.timer.enter(th, true)
	g.timer.turnEnds(time.Time{}, time.Now())
	later := time.Now().Add(time.Second)
	look := func(want int) {
		t.Helper()
		if g.timer.check(later); len(f.sent) != want {
			t.Fatalf("%v was sent, want %d", f.sent, want)
		}
	}
	look(1)
	f.queued = 1 << (unix.SIGSTOP - 1)
	look(1)
	look(1)
	f.queued = 0 // a SIGCONT, or the thread is about to stop
	look(1)
	look(2)
	g.timer.leave()
	entry := f.call(unix.SYS_GETPID, 1, nil)[0]
	f.onResume = func(int) {
		if f.regs.Orig_rax != unix.SYS_GETPID {
			t.Fatal("the call was undone")
		}
	}
	if ws := entry(0, 0); th.onStop(ws) != nil || !th.call.in {
		t.Error("the thread is not in its call")
	}
	if g.timer.comes(th) {
		t.Error("the signal is still awaited")
	}
}

// TestNoTurnsWhenDone: once the recording is over, the threads that waited for their turns run
// on, each at once, and none gives way to another.
func TestNoTurnsWhenDone(t *testing.T) {
	f, th := newFake(t, Options{})
	g := th.group()
	other := &thread{session: th.session, proc: th.proc, tid: 1 << 30}
	g.turns.threads = append(g.turns.threads, other)
	g.turns.ready = []*thread{other, th}
	th.atSync, other.atSync = true, true // their slices were over
	g.done = true
	var resumed []int
	f.onResume = func(tid int) { resumed = append(resumed, tid) }
	for range 2 {
		next := g.nextTurn()
		if why := next.mustPass(action{}); why != 0 {
			t.Fatalf("thread %d gives up its turn: %v", next.tid, why)
		}
		if err := next.goOn(action{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{other.tid, th.tid}; !slices.Equal(resumed, want) {
		t.Errorf("resumed %d, want %d", resumed, want)
	}
}

// TestDoomed: once a process has been given the signal that kills it, its other threads stay where they stopped until they are
// killed, too. One that executed a program first would live, and the signal be lost.
func TestDoomed(t *testing.T) {
	f, th := newFake(t, Options{})
	g := th.group()
	other := &thread{session: th.session, proc: th.proc, tid: 1 << 30}
	th.session.threads[other.tid] = other
	g.turns.threads = append(g.turns.threads, other)
	g.done, th.proc.killed = true, th
	var resumed []int
	f.onResume = func(tid int) { resumed = append(resumed, tid) }
	for _, err := range []error{
		other.goOn(action{}), other.onWait(stopOf(ptrace.SyscallTrap)), th.goOn(action{sig: int(unix.SIGABRT)}),
		other.onWait(eventOf(unix.PTRACE_EVENT_EXIT)), th.onWait(eventOf(unix.PTRACE_EVENT_EXIT)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{th.tid, other.tid, th.tid}; !slices.Equal(resumed, want) {
		t.Errorf("resumed %d, want %d", resumed, want)
	}
}

// TestExits: once a thread has called exit_group(2), the others stay where they stopped until they are killed.
func TestExits(t *testing.T) {
	f, th := newFake(t, Options{})
	g := th.group()
	g.pass(th)
	other := &thread{session: th.session, proc: th.proc, tid: 1 << 30}
	g.turns.threads, g.turns.ready = append(g.turns.threads, other), []*thread{other}
	var resumed []int
	f.onResume = func(tid int) { resumed = append(resumed, tid) }
	entry := f.call(unix.SYS_EXIT_GROUP, 0, nil, 3)[0]
	for _, err := range []error{th.onWait(entry(0, 0)), other.onWait(eventOf(unix.PTRACE_EVENT_EXIT))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{th.tid, other.tid}; !slices.Equal(resumed, want) {
		t.Errorf("resumed %d, want %d", resumed, want)
	}
}

// TestDiesBeside: a process that dies does not wait for the snapshot of another, which is being written.
func TestDiesBeside(t *testing.T) {
	_, th := newFake(t, Options{})
	g, s := th.group(), th.session
	other := &live{asked: &request{}, out: &output{}, pasts: []past{{group: &group{session: s}}}, over: make(chan error, 1)}
	s.beside = []*live{other}
	if g.dies(); len(s.beside) != 1 {
		t.Fatal("it has waited")
	}
	other.pasts[0].group = g
	other.over <- ErrLost
	if g.dies(); len(s.beside) != 0 {
		t.Error("it has not waited for its own")
	}
}

// TestUnloggedGoesFirst: a thread that has given the turn to another process at the exit of its
// call goes on before the other threads of its own, whoever has waited longer and whatever the
// scheduler wants: what the call has done is in memory, and not in the log.
func TestUnloggedGoesFirst(t *testing.T) {
	_, th := newFake(t, Options{})
	g := th.group()
	g.session.scheduler = never{}
	other := &thread{session: th.session, proc: th.proc, tid: 1 << 30}
	g.turns.threads = append(g.turns.threads, other)
	g.turns.has, g.turns.ready = th, []*thread{other}
	sharing := &group{session: th.session}
	g.sharers = &sharers{groups: []*group{g, sharing}, has: g}
	if th.leaveAtExit(checkpoint.SchedSlice); g.turns.has != nil {
		t.Fatal("the thread keeps the turn")
	}
	if next := g.nextTurn(); next != th {
		t.Fatalf("the turn goes to %v, want the thread that left it", next)
	}
	if next := g.nextTurn(); next != nil {
		t.Errorf("thread %d has a turn, and is held back", next.tid)
	}
}

// never has all threads wait.
type never struct{ fair }

func (never) next([]int, time.Time) int { return -1 }

// TestHeldBack: threads are held back when they are ready and the turn is free. One that waits
// for another, of its group or of one that shares memory with it, is not: the loop then waits
// for that one's stop, and does not look again and again.
func TestHeldBack(t *testing.T) {
	_, th := newFake(t, Options{})
	s, g := th.session, th.group()
	if s.heldBack() {
		t.Error("nobody is ready")
	}
	g.turns.ready = []*thread{th}
	if !s.heldBack() {
		t.Error("a thread is ready and the turn is free")
	}
	other := &group{session: s}
	other.sharers = &sharers{groups: []*group{g, other}, has: other}
	g.sharers = other.sharers
	s.groups = append(s.groups, other)
	if !s.heldBack() {
		t.Error("a thread is ready and nobody of those that share its memory has the turn")
	}
	other.turns.has = &thread{session: s}
	if s.heldBack() {
		t.Error("another group that shares its memory has the turn")
	}
}

// TestHeldBackAlone: the last thread that is left is waited for only while it runs, and is held
// back no more once those that it was to let go first have ended.
func TestHeldBackAlone(t *testing.T) {
	f, th := newFake(t, Options{})
	s, g := th.session, th.group()
	c := newChaos(1)
	s.scheduler = c
	now := time.Now()
	c.again, c.from, c.until = now.Add(time.Hour), now.Add(-time.Second), now.Add(time.Hour)
	second := s.newThread(1 << 30)
	c.draws = []draw{{tid: th.tid, low: true}, {tid: second.tid}}
	delete(s.threads, second.tid) // it has ended
	g.turns.ready = []*thread{th}
	f.status = stopOf(ptrace.SyscallTrap)
	if tid, _, err := s.wait(); tid != 0 || err != nil {
		t.Errorf("thread %d, which is held back, was waited for: %v", tid, err)
	}
	if next := g.nextTurn(); next != nil {
		t.Fatal("the thread is not held back")
	}
	second.group().leave(second.proc)
	if next := g.nextTurn(); next != th {
		t.Error("the thread is held back for one that has ended")
	}
}

// TestEachIsWaitedFor: a thread that is always ready does not keep the recorder from the others, whichever the kernel names first.
func TestEachIsWaitedFor(t *testing.T) {
	f, th := newFake(t, Options{})
	s := th.session
	s.threads[th.tid+1], s.unrecorded = th, map[int]int{th.tid + 2: th.tid + 2}
	f.polled = func() (unix.WaitStatus, bool) { return stopOf(unix.SIGTRAP), true }
	got := map[int]int{}
	for range 6 {
		tid, _, err := s.wait()
		if err != nil {
			t.Fatal(err)
		}
		got[tid]++
	}
	if want := map[int]int{th.tid: 2, th.tid + 1: 2, th.tid + 2: 2}; !maps.Equal(got, want) {
		t.Errorf("stops were taken of %v, want %v", got, want)
	}
	f.polled = nil // none is ready at its turn
	if tid, _, err := s.wait(); tid != os.Getpid() || err != nil {
		t.Errorf("%d: %v, want the one that the kernel names", tid, err)
	}
}
