//go:build linux && amd64

package record

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// RDTSC, RDTSCP and (where the CPU can) CPUID are made to fault, with
// PR_SET_TSC and ARCH_SET_CPUID, and executed here instead, so that what they
// answer is in the log.

// Requests of prctl(2) and arch_prctl(2).
const (
	prGetTSC     = 25
	prSetTSC     = 26
	prTSCEnable  = 1
	prTSCSegv    = 2
	archGetCPUID = 0x1011
	archSetCPUID = 0x1012
)

// trapState says what is made to fault.
type trapState struct {
	tsc, cpuid bool
	// What the program itself asked to fault, and therefore sees.
	ownTSC, ownCPUID bool
	answers          []checkpoint.CPUIDLeaf
	handler          uint64 // takes SIGSEGV in the program (trapsegv.go); 0 for the program's own action
}

// arm makes the instructions fault in the program's image. The program is at
// the exit of its execve.
func (t *thread) arm() error {
	t.session.guard.traps(t.session.haltsTSC, !t.session.opt.NoTrapCPUID)
	if err := t.admit(); err != nil {
		return err
	}
	if err := t.armTSC(); err != nil || t.session.opt.NoTrapCPUID {
		return err
	}
	ret, err := t.callOnce(unix.SYS_ARCH_PRCTL, archSetCPUID, 0)
	t.proc.trap.cpuid, t.proc.trap.ownCPUID = err == nil && ret == 0, false // execve lets CPUID run again
	return err
}

// armTSC makes RDTSC fault: where the kernel's way does nothing, halts.go does.
func (t *thread) armTSC() error {
	if t.session.haltsTSC {
		t.proc.trap.tsc, t.tscRuns = true, true
		t.session.noteOnce("RDTSC cannot be made to fault here: it is looked for in the program's files, and CPUID with it; where one is not found, as in code that is made at run time, replay may stop")
		return nil
	}
	ret, err := t.callOnce(unix.SYS_PRCTL, prSetTSC, prTSCSegv)
	if err != nil {
		return err
	}
	t.tscRuns = false
	if t.proc.trap.tsc = ret == 0; !t.proc.trap.tsc {
		t.session.noteOnce("RDTSC cannot be trapped here; a program that executes it does not replay")
	}
	return nil
}

// disarm gives a borrowed program its instructions back.
func (s *trapState) disarm(in caller) error {
	if s.tsc && !s.ownTSC {
		if _, err := in.do(unix.SYS_PRCTL, prSetTSC, prTSCEnable); err != nil {
			return err
		}
	}
	if s.cpuid && !s.ownCPUID {
		if _, err := in.do(unix.SYS_ARCH_PRCTL, archSetCPUID, 1); err != nil {
			return err
		}
	}
	return s.defaultSegv(in)
}

// guestTraps answers the program's own requests about what faults: the kernel's
// setting is the recorder's, and must stay.
func (t *thread) guestTraps() error {
	a := &t.call.args
	c := &t.call
	switch {
	case c.nr == unix.SYS_PRCTL && a[0] == prSetTSC && t.proc.trap.tsc && (a[1] == prTSCEnable || a[1] == prTSCSegv):
		t.proc.trap.ownTSC = a[1] == prTSCSegv
		c.answer = 0
		if err := t.space().forget(func(s *site) bool { return s.kind == siteTSC && s.stub != 0 }); err != nil {
			return err
		}
	case c.nr == unix.SYS_ARCH_PRCTL && a[0] == archSetCPUID && t.proc.trap.cpuid:
		t.proc.trap.ownCPUID = a[1] == 0
		c.answer = 0
	case c.nr == unix.SYS_ARCH_PRCTL && a[0] == archGetCPUID && t.proc.trap.cpuid:
		c.answer = 1
		if t.proc.trap.ownCPUID {
			c.answer = 0
		}
	default:
		return nil
	}
	c.answered = true
	t.proc.note()
	return t.patch(func(r *ptrace.Regs) { r.Orig_rax = ^uint64(0) })
}

// answerTSC corrects what PR_GET_TSC has stored.
func (t *thread) answerTSC() {
	v := byte(prTSCEnable)
	if t.proc.trap.ownTSC {
		v = prTSCSegv
	}
	if _, err := t.space().mem.writeAt([]byte{v, 0, 0, 0}, t.call.args[1]); err != nil {
		t.session.log.Warn().Err(err).Msg("PR_GET_TSC not corrected")
	}
}

// trapped decodes a trapped instruction: which it is and its length, 0 for
// anything else.
func trapped(b []byte) (checkpoint.InstrKind, uint64) {
	n := uint64(0)
	for len(b) > 0 && (b[0]&0xf0 == 0x40 || b[0] == 0x66 || b[0] == 0xf2 || b[0] == 0xf3) {
		b, n = b[1:], n+1
	}
	switch {
	case len(b) >= 2 && b[0] == 0x0f && b[1] == 0x31:
		return checkpoint.InstrRDTSC, n + 2
	case len(b) >= 3 && b[0] == 0x0f && b[1] == 0x01 && b[2] == 0xf9:
		return checkpoint.InstrRDTSCP, n + 3
	case len(b) >= 2 && b[0] == 0x0f && b[1] == 0xa2:
		return checkpoint.InstrCPUID, n + 2
	case len(b) >= 3 && b[0] == 0x0f && b[1] == 0xc7 && b[2] >= 0xf0:
		return checkpoint.InstrRandom, n + 3
	}
	return 0, 0
}

