//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// How a thread ends that is not the last. The kernel writes for it: zero where
// set_tid_address(2) has said, which others wait for, and the words of the robust futexes
// that it holds. That happens after its last stop; so it keeps its turn until it is gone,
// and its end is logged then, with these words.

// onThreadExitEvent is PTRACE_EVENT_EXIT of a thread that leaves others behind.
func (t *thread) onThreadExitEvent() {
	t.atExitEvent = true
	t.noteExitWords()
}

// noteExitWords takes note of what the kernel may write at the thread's end.
func (t *thread) noteExitWords() {
	t.exitWords = nil
	if t.clearTID != 0 {
		t.exitWords = append(t.exitWords, abi.Range{Addr: t.clearTID, Len: 4})
	}
	t.exitWords = append(t.exitWords, t.robustWords()...)
}

// diesBeside reports whether a signal that kills the thread's process is no crash, and leaves
// the process behind whose memory it shares: then it ends as by exit(2).
func (t *thread) diesBeside(sig int) bool {
	g := t.group()
	return g.shares() && t.proc != g.of && !t.proc.isCrash(sig)
}

// endBeside is the exit event of such a thread. In its own code no event has a place: the
// interval ends there by force, and the thread's end is the first event of the next.
func (t *thread) endBeside(forced bool) error {
	if forced {
		err := t.space().withoutShadow(func() error {
			return t.group().cut(t, intervalEnd{kind: checkpoint.EndForced, forced: true})
		})
		if err != nil {
			return err
		}
	}
	t.exiting, t.call.mayBlock = true, false
	t.onThreadExitEvent()
	return nil
}

// onThreadGone logs the end of a thread that has gone, and forgets it. One that was killed where it
// was resumed may have had PTRACE_EVENT_EXIT behind it with that: its end is known inside a call only.
func (t *thread) onThreadGone(ws unix.WaitStatus) {
	t.ended = true
	g := t.group()
	g.turns.why = checkpoint.SchedExit
	switch {
	case g.done || g.cur == nil:
	case t.exiting:
		t.logThreadEnd(exitCode(ws))
	case t.call.in:
		t.noteExitWords()
		t.logThreadEnd(exitCode(ws))
	default:
		g.lateEnd(t.proc)
	}
	g.forget(t)
}

// logThreadEnd logs the end of the thread, inside its last call, or where a signal has killed it.
func (t *thread) logThreadEnd(status int) {
	regs := t.replayed()
	t.logEvent(checkpoint.Event{
		Kind: checkpoint.EventThread, Thread: checkpoint.ThreadExit, Status: int32(status),
		RegHash: checkpoint.HashRegs(&regs), Writes: t.space().readWrites(t.exitWords),
	})
}

// forget takes a thread out of the group's turns.
func (g *group) forget(t *thread) {
	u := &g.turns
	is := func(o *thread) bool { return o == t }
	if u.has == t {
		u.has = nil
	}
	u.threads, u.ready = slices.DeleteFunc(u.threads, is), slices.DeleteFunc(u.ready, is)
	t.session.scheduler.gone(t.tid)
	g.timer.gone(t.tid)
	if t.scratch.Len != 0 {
		t.space().spare = append(t.space().spare, t.scratch)
		t.scratch = abi.Range{}
	}
	if a := t.space().agent; a != nil && t.block != nil {
		a.spare = append(a.spare, t.block)
		t.block = nil
	}
	t.proc.lookElsewhere(t.tid)
}

// awaitZombie waits for the end of the first thread of a process in which others live, which
// has left its last stop: the kernel keeps its status until they have ended, too.
func (t *thread) awaitZombie() error {
	for end := time.Now().Add(zombieLimit); stateOf(t.proc.pid) != 'Z'; time.Sleep(sharingTick) {
		if time.Now().After(end) {
			return fmt.Errorf("thread %d does not end", t.tid)
		}
	}
	t.onThreadGone(0)
	return nil
}

