//go:build linux && amd64

package record

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
	"vplay/checkpoint/record/agent"
)

// The agent in a program (package agent): when a thread runs under it, how it comes into the
// program, and when it is taken out. Under the agent a thread runs with PTRACE_CONT, and each call of
// the program either comes to the agent or stops with SIGSYS. A call that the agent leaves to
// the recorder is made as without the agent, with two stops; the thread comes back under it when
// that is over. What a stop under the agent means is in agentstop.go.

// threadAgent is the agent's memory for one thread. The thread's GS base leads there; the
// program, whose own is 0, does not see that.
type threadAgent struct {
	at     abi.Range // its mapping
	shared agent.Shared
	native ownState // as the agent was told
	noted  bool     // at the stop that is answered: the call in progress is in the ring
	lost   bool     // likewise: the stub of RDTSC has faulted, before which the thread stands
}

// spaceAgent is the agent in an address space.
type spaceAgent struct {
	*threadAgent                // of the first thread: it has what is common to all
	all          []*threadAgent // that are mapped
	spare        []*threadAgent // of these, those of threads that have ended
	areas        []*stubArea
	stubs        map[uint64]*site // by the address of the stub
	apart        map[uint64]bool  // sites without memory for a stub in reach
	slots        int              // that jumps have had
	free         []int            // of these, those of sites that are forgotten
	sigsys       sigsysAction     // which the kernel has
	files        agentFiles
}

// sigsysAction is whose action for SIGSYS the kernel has.
type sigsysAction uint8

const (
	ofGuest  sigsysAction = iota // the program's
	ofAgent                      // the agent's, should the recorder go
	ofKernel                     // the default, because the signal was blocked
)

// close gives up what is mapped here.
func (a *spaceAgent) close() {
	if a == nil {
		return
	}
	a.forgetFiles()
	for _, t := range a.all {
		_ = unix.Munmap(t.shared) // it is mapped
	}
	for _, s := range a.areas {
		_ = unix.Munmap(s.view) // likewise
	}
}

// has reports whether an address is the agent's.
func (a *threadAgent) has(addr uint64) bool { return addr-a.at.Addr < a.at.Len }

// gsBase returns the base of GS that a thread with this agent has.
func (a *threadAgent) gsBase() uint64 { return a.at.Addr + agent.Block }

// agentFits reports whether the thread, which goes on by next, may run under the agent.
func (t *thread) agentFits(next action) bool {
	g, sp := t.group(), t.space()
	switch {
	case !sp.allowsAgent(), g.done, g.cur == nil:
		return false
	case t.regs.Eflags&flagTF != 0: // it would trap at each of the agent's own instructions
		return false
	case next.req != 0 && next.req != ptrace.Syscall, t.call.in, t.call.pending, t.redo, t.leaves, t.exiting, t.parked.noXState:
		return false
	}
	if sp.agent == nil {
		return g.alone() && next.sig == 0 && sp.isWorthAgent() // calls are injected to bring it in
	}
	return t.block != nil
}

// allowsAgent reports whether what the calls of the space's threads do is known from these alone.
func (sp *space) allowsAgent() bool {
	s, g := sp.session, sp.group
	switch {
	case !s.opt.Agent, s.opt.Vsyscall, sp.noAgent, sp.vdso == 0, sp.readExec:
		return false
	case g.shares() || s.opt.Chaos && (!g.alone() || g.sharers != nil):
		return false
	}
	return !s.strangers && sp.outside == nil && len(s.unrecorded) == 0
}

// isWorthAgent reports whether the process has made so many calls that bringing the agent in, which costs as
// much as some tens of them, is likely to be worth it. The program itself counts as worth it from its start, and what has RDRAND in its code.
func (sp *space) isWorthAgent() bool {
	s := sp.session
	if sp.group.of == s.first || s.opt.AgentAfter < 0 || sp.hasRandom {
		return true
	}
	return sp.calls >= cmp.Or(s.opt.AgentAfter, agentAfter)
}

// agentAfter is the default of Options.AgentAfter. What makes threads, and can have no agent from then on,
// has made more calls by then, but for the smallest programs.
const agentAfter = 40

