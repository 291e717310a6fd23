//go:build linux && amd64

package record

import (
	"cmp"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
	"vplay/checkpoint/record/agent"
)

// Stops of a thread under the agent. Each becomes one of those that there are without an agent,
// before anything else looks at it: the calls that the agent has made are logged, and a
// thread that is found inside the agent is put where it would be, with the registers of the
// program: before its call, in it at its exit, or behind it. So a signal finds the program, never the
// agent, and no handler can run there.

// fromAgent is called first at a stop of a thread under the agent. done says that the stop was
// the agent's own business, and that the thread is to go on by next.
func (t *thread) fromAgent(ws unix.WaitStatus) (next action, done bool, err error) {
	own, err := t.leaveAgent(ws)
	if err != nil {
		return action{}, false, err
	}
	next, done, err = t.placed(ws, own, own)
	t.placing = t.placing && (done || err != nil)
	return next, done, err
}

// killedUnderAgent puts a thread where it is in the program that was killed, and is at PTRACE_EVENT_EXIT, before
// it was put there, or stood where it goes on under the agent.
func (t *thread) killedUnderAgent(ws unix.WaitStatus) error {
	if !t.placing {
		return nil
	}
	t.placing = false
	own := t.regs
	if err := t.readRegs(); err != nil {
		return err
	}
	if t.inInjected() {
		t.regs = own
		if err := t.setRegs(&t.regs); err != nil {
			return err
		}
	}
	if t.redo && int64(t.regs.Orig_rax) < 0 {
		if t.regs.Rip == t.regs.Rcx { // while the recorder had it make calls of its own first
			if err := t.makesCall(t.regs); err != nil {
				return err
			}
		}
		return t.notRedone(ws)
	}
	t.redo = false
	_, _, err := t.placed(ws, false, false)
	return err
}

// inInjected reports whether the thread's registers are those of a call that the recorder has it make.
func (t *thread) inInjected() bool {
	site := t.space().site
	return isCallSite(site) && t.regs.Rip-site < vdsoStubSize
}

// haltFromAgent is fromAgent for a thread that does not go on by itself: where the stop was the agent's own
// business, the log names the place, and the stop counts as the one that was asked for.
func (t *thread) haltFromAgent(ws unix.WaitStatus) (unix.WaitStatus, error) {
	own, err := t.leaveAgent(ws)
	if err != nil {
		return ws, err
	}
	_, _, err = t.placed(ws, own, false)
	t.placing = false
	if own {
		ws = askedStop
	}
	return ws, err
}

// askedStop is the status of a stop that PTRACE_INTERRUPT has asked for.
const askedStop = unix.WaitStatus(ptrace.EventStop<<16 | int(unix.SIGTRAP)<<8 | 0x7f)

// leaveAgent logs what the agent has done up to a stop of the thread, and has it run under the agent no more. own says that
// the stop is for a call that was not let through, or did not come to the agent.
func (t *thread) leaveAgent(ws unix.WaitStatus) (own bool, err error) {
	shared := t.block.shared
	t.agent, t.placing, t.led = false, true, false
	t.block.noted, t.block.lost = shared.Noted(), false
	lerr := t.logRing()
	shared.Empty()
	shared.Supervise(false)
	if err := t.readRegs(); err != nil {
		return false, err
	}
	if err := t.followMask(); err != nil {
		return false, err
	}
	if own, err = t.isDispatch(ws); err != nil {
		return false, err
	}
	lost, err := t.hasLostBlock(ws)
	if err != nil {
		return own, err
	}
	own = own || lost
	if own && t.inClock(shared.Phase()) {
		t.space().noClock = true // it asks the kernel itself: the clock source is not the TSC any more
	}
	if own && !t.block.has(t.regs.Rip) && !t.block.lost {
		if err := t.makesCall(t.regs); err != nil {
			return own, err
		}
	}
	err = errors.Join(t.session.source.dispatch(t.tid, false, 0, 0), lerr)
	if lost && err == nil {
		err = t.repairSegv()
	}
	return own, err
}