// zombieLimit is how long the end of a thread may take.
const zombieLimit = 10 * time.Second

// The list of robust futexes that a thread holds (include/uapi/linux/futex.h, struct
// robust_list_head): a circular list, the offset from an entry to its word, and an entry that
// is being added or removed.
const (
	robustHeadSize = 24
	robustLimit    = 2048 // ROBUST_LIST_LIMIT
)

// robustWords returns the words of the robust futexes on the thread's list.
func (t *thread) robustWords() []abi.Range {
	if t.robust == 0 {
		return nil
	}
	var head [robustHeadSize]byte
	if t.space().readMem(t.robust, head[:]) != len(head) {
		return nil
	}
	offset, pending := le64(head[8:]), le64(head[16:])&^1
	var out []abi.Range
	add := func(entry uint64) {
		if entry != 0 {
			out = append(out, abi.Range{Addr: entry + offset, Len: 4})
		}
	}
	for entry, n := le64(head[0:])&^1, 0; entry != t.robust && entry != 0 && n < robustLimit; n++ {
		add(entry)
		var next [8]byte
		if t.space().readMem(entry, next[:]) != len(next) {
			break
		}
		entry = le64(next[:]) &^ 1
	}
	add(pending)
	return out
}

// robustPages returns the pages of memory that the group shares with others in which there are
// robust futexes on its threads' lists.
func (g *group) robustPages() (out []sharedPage) {
	if g.sharers == nil {
		return nil
	}
	for _, t := range g.turns.threads {
		sp := t.space()
		for _, w := range t.robustWords() {
			if m := sp.maps.at(w.Addr); m != nil && isShared(m) {
				out = append(out, sharedPage{sp.objects.file(m.Object), keyIn(&m.Mapping, w.Addr).index})
			}
		}
	}
	return out
}

// onOthersExec answers a stop or end of a thread while another executes a program, which
// ends it. The kernel gives the other one the number of the process's first thread.
func (t *thread) onOthersExec(ws unix.WaitStatus) error {
	s, by := t.session, t.group().turns.has
	switch {
	case ws.Stopped() && (ptrace.Event(ws) == unix.PTRACE_EVENT_EXEC || t.tid == t.proc.pid && !isThreadOf(by.proc.pid, by.tid)):
		// Killed in the execve, it has that number without having said so.
		by.becomeOnly()
		return by.onStop(ws)
	case !ws.Stopped():
		t.ended = true
		s.drop(t.tid)
		t.group().forget(t)
		return nil
	case ptrace.Event(ws) == unix.PTRACE_EVENT_EXIT:
		if err := s.source.resume(t.tid, ptrace.Cont, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		return nil
	}
	t.stopped(ws) // the exit of a call, which counts if the execve fails
	return nil
}

// replacedBy returns the other thread that has executed a program, and has the number of t since then, the first of the process;
// nil where t is at no such stop.
func (t *thread) replacedBy(ws unix.WaitStatus) *thread {
	if !ws.Stopped() || ptrace.Event(ws) != unix.PTRACE_EVENT_EXEC {
		return nil
	}
	former, err := t.session.source.message(t.tid, unix.PTRACE_EVENT_EXEC)
	if err != nil || int(former) == t.tid {
		return nil
	}
	return t.session.threads[int(former)]
}

// becomeOnly makes the thread the first and only one of its process.
func (t *thread) becomeOnly() {
	s, g := t.session, t.group()
	for _, o := range slices.Clone(g.turns.threads) {
		if o != t && o.proc == t.proc {
			o.ended = true
			s.drop(o.tid)
			g.forget(o)
		}
	}
	s.drop(t.tid)
	t.proc.lookAs(t.proc.pid)
	t.proc.killed = nil
	s.scheduler.gone(t.tid)
	t.tid = t.proc.pid
	s.threads[t.tid] = t
	t.note()
	g.turns.logged = t
	g.timer.turn(t)
}
