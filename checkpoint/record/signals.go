//go:build linux && amd64

package record

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// Signals. A signal whose delivery is next while the program is at a sync
// point is delivered there and logged with its frame. One that arrives in the
// middle of the program's own code is held, and handed back to the kernel at
// the entry of the next system call, before that call runs: held across the
// entry of pause(2) it would be too late. What the program ignores passes at
// once. A signal that kills ends the recording where it arrives.

// siTkill is SI_TKILL of asm-generic/siginfo.h; siKernel is SI_KERNEL.
const (
	siTkill  = -6
	siKernel = 0x80
)

// signalState is what the recorder knows of a thread's signals.
type signalState struct {
	mask        uint64 // blocked signals, bit n-1 is signal n
	syncPending bool   // the next stop, if it is a signal, is at the sync point
	atExit      ptrace.Regs
	xstate      []byte // at that exit, where the log must have it
	held        []heldSignal
	giving      *heldSignal // handed back to the kernel, delivery expected
	givingMask  *uint64     // of one that kills: what is blocked once it is delivered, else nil
	repeat      *repeat
	draining    bool // the timer's signal is of no use any more
}

// heldSignal waits for the next system call.
type heldSignal struct {
	signo int
	info  ptrace.Siginfo
}

// kernelAction is the kernel's struct sigaction: handler, flags, restorer, mask.
type kernelAction struct{ handler, flags, restorer, mask uint64 }

// refreshMask reads the blocked signals.
func (t *thread) refreshMask() error {
	mask, err := t.session.source.getSigmask(t.tid)
	if err != nil {
		return err
	}
	t.sig.mask = mask
	t.group().timer.blocked(mask)
	return nil
}

// noteAction keeps the actions of signals that the recorder has a hand in: a trapped RDTSC may reset
// SIGSEGV's, and the agent has SIGSYS's.
func (p *process) noteAction(c *call) {
	a := &c.args
	keep := map[unix.Signal]*kernelAction{unix.SIGSEGV: &p.segv, unix.SIGSYS: &p.sigsys}[unix.Signal(int32(a[0]))]
	if keep == nil || a[1] == 0 {
		return
	}
	if keep == &p.segv {
		p.trap.handler = 0 // the program's has taken its place
		p.note()
	}
	var b [32]byte
	if p.space.readMem(a[1], b[:]) != len(b) {
		return
	}
	*keep = kernelAction{le64(b[0:]), le64(b[8:]), le64(b[16:]), le64(b[24:])}
}

// anyDue reports whether a signal is queued that the thread, which comes out of its call, does not block. In a call with a
// mask of its own any may be: the mask that the kernel tells is the thread's.
func (t *thread) anyDue() bool {
	if hasOwnMask(t.call.nr) {
		return t.pending() != 0
	}
	return t.pending()&^t.sig.mask != 0
}

// disposition is what the kernel will do with a signal.
type disposition uint8

const (
	dispHandler disposition = iota
	dispIgnore
	dispStop
	dispKill
)

// dispositionOf reads the program's action for a signal. Signals are rare
// enough to ask the kernel.
func (p *process) dispositionOf(sig int) (disposition, error) {
	status, err := statusOf(p.live)
	if err != nil {
		return dispKill, err
	}
	bit := uint64(1) << (sig - 1)
	if a := p.space.agent; unix.Signal(sig) == unix.SIGSYS && a != nil && a.sigsys != ofGuest {
		return p.sigsys.disposition(), nil
	}
	if unix.Signal(sig) == unix.SIGSEGV && p.trap.handler != 0 {
		return p.segv.disposition(), nil
	}
	if status.Mask("SigIgn")&bit != 0 {
		return dispIgnore, nil
	}
	if status.Mask("SigCgt")&bit != 0 {
		return dispHandler, nil
	}
	switch unix.Signal(sig) {
	case unix.SIGCHLD, unix.SIGURG, unix.SIGWINCH, unix.SIGCONT:
		return dispIgnore, nil
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return dispStop, nil
	default:
		return dispKill, nil
	}
}