// hasLostBlock reports whether the stop is for a stub that faulted, because the program has loaded GS, with whose base the stub
// finds the agent. The registers are then those behind the SYSCALL instruction, its call not made, or those before RDTSC, and the base comes
// back with them.
func (t *thread) hasLostBlock(ws unix.WaitStatus) (bool, error) {
	if signalOf(ws) != int(unix.SIGSEGV) {
		return false, nil
	}
	s := t.space().agent.stubAt(t.regs.Rip)
	if s == nil {
		return false, nil
	}
	var si ptrace.Siginfo
	if err := t.session.source.getSiginfo(t.tid, &si); err != nil || !isFault(int(unix.SIGSEGV), &si) {
		return false, err
	}
	if t.block.lost = s.kind == siteTSC; t.block.lost {
		t.regs.Rip = s.addr
		return true, nil
	}
	s.afterSyscall(&t.regs)
	return true, nil
}

// behind returns the address of what comes behind the instruction.
func (s *site) behind() uint64 { return s.addr + cmp.Or(s.size, syscallInsnLen) }

// afterSyscall sets what the SYSCALL instruction of the site changes: RIP, RCX and R11.
func (s *site) afterSyscall(r *ptrace.Regs) {
	r.Rip = s.addr + syscallInsnLen
	r.Rcx, r.R11 = r.Rip, r.Eflags&^flagRF
}

// dispatchComes reports whether the thread, which is at a stop that was asked for, or of its whole process, has yet to stop for a
// call that was not let through. The kernel looks for such a stop before it looks for signals (linux kernel/signal.c, get_signal).
func (t *thread) dispatchComes(ws unix.WaitStatus) bool {
	return ws.Stopped() && ptrace.Event(ws) == ptrace.EventStop && t.session.source.pendingDispatch(t.tid)
}

// takeDispatch has such a thread come to the stop for the call, which is the next, unless it is killed. It comes to the other stop behind
// that. So the signal is taken where the agent's stops are: later it would be the program's, and end it.
func (t *thread) takeDispatch() (unix.WaitStatus, error) {
	ws, err := t.runTo(ptrace.Cont, 0)
	if err == nil && ws.Stopped() {
		err = t.session.source.interrupt(t.tid)
	}
	return ws, err
}

// makesCall has the thread, whose call was not let through, make it if the recorder is killed before it has set the
// registers r otherwise: the kernel, which does not go back to it, forgets the signal then. That it stands there is in no log.
func (t *thread) makesCall(r ptrace.Regs) error {
	beforeCall(&r, r.Rax)
	err := t.setRegs(&r)
	t.redo = err == nil
	return err
}

// placed puts the thread where it is in the program. own says that the stop is for a call that was
// not let through, goesOn that the thread is to make that, and go on.
func (t *thread) placed(ws unix.WaitStatus, own, goesOn bool) (next action, done bool, err error) {
	a, shared := t.space().agent, t.block.shared
	noted, phase, result, saved := t.block.noted, shared.Phase(), shared.Result(), shared.Regs()
	saved[agent.FS] = t.regs.Fs_base // the agent leaves it as it is
	p := agent.Places()
	rip := t.regs.Rip - t.block.at.Addr
	if t.inClock(phase) {
		rip = p.Noted // in the agent, and at none of the places that matter
	}
	switch {
	case rip >= t.block.at.Len || rip > p.End:
		switch {
		case t.block.lost:
			return t.atInsn(goesOn)
		case goesOn:
			next, err = t.onDispatch()
			return next, true, err
		case own:
			return action{}, false, t.before(t.regs.Rip-syscallInsnLen, false)
		}
		return action{}, false, t.outside(ws)
	case rip < p.Entered:
		s := a.stubs[t.regs.Rcx-stubAbout]
		if s == nil {
			return action{}, false, nil // not by a stub: the program's own doing
		}
		if s.kind == siteTSC {
			return action{}, false, t.unenterInsn(s, rip, &saved)
		}
		t.unenter(s, rip, &saved)
		return action{}, false, t.before(s.addr, false)
	}
	live := t.regs
	t.setSaved(&saved)
	if size := shared.Insn(); size != 0 {
		return t.placedInsn(size, goesOn)
	}
	switch {
	case noted || rip >= p.Tail && rip < p.Gate:
		t.regs.Rax = uint64(result)
		t.sig.atExit, t.atSync = t.regs, true
		return action{}, false, t.setRegs(&t.regs)
	case rip >= p.Made && rip < p.Noted && !shared.Tried(int64(live.Rax)):
		return action{}, goesOn, t.behind(ws, int64(live.Rax), goesOn)
	case phase == agent.Made && !shared.Tried(result):
		return action{}, goesOn, t.behind(ws, result, goesOn)
	case phase == agent.Tells:
		return action{}, goesOn, errors.Join(t.tellTime(), t.behind(ws, 0, goesOn))
	}
	return action{}, goesOn, t.before(t.regs.Rip-syscallInsnLen, goesOn)
}