// underAgent prepares a thread, which is about to be resumed with a signal unless that is 0, to run
// under the agent. False says
// that it cannot.
func (t *thread) underAgent(sig int) (bool, error) {
	sp := t.space()
	if sp.agent == nil {
		if err := t.bringAgent(); err != nil || sp.agent == nil {
			return false, err
		}
	}
	if err := sp.lookForHalts(); err != nil { // it may be new
		return false, err
	}
	a := sp.agent
	if a.sigsys != ofAgent && sig == 0 {
		if err := t.setHealer(true); err != nil {
			return false, err
		}
	}
	if sig == 0 && sp.tsc.known {
		if err := t.letTSC(true); err != nil {
			return false, err
		}
	}
	if err := t.readRegs(); err != nil {
		return false, err
	}
	if code := &sp.code; code.clean {
		for _, s := range code.sites {
			if err := s.write(sp, sp.underAgent(s, t.group().within(s, nil))); err != nil {
				return false, err
			}
		}
		code.clean = false
	} else if err := t.clearJump(); err != nil {
		return false, err
	}
	a.shared.Many(!t.group().alone() || sp.isSeen())
	a.shared.Timed(t.session.isOrdered())
	t.noteNative()
	shared, p := t.block.shared, agent.Places()
	shared.Attend(len(t.sig.held) > 0)
	shared.Patient(t.mayWait())
	shared.Hope(t.hopesUntil())
	shared.Clock(t.agentClock())
	shared.Together(t.staysTogether())
	if t.session.fsByStops {
		shared.FSBase(t.regs.Fs_base)
	}
	if t.session.tsc.made {
		shared.Aux(rdtscpAux())
	}
	t.noteStack()
	if int64(t.regs.Orig_rax) >= 0 && t.regs.Rax == t.regs.Orig_rax { // the result is the call's number: the guardian would take it for a call that was not let through
		t.regs.Orig_rax = ^uint64(0)
		if err := t.setRegs(&t.regs); err != nil {
			return false, err
		}
	}
	if err := t.session.source.dispatch(t.tid, true, t.block.at.Addr+p.Made, p.Sysed-p.Made+1); err != nil {
		return false, err
	}
	shared.Rest()
	shared.Supervise(true)
	t.agent, t.starting = true, false
	return true, nil
}

// within reports whether a thread of the group, but one, stands in the midst of what the site's jump is
// written over.
func (g *group) within(s *site, but *thread) bool {
	return slices.ContainsFunc(g.turns.threads, func(t *thread) bool { return t != but && !t.aside.is() && s.within(t.regs.Rip) })
}

// clearJump takes out the jump that the thread stands in the midst of.
func (t *thread) clearJump() error {
	sp := t.space()
	if s := sp.code.inJump[t.regs.Rip]; s != nil && !t.aside.is() && s.within(t.regs.Rip) {
		return s.write(sp, sp.underAgent(s, true))
	}
	return nil
}

// ownCall takes out the jump that is written over the SYSCALL instruction at addr, which the thread executes next, or the
// kernel may go back to, and not under the agent.
func (sp *space) ownCall(addr uint64) error {
	if s := sp.code.inJump[addr]; s != nil {
		return s.write(sp, siteOwn)
	}
	return nil
}

// bringAgent maps the agent into the program, which is at a stop where calls can be injected.
func (t *thread) bringAgent() error {
	sp := t.space()
	sp.noAgent = true // until it is there
	if err := t.readRegs(); err != nil {
		return err
	}
	status, err := statusOf(t.proc.live)
	if err != nil {
		return err
	}
	const bit = 1 << (unix.SIGSYS - 1)
	switch {
	case (status.Mask("SigIgn")|status.Mask("SigCgt"))&bit != 0 && t.proc.sigsys == (kernelAction{}):
		t.session.noteOnce("no agent: the program was started with SIGSYS ignored")
		return nil
	case status.Number("Seccomp") != 0:
		t.session.noteOnce("no agent: the program has a seccomp filter")
		return nil
	}
	if err := t.session.source.dispatch(t.tid, false, 0, 0); err != nil {
		t.session.noteOnce(fmt.Sprintf("no agent: PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG, of Linux 6.4: %v", err))
		return nil
	}
	if slices.ContainsFunc(t.group().turns.threads, func(o *thread) bool { return o.regs.Gs_base != 0 }) {
		t.session.noteOnce("no agent: the program uses GS")
		return nil
	}
	if !t.proc.hasOurTime() {
		t.session.noteOnce("no agent: the program has a time namespace of its own")
		return nil
	}
	sp.noAgent = false
	sp.agent = &spaceAgent{stubs: map[uint64]*site{}}
	if err := t.bringBlock(); err != nil {
		return err
	}
	if t.block == nil {
		sp.agent, sp.noAgent = nil, true
		t.session.noteOnce("no agent: its memory could not be mapped")
	}
	t.proc.note()
	return nil
}

