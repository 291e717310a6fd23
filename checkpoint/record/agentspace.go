//go:build linux && amd64

package record

import (
	"fmt"

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

// spaceAgent is the agent in an address space.
type spaceAgent struct {
	at     abi.Range // its mapping
	shared agent.Shared
	areas  []*stubArea
	sites  map[uint64]*site  // by the address of the SYSCALL instruction
	stubs  map[uint64]*site  // by the address of the stub
	pages  map[uint64]uint64 // that jumps alone have made private, and the hash of what they hold
	inJump map[uint64]*site  // by each byte that their jumps are written over
	slots  int               // that jumps have had
	clean  bool              // no jump is written
	heals  bool              // SIGSYS has the agent's handler, should the recorder go
}

// close gives up what is mapped here.
func (a *spaceAgent) close() {
	if a == nil {
		return
	}
	_ = unix.Munmap(a.shared) // it is mapped
	for _, s := range a.areas {
		_ = unix.Munmap(s.view) // likewise
	}
}

// agentFits reports whether the thread, which goes on by next, may run under the agent: it is
// alone, and what its calls do is known from these alone.
func (t *thread) agentFits(next action) bool {
	s, g, sp := t.session, t.group(), t.space()
	switch {
	case !s.opt.Agent, s.opt.Vsyscall, sp.noAgent, sp.vdso == 0, g.done, g.cur == nil:
		return false
	case !s.alone() || g.sharers != nil || s.strangers || sp.outside != nil || len(s.unrecorded) > 0:
		return false
	case next.req != 0 && next.req != ptrace.Syscall, t.call.in, t.call.pending, t.redo, t.starting, t.leaves, t.exiting, t.parked.noXState:
		return false
	}
	return sp.agent != nil || next.sig == 0 // calls are injected to bring it in
}

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
	a := sp.agent
	if !a.heals && sig == 0 {
		if err := t.setHealer(true); err != nil {
			return false, err
		}
	}
	if err := t.readRegs(); err != nil {
		return false, err
	}
	rip := t.regs.Rip
	if a.clean {
		for _, s := range a.sites {
			if err := s.write(sp, !s.within(rip)); err != nil {
				return false, err
			}
		}
		a.clean = false
	} else if s := a.inJump[rip]; s != nil && s.within(rip) {
		if err := s.write(sp, false); err != nil {
			return false, err
		}
	}
	a.shared.Attend(len(t.sig.held) > 0)
	p := agent.Places()
	if err := t.session.source.dispatch(t.tid, true, a.at.Addr+p.Made, p.Sysed-p.Made+1); err != nil {
		return false, err
	}
	a.shared.Rest()
	a.shared.Supervise(true)
	t.agent = true
	return true, nil
}

// bringAgent maps the agent into the program, which is at a stop where calls can be injected.
func (t *thread) bringAgent() error {
	sp := t.space()
	sp.noAgent = true // until it is there
	status, err := statusOf(t.proc.live)
	if err != nil {
		return err
	}
	const bit = 1 << (unix.SIGSYS - 1)
	switch {
	case (status.Mask("SigIgn")|status.Mask("SigCgt"))&bit != 0:
		t.session.noteOnce("no agent: the program has an action for SIGSYS")
		return nil
	case status.Number("Seccomp") != 0:
		t.session.noteOnce("no agent: the program has a seccomp filter")
		return nil
	case !hasCPUFlag("fsgsbase"):
		t.session.noteOnce("no agent: the CPU has no FSGSBASE")
		return nil
	}
	if err := t.session.source.dispatch(t.tid, false, 0, 0); err != nil {
		t.session.noteOnce(fmt.Sprintf("no agent: PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG, of Linux 6.4: %v", err))
		return nil
	}
	in, err := t.session.source.inject(t.proc.pid, t.tid, sp.site)
	if err != nil {
		return err
	}
	at, view, err := sp.mapHidden(in, 0, agent.Size, agent.TextSize, false)
	if err != nil {
		return err
	}
	if err := in.end(); err != nil {
		return err
	}
	if view == nil {
		t.session.noteOnce("no agent: its memory could not be mapped")
		return nil
	}
	sp.agent = &spaceAgent{at: at, shared: view, sites: map[uint64]*site{}, stubs: map[uint64]*site{}, inJump: map[uint64]*site{}, pages: map[uint64]uint64{}, clean: true}
	sp.agent.shared.Init(at.Addr)
	sp.noAgent = false
	return nil
}

// setHealer gives SIGSYS the agent's handler, or its default action. The handler is for a program
// whose recorder is gone: it takes the agent out. Calls can be injected at the stop.
func (t *thread) setHealer(on bool) error {
	a := t.space().agent
	if a == nil || a.heals == on {
		return nil
	}
	a.heals = on
	var cpus [128]byte
	for i := range len(cpus) * 8 {
		if t.affinity.IsSet(i) {
			cpus[i/8] |= 1 << (i % 8)
		}
	}
	trap := &t.proc.trap
	a.shared.Native(cpus[:], trap.tsc && !trap.ownTSC, trap.cpuid && !trap.ownCPUID)
	_, err := t.callOnce(unix.SYS_RT_SIGACTION, uint64(unix.SIGSYS), a.at.Addr+a.shared.Action(a.at.Addr, on), 0, 8)
	return err
}

// seesHealer reports whether a call, whose entry has the registers r, would find the handler, or
// hand it on.
func seesHealer(r *ptrace.Regs) bool {
	row, _ := abi.Lookup(int64(r.Rax))
	return row.Effect == abi.EffectTask || r.Rax == unix.SYS_RT_SIGACTION && uint32(r.Rdi) == uint32(unix.SIGSYS)
}

// ownCode puts the program's own code back where jumps are written over it. They are
// written again when a thread runs under the agent next.
func (sp *space) ownCode() error {
	a := sp.agent
	if a == nil || a.clean {
		return nil
	}
	for _, s := range a.sites {
		if err := s.write(sp, false); err != nil {
			return err
		}
	}
	a.clean = true
	return nil
}

// agentCall tells the agent, at the entry of a call that the recorder makes, what may change by
// it.
func (t *thread) agentCall(effect abi.Effect) error {
	c, sp := &t.call, t.space()
	a := sp.agent
	if a == nil {
		return nil
	}
	switch c.nr {
	case unix.SYS_CLOSE, unix.SYS_DUP2, unix.SYS_DUP3, unix.SYS_CLOSE_RANGE, unix.SYS_REMAP_FILE_PAGES, unix.SYS_MREMAP, unix.SYS_SHMAT:
		a.shared.ForbidWrites()
	case unix.SYS_MMAP:
		if c.args[3]&mapAnonymous == 0 {
			a.shared.ForbidWrites()
		}
	case unix.SYS_SECCOMP, unix.SYS_PTRACE:
		sp.noAgent = true
	case unix.SYS_PRCTL:
		if c.args[0] == unix.PR_SET_SECCOMP {
			sp.noAgent = true
		}
	case unix.SYS_RT_SIGACTION:
		if c.args[0] == uint64(unix.SIGSYS) && c.args[1] != 0 {
			sp.noAgent = true
		}
	}
	switch effect {
	case abi.EffectMem:
		a.shared.ForgetWritable()
		return sp.forgetSites(c)
	case abi.EffectTask, abi.EffectExec, abi.EffectOpaque:
		return sp.ownCode()
	default:
	}
	if sp.noAgent {
		return sp.ownCode()
	}
	return nil
}