// isDispatch reports whether the stop is for a call that was not let through, and undoes what
// the kernel has done to the program's mask for that signal.
func (t *thread) isDispatch(ws unix.WaitStatus) (bool, error) {
	if ptrace.Event(ws) != 0 || ptrace.StopSignal(ws) != unix.SIGSYS {
		return false, nil
	}
	var si ptrace.Siginfo
	if err := t.session.source.getSiginfo(t.tid, &si); err != nil || si.Code() != ptrace.UserDispatch {
		return false, err
	}
	t.session.result.Stats.Dispatches++
	const bit = 1 << (unix.SIGSYS - 1)
	a := t.space().agent
	if t.sig.mask&bit != 0 || a.sigsys == ofGuest && t.proc.sigsys.handler == 1 { // blocked, or ignored
		a.sigsys = ofKernel
		return true, t.session.source.setSigmask(t.tid, t.sig.mask)
	}
	return true, nil
}

// onDispatch is a call of the program at a SYSCALL instruction that does not lead to the agent.
func (t *thread) onDispatch() (action, error) {
	t.regs.Orig_rax = ^uint64(0)
	nr, addr := t.regs.Rax, t.regs.Rip-syscallInsnLen
	if agent.Makes(nr) && len(t.sig.held) == 0 {
		entry, err := t.reachAgent(addr, nr)
		if err != nil {
			return action{}, err
		}
		if entry != 0 {
			t.regs.Rip = entry
			err := t.setRegs(&t.regs)
			t.redo = t.redo && err != nil
			return action{}, err
		}
	}
	return action{}, t.before(addr, true)
}

// outside is a stop outside of the agent: in the program, or in one of its stubs.
func (t *thread) outside(ws unix.WaitStatus) error {
	a, r := t.space().agent, &t.regs
	if s := a.stubAt(r.Rip); s != nil {
		return t.inStub(s)
	}
	if s := t.space().code.inJump[r.Rip]; s != nil && r.Rip == s.via.Addr { // it was on its way to the stub
		r.Rip = s.addr
		return t.setRegs(r)
	}
	if ptrace.Event(ws) == unix.PTRACE_EVENT_EXIT && int64(r.Orig_rax) >= 0 && r.Rax == r.Orig_rax && r.Rcx == r.Rip && *r != t.sig.atExit {
		// Killed before it could stop for the call, and not behind one whose result is its number.
		noSys := errnoNoSys
		r.Rax = uint64(noSys)
		return t.setRegs(r)
	}
	return nil
}

// stubAt returns the site whose stub has addr, or nil.
func (a *spaceAgent) stubAt(addr uint64) *site {
	for _, area := range a.areas {
		if off := addr - area.at.Addr; off < area.used {
			return a.stubs[area.at.Addr+off&^(stubSize-1)]
		}
	}
	return nil
}

// leaveStub puts a thread that was sent into a stub (onDispatch), but is not to go on there now, before its call: another
// thread has its turn, or the agent may not be there any more when it goes on.
func (t *thread) leaveStub() error {
	if t.aside.is() {
		return t.comeBack()
	}
	if a := t.space().agent; a != nil {
		if s := a.stubAt(t.regs.Rip); s != nil {
			return t.inStub(s)
		}
	}
	return nil
}

