//go:build linux && amd64

package record

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// What answers an instruction that is made to fault when the recorder has just been killed. Its SIGSEGV, which the tracer takes
// otherwise, would end the program before the guardian has it. So as long as the program's own action for SIGSEGV is the
// default, the kernel has a handler for it that makes such instructions run again, and for all else sets the default action
// and has the signal come once more. It stands behind the end of the vdso, in front of the code of vdso.go, which needs no
// mapping, and which children have, too. The program never comes to it while it is recorded, and does not see it: what
// rt_sigaction(2) says is corrected, and the default action is back before a SIGSEGV is delivered.

// Where it stands, from its start.
const (
	segvCode    = 352 // room of the code
	segvAction  = segvCode
	segvDefault = segvAction + 32 // the default action, for rt_sigaction(2)
	segvSize    = segvDefault + 32
)

// segvHandler returns the address of the code, which is in trapsegv_amd64.s.
func segvHandler() uint64

// segvAt is where it stands in a vdso that ends at end.
func segvAt(end uint64) uint64 { return siteAt(end) - uint64(len(vdsoStubs)*vdsoStubSize) - segvSize }

// segvImage returns what stands at an address.
func segvImage(at uint64) []byte {
	const siginfo, onStack, hasRestorer = 0x4, 0x08000000, 0x04000000 // SA_* of asm/signal.h
	b := make([]byte, segvCode, segvSize)
	copyCode(b, segvHandler())
	for _, v := range []uint64{at, siginfo | onStack | hasRestorer, at, 0} { // the kernel wants a restorer, which is not used
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return append(b, make([]byte, segvSize-len(b))...)
}

// placeSegv writes the handler behind the end of a vdso, where it has room.
func (sp *space) placeSegv(end uint64) error {
	sp.segv = 0
	if sp.session.guard == nil {
		return nil
	}
	at := segvAt(end)
	placed, err := sp.placeBehind(at, segvImage(at), "a handler for the case that the recorder is killed")
	if placed {
		sp.segv = at
	}
	return err
}

// handleSegv has the handler take SIGSEGV, where the thread's process has the default action for it. Calls can be injected at the stop.
func (t *thread) handleSegv() error {
	trap, at := &t.proc.trap, t.space().segv
	if at == 0 || t.proc.segv != (kernelAction{}) {
		return nil
	}
	ret, err := t.callOnce(unix.SYS_RT_SIGACTION, uint64(unix.SIGSEGV), at+segvAction, 0, 8)
	if err == nil && ret == 0 {
		trap.handler = at
		t.proc.note()
	}
	return err
}

// defaultSegv gives a borrowed program the default action back, where the handler takes SIGSEGV.
func (s *trapState) defaultSegv(in caller) error {
	if s.handler == 0 {
		return nil
	}
	_, err := in.do(unix.SYS_RT_SIGACTION, uint64(unix.SIGSEGV), s.handler+segvDefault, 0, 8)
	return err
}

// segvAgain is called at the delivery of a signal that is not the recorder's, where calls can be injected. Where it is a SIGSEGV that the
// handler would take, the process gets its own action, and the signal comes again: the instruction faults once more, or it is sent once more.
func (t *thread) segvAgain(sig int, si *ptrace.Siginfo) (bool, error) {
	trap := &t.proc.trap
	if unix.Signal(sig) != unix.SIGSEGV || trap.handler == 0 {
		return false, nil
	}
	err := t.borrow(t.proc.pid, t.tid, trap.defaultSegv)
	trap.handler = 0
	t.proc.note()
	if err != nil || isFault(sig, si) {
		return true, err
	}
	mask := t.sig.mask
	t.sig.giving, t.sig.givingMask = &heldSignal{sig, *si}, &mask
	return true, t.session.source.send(t.proc.pid, t.tid, unix.SIGSEGV)
}

// answerSegv corrects what rt_sigaction(2) has told of SIGSEGV.
func (t *thread) answerSegv() {
	c := &t.call
	if t.proc.trap.handler == 0 || c.nr != unix.SYS_RT_SIGACTION || uint32(c.args[0]) != uint32(unix.SIGSEGV) || c.args[2] == 0 {
		return
	}
	if _, err := t.space().mem.writeAt(make([]byte, 32), c.args[2]); err != nil {
		t.session.log.Warn().Err(err).Msg("the action of SIGSEGV not corrected")
	}
}