// agentAt returns where the agent is that has what all threads share; 0 for nowhere.
func (sp *space) agentAt() uint64 {
	if sp.agent == nil || sp.agent.threadAgent == nil {
		return 0
	}
	return sp.agent.at.Addr
}

// bringBlock gives the thread, which is at a stop where calls can be injected, memory of the agent's, if
// its address space has one. A thread that gets none runs without the agent.
func (t *thread) bringBlock() error {
	sp := t.space()
	a := sp.agent
	if a == nil || sp.noAgent {
		return nil
	}
	var own *threadAgent
	if n := len(a.spare); n > 0 {
		own, a.spare = a.spare[n-1], a.spare[:n-1]
	} else {
		in, err := t.session.source.inject(t.proc.pid, t.tid, sp.site)
		if err != nil {
			return err
		}
		at, view, err := sp.mapHidden(in, 0, agent.Size, agent.TextSize, false)
		if err != nil {
			return err
		}
		if err := in.end(); err != nil || view == nil {
			return err
		}
		own = &threadAgent{at: at, shared: view}
		if a.threadAgent == nil {
			a.threadAgent = own
			sp.forgetAllCode() // with an agent more has to fault
		}
		a.all = append(a.all, own)
		own.shared.Init(at.Addr, a.at.Addr)
		if own == a.threadAgent {
			sp.haltsToAgent()
		}
	}
	t.block = own
	t.noteNative()
	return t.setRegs(&t.regs)
}

// leaveBlock gives the thread, which is at a stop, the program's base of GS.
func (t *thread) leaveBlock() error {
	if t.block == nil {
		return nil
	}
	t.block = nil
	if err := t.readRegs(); err != nil {
		return err
	}
	t.regs.Gs_base, t.aside = 0, aside{}
	return t.setRegs(&t.regs)
}

// leaveBlockOf gives a new child of t's, which is at its first stop and has its registers, the
// program's base of GS.
func (t *thread) leaveBlockOf(tid int) error {
	var r ptrace.Regs
	if t.block == nil {
		return nil
	}
	if err := t.session.source.getRegs(tid, &r); err != nil {
		return err
	}
	r.Gs_base = 0
	return t.session.source.setRegs(tid, &r)
}

// ownState is what a thread would be without a recorder.
type ownState struct {
	cpus       unix.CPUSet
	tsc, cpuid bool // are trapped by the recorder alone
}

// noteNative tells the thread's agent what the thread would be without a recorder.
func (t *thread) noteNative() {
	trap := &t.proc.trap
	now := ownState{t.affinity, trap.tsc && !trap.ownTSC && !t.session.haltsTSC, trap.cpuid && !trap.ownCPUID}
	if t.block.native == now {
		return
	}
	t.block.native = now
	var cpus [128]byte
	for i := range len(cpus) * 8 {
		if now.cpus.IsSet(i) {
			cpus[i/8] |= 1 << (i % 8)
		}
	}
	t.block.shared.Native(cpus[:], now.tsc, now.cpuid)
}

// setHealer gives SIGSYS the agent's handler, or the program's action. The handler is for a program
// whose recorder is gone: it takes the agent out. Calls can be injected at the stop.
func (t *thread) setHealer(on bool) error {
	a := t.space().agent
	want := ofGuest
	if on {
		want = ofAgent
	}
	if a == nil || a.sigsys == want {
		return nil
	}
	a.sigsys = want
	g := t.proc.sigsys
	at := a.shared.Guest(agent.Action{g.handler, g.flags, g.restorer, g.mask})
	if on {
		at = a.shared.Healer(a.at.Addr)
	}
	_, err := t.callOnce(unix.SYS_RT_SIGACTION, uint64(unix.SIGSYS), a.at.Addr+at, 0, 8)
	t.proc.note()
	return err
}

// seesHealer reports whether the call that the thread, with registers r, is about to make would find the
// handler, hand it on (threads share it), or not let it be taken away any more.
func (t *thread) seesHealer(r *ptrace.Regs) bool {
	row, _ := abi.Lookup(int64(r.Rax))
	if t.space().flagsOfTask(int64(r.Rax), r.Rdi)&cloneThread != 0 {
		return false
	}
	switch r.Rax {
	case unix.SYS_RT_SIGACTION:
		return uint32(r.Rdi) == uint32(unix.SIGSYS)
	case unix.SYS_PRCTL:
		return r.Rdi == unix.PR_SET_SECCOMP
	case unix.SYS_SECCOMP:
		return true
	}
	return row.Effect == abi.EffectTask
}