// trappedHere returns which instruction at rip the recorder has made to fault, and its bytes, at most 15; 0
// for none.
func (t *thread) trappedHere() (checkpoint.InstrKind, uint64, []byte) {
	var there [15]byte
	n := t.space().readMem(t.regs.Rip, there[:])
	code := t.ownInsn(there[:n])
	kind, size := trapped(code)
	faults := false
	switch trap := &t.proc.trap; kind {
	case checkpoint.InstrRDTSC, checkpoint.InstrRDTSCP:
		faults = trap.tsc && (!trap.ownTSC || !TSCFaults()) // else the program wants the fault, and would have it
	case checkpoint.InstrCPUID:
		faults = trap.cpuid && !trap.ownCPUID || there[0] == hlt
	case checkpoint.InstrRandom:
		faults = there[0] == hlt
	}
	if !faults {
		return 0, 0, nil
	}
	return kind, size, code
}

// atTrapped reports whether the thread, at the delivery of a SIGSEGV, has it for such an instruction.
func (t *thread) atTrapped() bool {
	var si ptrace.Siginfo
	if t.session.source.getSiginfo(t.tid, &si) != nil || si.Code() != siKernel {
		return false
	}
	kind, _, _ := t.trappedHere()
	return kind != 0
}

// emulate executes the trapped instruction at rip, if there is one.
func (t *thread) emulate() (bool, error) {
	kind, size, code := t.trappedHere()
	if kind == 0 {
		return false, nil
	}
	if err := t.shield(); err != nil {
		return false, err
	}
	if led, err := t.leadTSC(kind, size); led || err != nil {
		return true, errors.Join(err, t.repairSegv(), t.unshield())
	}
	before := regsOf(&t.regs)
	r := &t.regs
	out := t.execute(kind, code)
	t.logEvent(checkpoint.Event{
		Kind: checkpoint.EventInstr, Instr: kind, RegHash: checkpoint.HashRegs(&before), Regs: t.session.debugRegs(&before), Out: out,
	})
	t.session.result.Stats.Instrs++
	r.Rip += size
	r.Orig_rax = ^uint64(0)
	if err := t.setRegs(r); err != nil {
		return false, err
	}
	if err := t.repairSegv(); err != nil {
		return false, err
	}
	t.sig.atExit = *r
	if err := t.unshield(); err != nil {
		return false, err
	}
	return true, t.syncPoint()
}

// execute executes a trapped instruction, whose bytes are code, but does not move behind it. It returns what the log has of it.
func (t *thread) execute(kind checkpoint.InstrKind, code []byte) (out [4]uint64) {
	r := &t.regs
	switch kind {
	case checkpoint.InstrRandom:
		return giveRandom(r, code)
	case checkpoint.InstrCPUID:
		l := t.proc.cpuidAnswer(uint32(r.Rax), uint32(r.Rcx))
		r.Rax, r.Rbx, r.Rcx, r.Rdx = uint64(l.EAX), uint64(l.EBX), uint64(l.ECX), uint64(l.EDX)
	case checkpoint.InstrRDTSCP:
		r.Rcx = uint64(rdtscpAux())
		fallthrough
	default:
		tsc := t.session.tsc.now()
		r.Rax, r.Rdx = tsc&0xffffffff, tsc>>32
	}
	return [4]uint64{r.Rax, r.Rbx, r.Rcx, r.Rdx}
}

// repairSegv undoes what the kernel does to a program that blocks or ignores
// SIGSEGV when it forces one: the action becomes the default and the signal is
// unblocked, before the tracer sees the stop.
func (t *thread) repairSegv() error {
	const bit = 1 << (unix.SIGSEGV - 1)
	blocked := t.sig.mask&bit != 0
	if !blocked && t.proc.segv.handler != 1 {
		return nil
	}
	if blocked {
		if err := t.session.source.setSigmask(t.tid, t.sig.mask); err != nil {
			return err
		}
	}
	if t.proc.segv.handler == 0 {
		return nil
	}
	return t.setAction(int(unix.SIGSEGV), t.proc.segv)
}

// setAction has the thread set its process's action for a signal.
func (t *thread) setAction(sig int, a kernelAction) error {
	var b [32]byte
	for i, v := range []uint64{a.handler, a.flags, a.restorer, a.mask} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	return t.withScratch(len(b), func(addr uint64) error {
		if _, err := t.space().mem.writeAt(b[:], addr); err != nil {
			return err
		}
		_, err := t.callOnce(unix.SYS_RT_SIGACTION, uint64(sig), addr, 0, 8)
		return err
	})
}
