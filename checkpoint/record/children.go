//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Children of the program are not recorded and must not notice that it is:
// each is stopped at birth, gets RDTSC, CPUID and its CPUs back, and is let go.

// errDetach says that the program runs on by itself.
var errDetach = errors.New("the program was detached")

// Flags of clone(2), linux/sched.h.
const (
	cloneVM       = 0x100
	cloneVfork    = 0x4000
	cloneParent   = 0x8000
	cloneThread   = 0x10000
	cloneUntraced = 0x800000
)

// taskFlags returns the flags of the call that makes a child.
func (t *thread) taskFlags() uint64 {
	switch t.call.nr {
	case unix.SYS_CLONE:
		return t.call.args[0]
	case unix.SYS_CLONE3:
		var b [8]byte
		if t.space().readMem(t.call.args[0], b[:]) == len(b) {
			return le64(b[:])
		}
	case unix.SYS_VFORK:
		return cloneVM | cloneVfork
	}
	return 0
}

// beforeTask prepares for a new child.
func (t *thread) beforeTask() (action, error) {
	flags := t.taskFlags()
	switch {
	case flags&cloneThread != 0:
		return action{}, nil
	case flags&cloneVM != 0:
		return action{}, t.beginGap("a child that shares the program's memory")
	}
	if flags&cloneUntraced != 0 && t.call.nr == unix.SYS_CLONE {
		if err := t.patch(func(r *ptrace.Regs) { r.Rdi &^= cloneUntraced }); err != nil {
			return action{}, err
		}
	}
	// While the child lives, pages it shares do not look dirty any more.
	c, err := t.space().scanPages(t.space().maps.all())
	if err != nil {
		return action{}, err
	}
	t.space().dirtyBeforeFork = t.space().dirtyBeforeFork.union(c.dirty)
	return action{}, nil
}

// onChild releases the child that the program's call has made.
func (t *thread) onChild() error {
	msg, err := t.session.source.message(t.tid)
	if err != nil {
		return err
	}
	if t.taskFlags()&cloneThread != 0 && !t.session.done {
		return t.onThread(int(msg))
	}
	t.session.result.Stats.Children++
	if !t.call.gap {
		t.space().noteSharers()
	}
	if err := t.releaseChild(int(msg)); err != nil && !errors.Is(err, errGone) && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("child %d: %w", msg, err)
	}
	if t.call.gap && t.taskFlags()&cloneVfork == 0 {
		t.call.sharing = !outlived(t.proc.pid, int(msg))
	}
	return nil
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
	t.session.done = true
	if err := t.detach(); err != nil {
		return err
	}
	return errDetach
}

// releaseChild lets a new child go, at its first stop.
func (t *thread) releaseChild(pid int) error {
	ws, err := t.session.waitChild(pid)
	if err != nil {
		return err
	}
	if !ws.Stopped() {
		return nil // killed before it ran
	}
	if err := t.disarmAt(pid, pid); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(pid, &t.affinity); err != nil {
		t.session.log.Warn().Err(err).Msg("affinity of a child not restored")
	}
	return ptrace.Resume(pid, ptrace.Detach, 0)
}

// giveUp ends the recording at a call's entry and detaches from the program,
// which then makes the call by itself.
func (t *thread) giveUp(reason string) error {
	t.session.endEarly(reason)
	if t.session.opt.Keep == KeepAlways {
		if err := t.group().endAt(t, intervalEnd{kind: checkpoint.EndStop, reason: reason}); err != nil {
			return err
		}
	} else {
		t.session.abandon()
	}
	t.session.done = true
	t.group().timer.off()
	if err := t.detach(); err != nil {
		return err
	}
	return errDetach
}