// ownCode puts the program's own code back where jumps are written over it. They are
// written again when a thread runs under the agent next.
func (sp *space) ownCode() error {
	c := &sp.code
	if c.clean && !c.halts {
		return nil
	}
	for _, s := range c.sites {
		if err := s.write(sp, siteOwn); err != nil {
			return err
		}
	}
	c.clean, c.halts = true, false
	return nil
}

// Of arch_prctl(2), asm/prctl.h; of ioctl(2), asm-generic/ioctls.h.
const (
	fionbio   = 0x5421
	archSetGS = 0x1001
	archGetGS = 0x1004
)

// agentCall tells the agent, at the entry of a call that the recorder makes, what may change by
// it.
func (t *thread) agentCall(effect abi.Effect) error {
	c, sp := &t.call, t.space()
	a := sp.agent
	if a == nil {
		return nil
	}
	switch c.nr {
	case unix.SYS_SENDMSG, unix.SYS_SENDMMSG: // it may give descriptors to others, which may read there
		a.forgetFiles()
	case unix.SYS_CLOSE_RANGE:
		a.forgetFiles()
		a.shared.ForbidWrites()
		sp.noAgent = sp.noAgent || c.args[2]&unix.CLOSE_RANGE_UNSHARE != 0
	case unix.SYS_IOCTL:
		if uint32(c.args[1]) == fionbio {
			a.shared.ForbidWrites()
		}
	case unix.SYS_FCNTL:
		if uint32(c.args[1]) == abi.F_SETFL {
			a.shared.ForbidWrites()
		}
	case unix.SYS_CLOSE, unix.SYS_DUP2, unix.SYS_DUP3:
		a.forgetFiles()
		a.shared.ForbidWrites()
	case unix.SYS_REMAP_FILE_PAGES, unix.SYS_MREMAP, unix.SYS_SHMAT:
		a.shared.ForbidWrites()
	case unix.SYS_MMAP:
		if c.args[3]&mapAnonymous == 0 {
			a.shared.ForbidWrites()
		}
	case unix.SYS_SECCOMP, unix.SYS_PTRACE:
		sp.noAgent = true
	case unix.SYS_UNSHARE: // may part the threads' descriptors
		sp.noAgent = sp.noAgent || c.args[0]&abi.CLONE_FILES != 0
	case unix.SYS_ARCH_PRCTL:
		if c.args[0] == archSetGS || c.args[0] == archGetGS {
			sp.noAgent = true
			if err := t.leaveBlock(); err != nil {
				return err
			}
		}
	case unix.SYS_PRCTL:
		if c.args[0] == unix.PR_SET_SECCOMP {
			sp.noAgent = true
		}
	}
	if effect == abi.EffectTask {
		isThread := t.taskFlags()&cloneThread != 0
		// Threads have the same descriptors, and nobody else has.
		sp.noAgent = sp.noAgent || isThread != (t.taskFlags()&abi.CLONE_FILES != 0)
		if !isThread {
			a.shared.ForbidWrites() // the new one may map what is written
			a.forgetFiles()         // and read where this one does
		}
	}
	return nil
}

// codeInCall has the code be, at the entry of a call that the recorder makes, what the call needs: the program's own, where it copies
// or replaces the memory, or may map something else there.
func (t *thread) codeInCall(effect abi.Effect) error {
	c, sp := &t.call, t.space()
	sp.beforeNewCode(c)
	switch effect {
	case abi.EffectMem:
		changed := sp.changedBy(c)
		if err := sp.forgetSites(c, changed); err != nil || sp.agent == nil {
			return err
		}
		for _, r := range changed {
			sp.agent.shared.ForgetWritable(pageDown(r.Addr), max(pageUp(r.Addr+r.Len), r.Addr)) // a length can be anything
		}
		return t.yieldAreas()
	case abi.EffectTask:
		if t.taskFlags()&cloneThread != 0 {
			return nil // it has the same memory
		}
		return sp.ownCode()
	case abi.EffectExec, abi.EffectOpaque:
		return sp.ownCode()
	default:
	}
	if sp.noAgent && !sp.code.clean {
		return sp.onlyHalts()
	}
	return nil
}