// inStub puts a thread that is in a stub where it is in the program.
func (t *thread) inStub(s *site) error {
	r := &t.regs
	switch off := r.Rip - s.resumes; {
	case s.resumes != 0 && off <= s.next:
		r.Rip = s.behind() + off
	case r.Rip == s.stub && s.entry != s.stub:
		r.Rip = s.jump.Addr
	case s.kind == siteTSC:
		if r.Rip >= s.about {
			r.Rcx, _ = t.block.shared.OwnRegs()
		}
		r.Rip = s.addr
	default:
		s.afterSyscall(r)
		return t.before(s.addr, false)
	}
	return t.setRegs(r)
}

// unenter makes the registers of a thread that is entering the agent at offset rip, some of which are
// saved, those of a program behind its SYSCALL instruction.
func (t *thread) unenter(s *site, rip uint64, saved *agent.Regs) {
	r, p := &t.regs, agent.Places()
	if rip >= p.Kept {
		was := *r
		t.setSaved(saved)
		r.Fs_base, r.Gs_base = was.Fs_base, was.Gs_base
	}
	if rip >= p.Began {
		r.Rsp = saved[4]
	}
	if rip >= p.Numbered {
		r.Rax = saved[0]
	}
	s.afterSyscall(r)
}

// setSaved makes the thread's registers the saved ones.
func (t *thread) setSaved(saved *agent.Regs) {
	r := &t.regs
	for n := range byte(16) {
		*register(r, n) = saved[n]
	}
	r.Rip, r.Eflags, r.Fs_base, r.Gs_base = saved[agent.RIP], saved[agent.RFLAGS], saved[agent.FS], 0
	r.Orig_rax = ^uint64(0)
}

// before puts a thread, whose registers are those behind the SYSCALL instruction at addr with the
// call not made, before that instruction. With again it makes the call at once, with the two stops that
// calls have. Otherwise, as where a stop comes in between, the log must name the place: SYSCALL has left its marks in RCX and
// R11, so the call counts as interrupted and made again.
func (t *thread) before(addr uint64, again bool) error {
	t.regs.Rip, t.regs.Orig_rax = addr, ^uint64(0)
	if !again {
		t.redo = false
		t.logUnmade()
	} else if err := t.space().ownCall(addr); err != nil {
		return err
	}
	if err := t.setRegs(&t.regs); err != nil || !again {
		return err
	}
	t.redo = true
	if t.seesHealer(&t.regs) {
		return t.setHealer(false)
	}
	return nil
}

// notRedone is called at the first stop of a thread that was to make a call again. It may be
// another one than that call's entry.
func (t *thread) notRedone(ws unix.WaitStatus) error {
	t.redo = false
	if ptrace.Event(ws) == 0 && ptrace.StopSignal(ws) == ptrace.SyscallTrap {
		return nil
	}
	if err := t.readRegs(); err != nil {
		return err
	}
	if ptrace.Event(ws) == unix.PTRACE_EVENT_EXIT && t.entersCall() {
		return nil
	}
	t.logUnmade()
	return nil
}

// logUnmade logs the call that the thread stands before as interrupted, to be made again.
func (t *thread) logUnmade() {
	t.placing = false
	r := t.regs
	nr := int64(r.Rax)
	after := regsOf(&r)
	r.Rip += syscallInsnLen
	at := regsOf(&r)
	t.logEvent(t.session.enterEvent(nr, [6]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}, &at))
	t.logEvent(unmadeEvent(nr, &after))
}

// behind puts a thread, whose registers are those at the entry of a call that the agent has
// made with result ret, at the call's exit, and logs it. asked says that the agent has
// stopped for that, and not a signal; ws is the stop.
func (t *thread) behind(ws unix.WaitStatus, ret int64, asked bool) error {
	c := &t.call
	t.regs.Orig_rax = t.regs.Rax
	made := t.regs
	made.Rax = uint64(ret)
	if err := t.setRegs(&made); err != nil {
		return err
	}
	t.placing = false
	t.noteEntryOf(rightBehind)
	c.byAgent, c.since = true, sinceOf(t.block.shared.Began())
	if row, _ := abi.Lookup(c.nr); row.Effect == abi.EffectMem {
		// It has noted nothing of what the call did to memory, or half of that.
		t.space().agent.shared.ForgetWritable(0, ^uint64(0))
	}
	t.regs = made
	c.in = false
	t.sig.atExit = t.regs
	if !asked && (isRestart(ret) || ret == errnoIntr) {
		c.pending = true
		return nil
	}
	if asked {
		t.noteWritable()
		return t.finishCall(ret)
	}
	ev, err := t.exitEvent(ret)
	if err != nil {
		c.in = true // killed, and the log has no exit
		return err
	}
	ev.Reason = ""
	t.logEvent(ev)
	t.noteStderr(ret)
	t.atSync = true
	t.followUnblocked(ws)
	return nil
}

