//go:build linux && amd64

package record

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// Restartable sequences (man 2 rseq). The kernel writes the number of the CPU into a thread's
// struct rseq at any time, and moves a thread that it interrupts in a critical section to
// another place. A program that is started by the recorder has none: rseq(2) fails. One that is
// attached to has registered its own, so it is taken from each thread, which then finds -1
// for the number of the CPU and asks by getcpu(2), and given back at the end.
//
// A thread that is being made at the attach may go on to register its own, and glibc aborts where
// that fails. So while a process is attached to rseq(2) succeeds, and what it asks for is done at
// the end.

// rseqUnregister is RSEQ_FLAG_UNREGISTER of linux/rseq.h.
const rseqUnregister = 1

// dropRseq takes the struct rseq from the thread, which is at a stop in its own code.
func (t *thread) dropRseq() error {
	r, err := ptrace.GetRseq(t.tid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL) { // a kernel before 5.13
		t.session.noteOnce("the kernel does not tell of restartable sequences: what a thread reads of its CPU may differ in replay")
		return nil
	}
	if err != nil || r.Area == 0 {
		return err
	}
	t.rseq = r
	t.note()
	ret, err := t.callOnce(unix.SYS_RSEQ, r.Area, uint64(r.Size), rseqUnregister, uint64(r.Signature))
	if err != nil {
		return err
	}
	if ret != 0 {
		t.rseq = ptrace.Rseq{}
		t.note()
		return fmt.Errorf("restartable sequences cannot be switched off: %w", unix.Errno(-ret))
	}
	return nil
}

// giveRseq registers the struct rseq of the thread, or of another of a process that was made with
// a copy of its memory.
func (t *thread) giveRseq(in caller) error { return registerRseq(in, &t.rseq) }

func registerRseq(in caller, r *ptrace.Rseq) error {
	if r.Area == 0 {
		return nil
	}
	_, err := in.do(unix.SYS_RSEQ, r.Area, uint64(r.Size), 0, uint64(r.Signature))
	return err
}

// guestRseq returns the result of the thread's own call where its process was attached to.
func (t *thread) guestRseq() int64 {
	defer t.note()
	a := &t.call.args
	switch {
	case a[2] == 0 && t.rseq.Area == 0:
		t.rseq = ptrace.Rseq{Area: a[0], Size: uint32(a[1]), Signature: uint32(a[3])}
	case a[2] == 0:
		return -int64(unix.EBUSY)
	case t.rseq.Area == a[0] && a[0] != 0:
		t.rseq = ptrace.Rseq{}
	default:
		return -int64(unix.EINVAL)
	}
	return 0
}

// rseqSection reports whether the thread, with its registers in t.regs, is in a critical section.
// The kernel leaves it, by the way that the program has for that, when the thread runs again.
func (t *thread) rseqSection() bool {
	r, err := ptrace.GetRseq(t.tid)
	if err != nil || r.Area == 0 {
		return false
	}
	const current = 8 // offset of rseq_cs in struct rseq
	var b [8]byte
	if t.space().readMem(r.Area+current, b[:]) != len(b) || le64(b[:]) == 0 {
		return false
	}
	var cs [32]byte // struct rseq_cs: version, flags, start_ip, post_commit_offset, abort_ip
	if t.space().readMem(le64(b[:]), cs[:]) != len(cs) {
		return false
	}
	return t.regs.Rip-le64(cs[8:]) < le64(cs[16:])
}