// disposition is what the action says of a signal that is not ignored and does not stop by default.
func (a *kernelAction) disposition() disposition {
	switch a.handler {
	case 0:
		return dispKill
	case 1:
		return dispIgnore
	}
	return dispHandler
}

// onSignal handles a signal-delivery-stop.
func (t *thread) onSignal(sig int) (action, error) {
	var si ptrace.Siginfo
	if err := t.session.source.getSiginfo(t.tid, &si); err != nil {
		return action{}, nil //nolint:nilerr // killed meanwhile, or a group stop: the next wait tells
	}
	if ours, wait := t.group().timer.arrived(t.tid, sig, &si); ours {
		return t.onForced(wait)
	}
	if t.sig.givingMask == nil { // else it was noted when it came first
		t.session.relay.delivered(t, &si)
	}
	if err := t.given(sig, &si); err != nil {
		return action{}, err
	}
	if t.group().done {
		return action{sig: sig}, nil
	}
	if err := t.readRegs(); err != nil {
		return action{}, err
	}
	if isFault(sig, &si) && !t.call.pending {
		return t.onFault(sig, &si)
	}
	return t.onAsync(sig, &si)
}

// given makes a signal that was sent anew, if this is that, what it was.
func (t *thread) given(sig int, si *ptrace.Siginfo) error {
	g := t.sig.giving
	if g == nil || g.signo != sig {
		return nil
	}
	t.sig.giving, *si = nil, g.info
	if mask := t.sig.givingMask; mask != nil {
		t.sig.givingMask = nil
		if err := t.session.source.setSigmask(t.tid, *mask); err != nil {
			return err
		}
	}
	t.session.guard.of(t.tid).arrives(sig, si)
	return t.session.source.setSiginfo(t.tid, si)
}

// isFault reports whether a signal is a synchronous exception of the program:
// the kernel made it, for the instruction at rip.
func isFault(sig int, si *ptrace.Siginfo) bool {
	switch unix.Signal(sig) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP:
		return si.Code() > 0
	default:
		return false
	}
}

// onFault logs an exception; a trapped instruction is emulated instead.
func (t *thread) onFault(sig int, si *ptrace.Siginfo) (action, error) {
	if unix.Signal(sig) == unix.SIGSEGV && si.Code() == siKernel {
		if done, err := t.emulate(); done || err != nil {
			return action{}, err
		}
	}
	if again, err := t.segvAgain(sig, si); again || err != nil {
		return action{}, err
	}
	regs := regsOf(&t.regs)
	t.logEvent(checkpoint.Event{
		Kind: checkpoint.EventFault, Signo: int32(sig), Siginfo: append([]byte(nil), si[:]...),
		Addr: si.Addr(), RegHash: checkpoint.HashRegs(&regs), Regs: t.session.debugRegs(&regs),
	})
	t.session.result.Stats.Faults++
	disp, err := t.proc.dispositionOf(sig)
	if err != nil {
		return action{}, err
	}
	if disp == dispHandler {
		return t.deliver(sig, si)
	}
	next, err := t.dieOf(sig, si, false)
	if err == nil && t.group().done && t.proc.isInit() {
		return action{}, t.letProcessGo() // while it is traced this does not kill it
	}
	return next, err
}

// isInit reports whether the process is the first of its PID namespace, and of that its default
// actions kill only for a fault of its own, and for SIGKILL from outside (man 7 pid_namespaces).
func (p *process) isInit() bool {
	status, err := statusOf(p.live)
	return err == nil && isInit(status)
}

func isInit(status abi.ProcStatus) bool {
	ids := strings.Fields(status.Field("NSpid"))
	return len(ids) > 0 && ids[len(ids)-1] == "1"
}

