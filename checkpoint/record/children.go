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

// Children of a recorded process. Each is stopped before its first instruction. One that is
// to be recorded starts a recording of its own there (newprocess.go). Others must not notice
// that their parent is recorded: they get RDTSC, CPUID and their CPUs back.

// errDetach says that the program runs on by itself.
var errDetach = errors.New("the program was detached")

// Flags of clone(2), linux/sched.h.
const (
	cloneVM       = 0x100
	cloneSighand  = 0x800
	cloneVfork    = 0x4000
	cloneParent   = 0x8000
	cloneThread   = 0x10000
	cloneUntraced = 0x800000
)

// taskFlags returns the flags of the call that makes a child.
func (t *thread) taskFlags() uint64 { return t.space().flagsOfTask(t.call.nr, t.call.args[0]) }

// flagsOfTask returns the flags of a call that makes a child, by its number and first argument; 0 for
// others.
func (sp *space) flagsOfTask(nr int64, arg uint64) uint64 {
	switch nr {
	case unix.SYS_CLONE:
		return arg
	case unix.SYS_CLONE3:
		var b [8]byte
		if sp.readMem(arg, b[:]) == len(b) {
			return le64(b[:])
		}
	case unix.SYS_VFORK:
		return cloneVM | cloneVfork
	}
	return 0
}

// beforeTask prepares for a new child, or thread.
func (t *thread) beforeTask() (action, error) {
	t.session.reserved.Do(reserveForRecorder)
	flags := t.taskFlags()
	switch {
	case flags&cloneUntraced != 0 && t.call.nr == unix.SYS_CLONE3:
		// These flags are in the program's memory, where another thread may look. Programs make clone(2) on kernels without this call.
		t.call.answered, t.call.answer = true, errnoNoSys
		return action{}, t.patch(func(r *ptrace.Regs) { r.Orig_rax = ^uint64(0) })
	case flags&cloneThread != 0:
		return action{}, t.haveTraced(flags)
	case flags&cloneVM != 0 && t.session.opt.Follow == FollowNone:
		if err := t.beginGap("a child that shares the program's memory"); err != nil {
			return action{}, err
		}
		return action{}, t.haveTraced(flags)
	case flags&cloneVM != 0:
		return action{}, t.haveTraced(flags)
	}
	if err := t.letTSCInCall(); err != nil {
		return action{}, err
	}
	if err := t.haveTraced(flags); err != nil { // now: what an injected call leaves are the program's arguments
		return action{}, err
	}
	// While the child lives, pages it shares do not look dirty any more.
	c, err := t.space().scanPages(t.space().maps.all())
	if err != nil {
		return action{}, err
	}
	t.space().dirtyBeforeFork = t.space().dirtyBeforeFork.union(c.dirty)
	return action{}, nil
}

// haveTraced has the kernel tell of a child also where the program wants nobody to be told of it: a thread, or a process
// that shares the program's memory, as LeakSanitizer's does, stores what would be missing in the log.
func (t *thread) haveTraced(flags uint64) error {
	if flags&cloneUntraced == 0 {
		return nil
	}
	return t.patch(func(r *ptrace.Regs) { r.Rdi &^= cloneUntraced })
}

// leaveFlagsOf gives a new child of t's, which is at its first stop and has its registers, the flags that the program has passed.
func (t *thread) leaveFlagsOf(tid int) error {
	var r ptrace.Regs
	if !t.call.patched {
		return nil
	}
	if err := t.session.source.getRegs(tid, &r); err != nil {
		return err
	}
	r.Rdi = t.call.entry.Rdi
	return t.session.source.setRegs(tid, &r)
}

// onChild answers the making of a child, or of a thread, by the program's call.
func (t *thread) onChild(event int) error {
	msg, err := t.session.source.message(t.tid, event)
	if err != nil {
		return err
	}
	if t.taskFlags()&cloneThread != 0 && !t.group().done {
		return t.onThread(int(msg))
	}
	if err := t.meet(int(msg)); err != nil {
		return err
	}
	if t.call.gap && t.taskFlags()&cloneVfork == 0 {
		t.call.sharing = !outlived(t.proc.pid, int(msg))
	}
	return nil
}

// meet begins to record a new child, or lets it go. One that was killed meanwhile dies.
func (t *thread) meet(pid int) error {
	if _, orphan := t.session.unrecorded[pid]; orphan {
		return nil // it goes on already
	}
	t.session.result.Stats.Children++
	err := t.onProcess(pid)
	if isGone(err) {
		return t.session.letDie(pid, t.proc.pid, err)
	}
	if err != nil {
		return fmt.Errorf("child %d: %w", pid, err)
	}
	return nil
}

// meetUnseen is called where the thread dies: a signal that kills goes before the event that tells
// of a child, or of a thread, which waits at its first stop for ever then.
func (t *thread) meetUnseen() error {
	row, _ := abi.Lookup(t.call.nr)
	if makes := t.call.in && row.Effect == abi.EffectTask; !makes && !t.group().done { // once that is done calls are not looked at
		return nil
	}
	for _, tid := range t.session.unseen(childrenOf(fmt.Sprintf("/proc/%d/task/%d", t.proc.pid, t.tid))) {
		if err := t.meet(tid); err != nil {
			return err
		}
	}
	tids, err := tasksOf(t.proc.pid)
	if err != nil {
		return nil //nolint:nilerr // there are none any more
	}
	for _, tid := range t.session.unseen(tids) { // the process is killed, and its threads with it
		if err := t.session.letDie(tid, t.proc.pid, nil); err != nil {
			return err
		}
	}
	return nil
}