// sinceOf returns when a call began, from a time of CLOCK_MONOTONIC; the zero time from 0.
func sinceOf(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(monotonic() - at))
}

// noteStack has the agent know of the thread's stack: most programs want the time there, and have signal masks there.
func (t *thread) noteStack() {
	sp := t.space()
	if !sp.agent.shared.IsWritable(t.regs.Rsp, t.regs.Rsp+1) {
		sp.noteWritableAt(t.regs.Rsp)
	}
}

// noteWritable tells the agent of memory that can be written as a whole: that into which the
// call has read.
func (t *thread) noteWritable() {
	c, sp := &t.call, t.space()
	row, _ := abi.Lookup(c.nr)
	for i := range row.Args {
		if k := row.Args[i].Kind; k == abi.KindOut || k == abi.KindLenPtr {
			sp.noteWritableAt(c.args[i])
		}
	}
}

// noteNewMemory does so of memory that a call, which has returned ret, has mapped: what a program asks for it soon reads into.
func (sp *space) noteNewMemory(c *call, ret int64) {
	switch {
	case sp.agent == nil || ret <= 0:
	case c.nr == unix.SYS_BRK:
		sp.noteWritableAt(uint64(ret) - 1)
	case c.nr == unix.SYS_MMAP && c.args[3]&mapAnonymous != 0 && !c.byAgent: // who takes note of its own
		sp.noteWritableAt(uint64(ret))
	}
}

// noteWritableAt tells the agent of the mapping at addr, if that is memory of the program's own that can be written. The agent
// unmaps such memory.
func (sp *space) noteWritableAt(addr uint64) {
	m, shared := sp.maps.at(addr), sp.agent.shared
	if m != nil && isOwnMemory(m) && m.Prot&checkpoint.ProtWrite != 0 && !shared.IsWritable(m.Start, m.End) {
		shared.AddWritable(m.Start, m.End)
	}
}

// noteWrite tells the agent, at the exit of a write that the recorder has made, whether such
// writes change what is mapped.
func (t *thread) noteWrite() {
	c, sp := &t.call, t.space()
	arg, writes := agent.WritesTo(c.nr)
	if sp.agent == nil || !writes || t.readsStderr(c.args[arg]) {
		return
	}
	if !c.toOwnMem && c.remote == nil && len(c.targets) == 1 && len(t.proc.mappedTargets(c)) == 0 && len(sp.gone(c.targets[0].id)) == 0 && !t.mapsElsewhere(int32(c.args[arg])) {
		sp.agent.shared.AllowWrites(int32(c.args[arg]))
		t.listMapped()
	}
}

// listMapped tells the agent which files are mapped: any may be as long as another process may map some.
func (t *thread) listMapped() {
	sp := t.space()
	shared := sp.agent.shared
	switch {
	case t.session.opt.Stderr != nil || shared.HasList():
		return
	case len(t.session.groups) > 1:
		shared.AnyMapped()
		return
	}
	var list []agent.File
	for f := range sp.views().objects {
		list = append(list, agent.File{Dev: f.dev, Inode: f.inode})
	}
	for f := range sp.filesAtStart() { // those that are gone by now (keepGone)
		if len(sp.views().objects[f]) == 0 {
			list = append(list, agent.File{Dev: f.dev, Inode: f.inode})
		}
	}
	shared.ListMapped(list)
}

// mapsElsewhere reports whether another process may map what stands behind a descriptor of the thread's, at
// any time.
func (t *thread) mapsElsewhere(fd int32) bool {
	if len(t.session.groups) == 1 {
		return false
	}
	st, ok := t.proc.statFD(fd)
	kind := st.Mode & unix.S_IFMT
	return !ok || kind == unix.S_IFREG || kind == unix.S_IFBLK
}
