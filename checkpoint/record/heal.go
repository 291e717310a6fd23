//go:build linux && amd64

package record

import (
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// What goes out of an address space again when a program is let go that was attached to, and when
// a child of it goes on unrecorded: scratch memory, and the changes to the vdso. What each thread
// gets back is in detach.go.

// leaving is a thread that is at a stop in its own code and goes on with a signal, or 0.
type leaving struct {
	t   *thread
	sig int
}

// heal takes out of the group's address space what the recorder has put there. All threads in it
// are stopped.
func (g *group) heal(list []leaving) error {
	if len(list) == 0 {
		return nil
	}
	t := list[0].t
	sp := t.space()
	if !sp.attached {
		return nil
	}
	err := t.borrow(t.proc.pid, t.tid, func(in caller) error { return sp.healBy(in, sp.mem) })
	sp.scratch, sp.spare, sp.patches = nil, nil, nil
	for _, o := range g.turns.threads {
		o.scratch = abi.Range{}
		o.note()
	}
	return err
}

// healBy has a borrowed thread of the process with memory mem, which is sp's or a copy, unmap
// scratch memory, and gives the vdso its code back.
func (sp *space) healBy(in caller, mem memory) error {
	for _, r := range sp.scratch {
		if _, err := in.do(unix.SYS_MUNMAP, r.lo*checkpoint.PageSize, (r.hi-r.lo)*checkpoint.PageSize); err != nil {
			return err
		}
	}
	return unpatchVDSO(mem, sp.patches)
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
