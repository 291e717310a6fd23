//go:build linux && amd64

package record

import (
	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// What goes out of an address space again when a program is let go that was attached to, and when
// a child of it goes on unrecorded: scratch memory, and the changes to the vdso. What each thread
// gets back is in detach.go.

// heal takes out of the group's address space what the recorder has put there. All threads in it
// are stopped.
func (g *group) heal(list []*thread) error {
	if len(list) == 0 {
		return nil
	}
	t := list[0]
	sp := t.space()
	if !sp.attached {
		return nil
	}
	if err := sp.takeAgentOut(list); err != nil {
		return err
	}
	err := t.borrow(t.proc.pid, t.tid, func(in caller) error {
		return errors.Join(sp.healBy(in, sp.mem), unmapAll(in, sp.agentPages))
	})
	sp.scratch, sp.spare, sp.patches, sp.agentPages = nil, nil, nil, nil
	for _, o := range g.turns.threads {
		o.scratch = abi.Range{}
		o.note()
	}
	return err
}

// healBy has a borrowed thread of the process with memory mem, which is sp's or a copy, unmap
// scratch memory, and gives the vdso its code back.
func (sp *space) healBy(in caller, mem memory) error {
	if err := unmapAll(in, sp.scratch); err != nil {
		return err
	}
	return unpatchVDSO(mem, sp.patches)
}

// unmapAll has a borrowed thread unmap pages.
func unmapAll(in caller, pages ranges) error {
	for _, r := range pages {
		if _, err := in.do(unix.SYS_MUNMAP, r.lo*checkpoint.PageSize, (r.hi-r.lo)*checkpoint.PageSize); err != nil {
			return err
		}
	}
	return nil
}

// takeAgentOut has nothing of the agent's left in the program but its memory. The list has the threads that go
// on in it.
func (sp *space) takeAgentOut(list []*thread) error {
	if sp.agent == nil {
		return nil
	}
	if err := errors.Join(sp.ownCode(), list[0].setHealer(false)); err != nil {
		return err
	}
	for _, t := range list {
		if err := t.leaveBlock(); err != nil && !isGone(err) {
			return err
		}
	}
	sp.agent.close()
	sp.agent, sp.noAgent, sp.code = nil, true, newPatchedCode()
	sp.forgetAllCode()
	list[0].proc.note()
	return nil
}

// healChild gives a new child, which is at its first stop and has a copy of t's memory, what t
// had before the attach.
func (t *thread) healChild(pid int) error {
	sp := t.space()
	if !sp.attached || t.call.in && t.taskFlags()&cloneVM != 0 {
		return nil
	}
	mem, mm, err := t.session.source.open(pid)
	if err != nil {
		return err
	}
	defer mem.close()
	defer mm.close()
	return t.borrow(pid, pid, func(in caller) error { return sp.healBy(in, mem) }, t.giveRseq)
}