// onAsync handles a signal that came from outside.
func (t *thread) onAsync(sig int, si *ptrace.Siginfo) (action, error) {
	if again, err := t.segvAgain(sig, si); again || err != nil {
		return action{}, err
	}
	disp, err := t.proc.dispositionOf(sig)
	if err != nil {
		return action{}, err
	}
	if disp == dispKill && t.proc.isInit() {
		disp = dispIgnore
	}
	atSync := t.signalDue()
	switch disp {
	case dispIgnore:
		pass := sig
		if t.healerHas(sig) {
			pass = 0
		}
		if t.endedForNothing() {
			return action{sig: pass}, t.again()
		}
		t.recheck()
		return action{sig: pass}, nil
	case dispStop:
		t.recheck()
		return action{sig: sig}, nil
	case dispKill:
		if t.call.pending {
			t.finishPending(t.asIs())
		}
		return t.dieOf(sig, si, !atSync)
	case dispHandler: // Its frame is built now or at a better place.
	}
	if t.healerHas(sig) {
		t.space().noAgent = true // and so the program has its action back when it gets the signal
		t.hold(sig, si)
		return action{}, nil
	}
	if atSync {
		return t.deliver(sig, si)
	}
	t.hold(sig, si)
	return action{}, nil
}

// healerHas reports whether the kernel has another action for the signal than the program's: for SIGSYS
// it has the agent's.
func (t *thread) healerHas(sig int) bool {
	a := t.space().agent
	return unix.Signal(sig) == unix.SIGSYS && a != nil && a.sigsys != ofGuest
}

// signalDue reports whether the program, with its registers in t.regs, is at a sync
// point at which a signal waits to be delivered.
func (t *thread) signalDue() bool {
	return t.call.pending || t.sig.syncPending && t.regs.Rip == t.sig.atExit.Rip && t.regs.Rsp == t.sig.atExit.Rsp
}

// recheck finds out whether more signals come right here after one that is not delivered: the
// program ignores it, it stops the program, or it is the timer's.
func (t *thread) recheck() {
	if t.sig.syncPending {
		pending := t.pending()
		t.sig.syncPending = pending&^t.sig.mask != 0
	}
}

// again makes the program repeat a call that an ignored signal has ended with
// EINTR: without a tracer the signal would not have reached it.
func (t *thread) again() error {
	c := &t.call
	nr := c.nr
	t.finishPending(outcome{true, nr})
	r := t.sig.atExit
	beforeCall(&r, uint64(nr))
	t.regs = r
	t.sig.syncPending = false
	t.sig.repeat = repeatOf(c)
	t.redo = t.space().agent != nil // which would make it with the whole time-out
	if err := t.space().ownCall(r.Rip); err != nil {
		return err
	}
	return t.setRegs(&r)
}

// Above forcedRate forced ends a second (a 100 Hz timer in a compute loop)
// signals are held longer, so that several share one end.
const (
	forcedRate = 4
	longHold   = 50 * time.Millisecond
)

// holdTime is how long a signal may be held.
func (g *group) holdTime() time.Duration {
	if n := len(g.forcedAt); n >= forcedRate && time.Since(g.forcedAt[n-forcedRate]) < time.Second {
		return max(g.session.opt.ForceAfter, longHold)
	}
	return g.session.opt.ForceAfter
}

// hold keeps a signal for the next system call.
func (t *thread) hold(sig int, si *ptrace.Siginfo) {
	if len(t.sig.held) == 0 {
		t.group().timer.holdUntil(time.Now().Add(t.group().holdTime()))
	}
	t.sig.held = append(t.sig.held, heldSignal{sig, *si})
	t.noteHeld()
}

// beforeCall makes registers behind a SYSCALL instruction those of a thread that is to
// execute it, for call nr.
func beforeCall(r *ptrace.Regs, nr uint64) {
	r.Rip -= syscallInsnLen
	r.Rax, r.Orig_rax = nr, ^uint64(0)
}

// undo makes the program, at a call's entry, not make the call: it stands
// before the SYSCALL instruction afterwards, at an exit stop.
func (t *thread) undo() error {
	r, after, u := t.regs, t.regs, t.session.guard.of(t.tid)
	beforeCall(&after, t.regs.Orig_rax)
	own := t.withBlock(&after)
	u.lend(regsBorrowed, &own, 0)
	defer u.returned()
	r.Orig_rax = ^uint64(0)
	if err := t.setRegs(&r); err != nil {
		return err
	}
	ws, err := t.runTo(ptrace.Syscall, 0)
	if err != nil {
		return err
	}
	if !ws.Stopped() || ptrace.StopSignal(ws) != ptrace.SyscallTrap {
		return &goneError{ws}
	}
	t.regs = after
	return t.setRegs(&t.regs)
}

