//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// How a thread comes to be: the kernel stops it before its first instruction, while the
// one that makes it is still inside clone(2). Its start stands in the log behind the exit
// of that call.

// onThread takes note of the thread that the program's call has made.
func (t *thread) onThread(tid int) error {
	n := &thread{session: t.session, proc: t.proc, tid: tid}
	ws, err := t.session.waitChild(tid)
	if err == nil {
		err = diesAt(ws)
	}
	if err == nil {
		err = t.leaveFlagsOf(tid)
	}
	if err == nil {
		err = t.beginThread(n)
	}
	if err == nil {
		t.call.thread = n
		err = n.bringBlock()
	}
	if isGone(err) { // killed, and so are all
		t.call.thread = nil
		return t.session.letDie(tid, t.proc.pid, err)
	}
	return err
}

// beginThread takes note of a thread that the program's call has made in its memory, and that
// is at its first stop.
func (t *thread) beginThread(n *thread) (err error) {
	n.affinity, n.starting, n.name, n.tscRuns, n.listened = t.affinity, true, t.name, t.tscRuns, t.listened
	t.session.threads[n.tid] = n
	n.note()
	if err := t.leaveBlockOf(n.tid); err != nil {
		return err
	}
	if err := n.readRegs(); err != nil {
		return err
	}
	if n.sig.mask, err = t.session.source.getSigmask(n.tid); err != nil {
		return err
	}
	n.call.mem = callMem{n.proc}
	n.parked.regs = n.replayed()
	return n.mapScratch()
}

// startThread logs the start of the thread that the call has made, whose exit is logged.
func (t *thread) startThread() {
	n := t.call.thread
	if n == nil {
		return
	}
	t.call.thread = nil
	flags, childTID := t.cloneArgs()
	regs := n.parked.regs
	ev := checkpoint.Event{
		Kind: checkpoint.EventThread, Thread: checkpoint.ThreadStart, Parent: checkpoint.TID(t.tid), Flags: flags,
		Regs: &regs, RegHash: checkpoint.HashRegs(&regs),
	}
	if flags&abi.CLONE_CHILD_SETTID != 0 {
		ev.Writes = t.space().readWrites([]abi.Range{{Addr: childTID, Len: 4}})
	}
	if flags&abi.CLONE_CHILD_CLEARTID != 0 {
		n.clearTID = childTID
	}
	n.logEvent(ev)
	g := t.group()
	g.turns.threads = append(g.turns.threads, n)
	g.turns.ready = append(g.turns.ready, n)
	t.session.scheduler.started(n.tid, time.Now())
	t.session.result.Stats.Threads++
}

// cloneArgs returns the flags of a call that makes a thread, and the address of the word
// for its number.
func (t *thread) cloneArgs() (flags, childTID uint64) {
	if t.call.nr == unix.SYS_VFORK { // it has no arguments
		return t.taskFlags(), 0
	}
	a := &t.call.args
	if t.call.nr != unix.SYS_CLONE3 {
		return a[0], a[3]
	}
	var b [24]byte // struct clone_args, linux/sched.h: flags, pidfd, child_tid
	t.space().readMem(a[0], b[:])
	return le64(b[0:]), le64(b[16:])
}

// readName reads what the thread calls itself.
func (t *thread) readName() {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", t.tid))
	if err == nil {
		t.name = strings.TrimSuffix(string(b), "\n")
	}
}
