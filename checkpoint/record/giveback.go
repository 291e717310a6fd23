//go:build linux && amd64

package record

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Signals that the recorder has taken out of the kernel's queue go back into it when their thread is let go, with what
// came with them: who has sent them, and the value of sigqueue(3). Only a thread itself may queue a signal for itself as if
// the kernel, or another process, had sent it (man 2 rt_tgsigqueueinfo), so it makes that call for the recorder. All signals
// are blocked meanwhile, and delivered when it goes on.

// Where in a page that the thread maps for it the calls' arguments are.
const (
	giveInfo = 0
	giveSet  = giveInfo + uint64(len(ptrace.Siginfo{}))
	giveTime = giveSet + 8
	giveSize = giveTime + 16
)

// giveSignals has the borrowed thread queue the signals that are held back for it, and one that the recorder has sent anew
// and that was not delivered yet.
func (t *thread) giveSignals(in caller) error {
	if len(t.sig.held) == 0 && t.sig.giving == nil {
		return nil
	}
	if status, err := statusOf(t.tid); err != nil || status.Number("Seccomp") != 0 {
		return err // a filter need not allow the calls
	}
	room, err := in.do(unix.SYS_MMAP, 0, checkpoint.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	if err != nil || room < 0 {
		return err // at a limit: they are sent without
	}
	err = t.giveFrom(in, uint64(room))
	_, merr := in.do(unix.SYS_MUNMAP, uint64(room), checkpoint.PageSize)
	return errors.Join(err, merr)
}

// giveFrom is giveSignals with room for arguments.
func (t *thread) giveFrom(in caller, room uint64) error {
	if err := t.takeSent(in, room); err != nil {
		return err
	}
	var ids [2]uint64 // as the thread knows them: it may be in a PID namespace
	for i, nr := range []int64{unix.SYS_GETPID, unix.SYS_GETTID} {
		id, err := in.do(nr)
		if err != nil {
			return err
		}
		ids[i] = uint64(id)
	}
	for i, h := range t.sig.held {
		if _, err := t.space().mem.writeAt(h.info[:], room+giveInfo); err != nil {
			return err
		}
		ret, err := in.do(unix.SYS_RT_TGSIGQUEUEINFO, ids[0], ids[1], uint64(h.signo), room+giveInfo)
		if err != nil || ret != 0 { // the rest is sent without
			t.sig.held = t.sig.held[i:]
			return err
		}
	}
	t.sig.held = nil
	return nil
}

// takeLimit is how many signals takeSent takes: another process may go on sending.
const takeLimit = 1 << 10

// takeSent takes a signal that the recorder has sent anew out of the queue, and with it, for the order, all others of its
// number, and holds them back as they were.
func (t *thread) takeSent(in caller, room uint64) error {
	g := t.sig.giving
	if g == nil {
		return nil
	}
	var args [giveSize]byte
	binary.LittleEndian.PutUint64(args[giveSet:], 1<<(g.signo-1)) // and a time-out of 0
	if _, err := t.space().mem.writeAt(args[:], room); err != nil {
		return err
	}
	var list []heldSignal
	for len(list) < takeLimit {
		sig, err := in.do(unix.SYS_RT_SIGTIMEDWAIT, room+giveSet, room+giveInfo, room+giveTime, 8)
		if err != nil {
			return err
		}
		h := heldSignal{signo: int(sig)}
		if sig < 0 || t.space().readMem(room+giveInfo, h.info[:]) != len(h.info) {
			break
		}
		if g != nil && h.info.Code() == siTkill {
			h.info, g = g.info, nil
		}
		list = append(list, h)
	}
	t.sig.giving = nil
	t.sig.held = append(list, t.sig.held...)
	return nil
}

// sendAs sends a signal to a thread, with what came with it where the kernel lets another process do that.
func sendAs(pid, tid int, h *heldSignal) {
	if h.info.Signo() == int32(h.signo) && ptrace.Queue(pid, tid, &h.info) == nil {
		return
	}
	_ = unix.Tgkill(pid, tid, unix.Signal(h.signo)) // it fails only for one that is gone
}