// drain takes a signal of the timer that lost its race with the program's
// entry into the kernel. The call counts as interrupted and made again: SYSCALL
// has left its marks in RCX and R11, which another signal or a forced end may
// find before the call is made.
func (t *thread) drain() (action, error) {
	if err := t.interruptCall(); err != nil {
		return action{}, err
	}
	t.sig.draining = true
	ws, err := t.runToReserved(0)
	if err != nil {
		return action{}, err
	}
	return comesTo(ws), nil
}

// runToReserved has the thread take the timer's signal that is on its way. A handler that
// began meanwhile may block it.
func (t *thread) runToReserved(sig int) (unix.WaitStatus, error) {
	const bit = 1 << (reservedSignal - 1)
	mask := t.sig.mask
	if mask&bit == 0 {
		return t.runTo(ptrace.Syscall, sig)
	}
	if err := t.session.source.setSigmask(t.tid, mask&^bit); err != nil {
		return 0, err
	}
	ws, err := t.runTo(ptrace.Syscall, sig)
	if err != nil || !ws.Stopped() {
		return ws, err
	}
	return ws, t.session.source.setSigmask(t.tid, mask)
}

// endsBySignal reports whether a signal that is held back may come in the call at whose entry the thread is, and end its wait. It has
// come while the program ran its own code, perhaps between a look at what the handler sets and this call: before
// the call it would be lost, and the wait never ends, as with poll(2) and a flag. Calls that
// hand signals on, change what becomes of them, or wait with another mask get it before.
func (t *thread) endsBySignal() bool {
	nr, r := int64(t.regs.Orig_rax), &t.regs
	switch nr {
	case unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CLONE, unix.SYS_CLONE3:
		return false
	}
	return !hasOwnMask(nr) && abi.MayBlock(nr, [6]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9})
}

// hasOwnMask reports whether a call waits with a mask of its own.
func hasOwnMask(nr int64) bool {
	switch nr {
	case unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_RT_SIGSUSPEND, unix.SYS_IO_PGETEVENTS:
		return true
	}
	return false
}

// handBack gives the first held signal to the kernel at a call's entry.
func (t *thread) handBack() (action, error) {
	if err := t.interruptCall(); err != nil {
		return action{}, err
	}
	t.sig.atExit = t.regs
	t.sendHeld()
	return action{}, nil
}

// interruptCall undoes the call at whose entry the program is, and logs it as
// one that is interrupted and will be made again.
func (t *thread) interruptCall() error {
	nr := int64(t.regs.Orig_rax)
	regs := t.entryRegs()
	args := [6]uint64{t.regs.Rdi, t.regs.Rsi, t.regs.Rdx, t.regs.R10, t.regs.R8, t.regs.R9}
	entry := t.regs
	if err := t.undo(); err != nil {
		t.regs = entry // killed there, with nothing of it in the log
		return err
	}
	t.logEvent(t.session.enterEvent(nr, args, &regs))
	after := regsOf(&t.regs)
	t.logEvent(unmadeEvent(nr, &after))
	return nil
}

// sendHeld sends the first held signal to the program, which is at a sync
// point. One that the program blocks by now stays pending in the kernel.
func (t *thread) sendHeld() {
	for len(t.sig.held) > 0 {
		h := t.sig.held[0]
		t.sig.held = t.sig.held[1:]
		if len(t.sig.held) == 0 {
			t.group().timer.holdUntil(time.Time{})
		}
		_ = t.session.source.send(t.proc.pid, t.tid, unix.Signal(h.signo)) // it fails only for one that is gone
		t.noteHeld()
		if t.sig.mask&(1<<(h.signo-1)) == 0 {
			t.sig.giving = &h
			t.sig.syncPending = true
			return
		}
	}
}