// unseen returns those of the tasks that the recorder traces, and knows as nothing: neither as
// recorded, nor as let run traced, nor as a shadow.
func (s *session) unseen(tids []int) []int {
	return slices.DeleteFunc(tids, func(tid int) bool {
		_, unrecorded := s.unrecorded[tid]
		return unrecorded || s.threads[tid] != nil || s.shadows[tid] != nil || tracerOf(tid) != unix.Gettid()
	})
}

// letDie has a thread of a process end that was killed while the recorder got to know it. err is
// what that ended with, which may say that its end has been waited for.
func (s *session) letDie(tid, pid int, err error) error {
	var gone *goneError
	if errors.As(err, &gone) && !gone.ws.Stopped() {
		return nil
	}
	s.drop(tid)
	delete(s.early, tid)
	s.unrecorded[tid] = pid
	return resumeUnrecorded(tid, 0)
}

// onProcess decides what becomes of a child, once it is at its first stop.
func (t *thread) onProcess(pid int) error {
	ws, err := t.session.waitChild(pid)
	if err == nil {
		err = diesAt(ws)
	}
	if err == nil {
		err = t.leaveFlagsOf(pid)
	}
	if err != nil {
		return err // killed before it ran
	}
	switch {
	case t.session.opt.Follow == FollowNone || t.group().done:
		t.noteStranger()
		return t.releaseChild(pid)
	case t.taskFlags()&cloneVM != 0:
		return t.shareWith(pid)
	case t.session.hasWritten(pid):
		t.noteStranger()
		return t.releaseChild(pid)
	case !t.proc.wanted:
		t.noteStranger()
		return t.leaveUnrecorded(pid)
	}
	return t.recordChild(pid)
}

// diesAt returns a goneError when a thread that has come to ws is dying, or has ended.
func diesAt(ws unix.WaitStatus) error {
	if !ws.Stopped() || isDying(ws) {
		return &goneError{ws}
	}
	return nil
}

// isDying reports whether a thread is at PTRACE_EVENT_EXIT: its memory is still there.
func isDying(ws unix.WaitStatus) bool {
	return ws.Stopped() && ptrace.Event(ws) == unix.PTRACE_EVENT_EXIT
}

// How long the program is kept waiting for a child that shares its memory, and
// how often that is looked at.
const (
	sharingLimit = 200 * time.Millisecond
	sharingTick  = 500 * time.Microsecond
)

// outlived waits, with the program stopped, for a child that shares its memory
// and runs beside it to end or to execute another program: what it writes
// meanwhile belongs to the gap. False says that it did not in time.
func outlived(pid, child int) bool {
	const kcmpVM = 1 // linux/kcmp.h
	for end := time.Now().Add(sharingLimit); time.Now().Before(end); time.Sleep(sharingTick) {
		r, _, e := unix.RawSyscall6(unix.SYS_KCMP, uintptr(pid), uintptr(child), kcmpVM, 0, 0, 0)
		if e == unix.ESRCH || e == 0 && r != 0 {
			return true
		}
		if e != 0 {
			return false
		}
	}
	return false
}

// stopSharing ends the recording behind a call whose child goes on sharing the
// program's memory.
func (t *thread) stopSharing() error {
	reason := "the program shares its memory with another running process; it runs on unrecorded"
	t.session.endEarly(reason)
	if t.session.opt.Keep == KeepAlways {
		if err := t.group().finishBetween(0); err != nil {
			return err
		}
	} else {
		t.session.abandon()
	}
	return t.letProcessGo()
}

// noteStranger takes note of a child that is not recorded.
func (t *thread) noteStranger() {
	t.session.strangers = true
	if !t.call.gap && !t.group().done {
		t.space().noteSharers()
	}
}

// releaseChild lets a new child go, at its first stop.
func (t *thread) releaseChild(pid int) error {
	if err := t.makeNative(pid); err != nil {
		return err
	}
	return ptrace.Resume(pid, ptrace.Detach, 0)
}

// giveUp ends the recording at a call's entry and detaches from the program,
// which then makes the call by itself.
func (t *thread) giveUp(reason string) error {
	if t.group().shares() {
		if err := t.splitOff(); err != nil {
			return err
		}
	}
	if t.proc == t.session.first {
		t.session.endEarly(reason)
	} else {
		t.session.noteOnce(fmt.Sprintf("process %d runs on unrecorded: %s", t.proc.pid, reason))
	}
	return errors.Join(t.group().stopAt(t, reason), t.letProcessGo())
}

// stopAt ends what is recorded of the group at a call's entry of t's.
func (g *group) stopAt(t *thread, reason string) error {
	if g.session.opt.Keep == KeepCrash || g.cur == nil {
		return nil
	}
	return g.endAt(t, intervalEnd{kind: checkpoint.EndStop, reason: reason})
}