// deliver builds the signal's frame by a single step with the signal, and logs
// it. The program stands before its handler's first instruction then.
func (t *thread) deliver(sig int, si *ptrace.Siginfo) (action, error) {
	ws, err := t.runTo(ptrace.SingleStep, sig)
	if err != nil {
		return action{}, err
	}
	if !ws.Stopped() || ptrace.StopSignal(ws) != unix.SIGTRAP || ptrace.Event(ws) != 0 {
		// The frame could not be built, or the program was killed meanwhile.
		if t.call.pending {
			t.finishPending(t.asIs())
		}
		return comesTo(ws), nil
	}
	if err := t.readRegs(); err != nil {
		return action{}, err
	}
	if t.call.pending {
		o, err := t.outcomeInFrame()
		if err != nil {
			return action{}, err
		}
		t.finishPending(o)
	}
	regs := regsOf(&t.regs)
	ev := checkpoint.Event{
		Kind: checkpoint.EventSignal, Signo: int32(sig), Siginfo: append([]byte(nil), si[:]...),
		Regs: &regs, RegHash: checkpoint.HashRegs(&regs), Note: senderOf(si),
	}
	if ev.XState, err = t.session.source.getXState(t.tid); err != nil {
		return action{}, err
	}
	if ev.Writes, err = t.frame(); err != nil {
		return action{}, err
	}
	t.logEvent(ev)
	t.session.result.Stats.Signals++
	if err := t.refreshMask(); err != nil {
		return action{}, err
	}
	t.sig.atExit, t.atSync = t.regs, true
	pending := t.pending()
	t.sig.syncPending = pending&^t.sig.mask != 0
	if !t.sig.syncPending {
		t.sendHeld()
	}
	return action{}, nil
}

// Offsets in struct rt_sigframe from rsp at the handler's entry
// (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h).
const (
	frameRAX        = 8 + 40 + 104
	frameRIP        = 8 + 40 + 128
	frameFPState    = 8 + 40 + 184
	frameEnd        = 8 + 304 + 128
	fpExtendedSize  = 464 + 4
	fpMagicOffset   = 464
	fpMagic1        = 0x46505853
	fpLegacySize    = 512
	frameSizeLimit  = 64 << 10
	frameHeaderRead = frameEnd
)

// outcomeInFrame reads from the frame just built what the kernel made of the
// call that the signal interrupted.
func (t *thread) outcomeInFrame() (outcome, error) {
	var b [frameEnd]byte
	if t.space().readMem(t.regs.Rsp, b[:]) != len(b) {
		return outcome{}, fmt.Errorf("signal frame at %#x cannot be read", t.regs.Rsp)
	}
	return outcome{le64(b[frameRIP:]) == t.sig.atExit.Rip-syscallInsnLen, int64(le64(b[frameRAX:]))}, nil
}

// frame returns the bytes of the signal frame at rsp.
func (t *thread) frame() ([]checkpoint.MemWrite, error) {
	sp := t.regs.Rsp
	head := make([]byte, frameHeaderRead)
	if t.space().readMem(sp, head) != len(head) {
		return nil, fmt.Errorf("signal frame at %#x cannot be read", sp)
	}
	end := sp + frameEnd
	if fp := le64(head[frameFPState:]); fp > sp && fp-sp < frameSizeLimit {
		legacy := make([]byte, fpLegacySize)
		if t.space().readMem(fp, legacy) != len(legacy) {
			return nil, fmt.Errorf("floating point frame at %#x cannot be read", fp)
		}
		size := uint64(fpLegacySize)
		if le32(legacy[fpMagicOffset:]) == fpMagic1 {
			size = min(uint64(le32(legacy[fpExtendedSize:])), frameSizeLimit)
		}
		end = max(end, fp+size)
	}
	b := make([]byte, end-sp)
	if t.space().readMem(sp, b) != len(b) {
		return nil, fmt.Errorf("signal frame at %#x cannot be read", sp)
	}
	return []checkpoint.MemWrite{{Addr: sp, Data: b}}, nil
}

// senderOf says who sent a signal, for people.
func senderOf(si *ptrace.Siginfo) string {
	switch si.Code() {
	case 0, -1, siTkill:
		return fmt.Sprintf("sent by process %d", si.PID())
	}
	return ""
}
