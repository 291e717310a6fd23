//go:build linux && amd64

package record

import (
	"fmt"
	"maps"
	"slices"

	"vplay/checkpoint"
)

// How a process that fork(2) has made joins the recording. It has a copy of its parent's
// memory, and from there on they share none but what is mapped shared. So it is a group of
// its own, with its own log, whose first interval begins behind the call that made it.

// recordChild begins the recording of a child of t's, which is at its first stop, in t's call.
func (t *thread) recordChild(pid int) error {
	if err := t.leaveBlockOf(pid); err != nil {
		return err
	}
	n := t.session.newThread(pid)
	p, of := n.proc, t.proc
	p.parent, p.trap, p.segv, p.sigsys, p.about, p.wanted = of.pid, of.trap, of.segv, of.sigsys, of.about, of.wanted
	p.about.PID, p.about.Parent = int32(pid), int32(of.pid)
	n.affinity, n.name, n.starting, n.rseq, n.tscRuns, n.listened = t.affinity, t.name, true, t.rseq, t.tscRuns, t.listened
	n.note()
	t.session.inheritServing(of, p)
	n.call.mem = callMem{p}
	n.group().cpu = t.group().cpu
	if t.space().sharesMapped() {
		n.group().paused = true
		t.group().join(n.group())
	}
	if err := n.beginFork(t.space()); err != nil {
		n.session.forgetProcess(p)
		if isGone(err) {
			return err
		}
		t.session.noteOnce(fmt.Sprintf("process %d runs on unrecorded: %v", pid, err))
		t.noteStranger()
		return t.releaseChild(pid)
	}
	if n.group().paused {
		n.group().turns.ready = []*thread{n}
		return nil
	}
	if err := n.group().pass(n); err != nil {
		return err
	}
	return n.goOn(action{})
}

// shareWith has a child of t's, which is at its first stop in t's call and shares t's memory,
// run as one more thread of that memory, until it ends or executes a program. One that t
// waits for starts inside t's call (vfork(2)); others start as threads do.
func (t *thread) shareWith(pid int) error {
	p := &process{
		session: t.session, space: t.space(), pid: pid, live: pid, parent: t.proc.pid,
		trap: t.proc.trap, segv: t.proc.segv, sigsys: t.proc.sigsys, about: t.proc.about, wanted: t.proc.wanted,
	}
	p.about.PID, p.about.Parent = int32(pid), int32(t.proc.pid)
	n := &thread{session: t.session, proc: p, tid: pid}
	if t.taskFlags()&cloneSighand != 0 { // what one of them sets is the other's, too
		if err := t.borrow(pid, pid, t.proc.trap.defaultSegv); err != nil {
			return err
		}
		t.proc.trap.handler, p.trap.handler = 0, 0
	}
	if err := t.beginThread(n); err != nil {
		t.session.drop(pid)
		return err
	}
	g := t.group()
	g.procs = append(g.procs, p)
	t.call.thread = n
	if t.taskFlags()&cloneVfork != 0 {
		t.call.mayBlock = true // from now on: until here it has kept its turn, and the child starts where its parent's state is known
		t.startThread()
	}
	return nil
}

// splitOff gives a thread, whose process shares its memory with others, a group of its own:
// it has executed a program, or is let go. In their log it ends here.
func (t *thread) splitOff() error {
	s, g, old := t.session, t.group(), t.space()
	if err := t.leaveBlock(); err != nil {
		return err
	}
	t.logThreadEnd(0)
	g.turns.why = checkpoint.SchedExit
	g.forget(t)
	g.leave(t.proc)
	s.newGroup(t)
	sp, n := t.space(), t.group()
	sp.image, sp.site, sp.segv, sp.vdso = old.image, old.site, old.segv, old.vdso
	n.cpu, n.turns.has = g.cpu, t
	n.timer.blocked(t.sig.mask)
	return sp.open()
}

// forgetProcess takes a process out of the recording in which nothing of it has been recorded.
func (s *session) forgetProcess(p *process) {
	g := p.space.group
	for _, t := range g.turns.threads {
		s.drop(t.tid)
	}
	g.over()
	g.leave(p)
}

// beginFork starts the first interval of a process whose memory is a copy of that of old.
func (t *thread) beginFork(old *space) error {
	sp := t.space()
	if err := sp.open(); err != nil {
		return err
	}
	sp.image, sp.site, sp.segv, sp.vdso, sp.brk, sp.readExec = old.image, old.site, old.segv, old.vdso, old.brk, old.readExec
	sp.artefact, sp.noShadow = slices.Clone(old.artefact), old.noShadow
	sp.attached, sp.vdsoEnd, sp.patches = old.attached, old.vdsoEnd, old.patches
	sp.hasRandom, sp.noClock = old.hasRandom, old.noClock
	sp.scratch = old.scratch // mapped, and its parent's
	if sp.stored = maps.Clone(old.stored); sp.stored != nil {
		sp.outside = map[uint64][]byte{}
	}
	if err := sp.readModel(); err != nil {
		return err
	}
	for m := range old.maps.tree.From(0) {
		if m.advice != 0 {
			sp.maps.advise(m.Start, m.End, m.advice, 0)
		}
	}
	if err := t.admit(); err != nil {
		return err
	}
	if err := t.readRegs(); err != nil {
		return err
	}
	if err := t.refreshMask(); err != nil {
		return err
	}
	t.parked.regs = t.replayed()
	if err := sp.keepInherited(old); err != nil {
		return err
	}
	if t.group().paused {
		return nil // it begins when it has its turn
	}
	m, err := sp.takeSnapshot()
	if err != nil {
		return err
	}
	return t.group().startInterval(t, m, t.group().contexts(t))
}

// keepInherited keeps what the objects hold that a new process, a copy of one whose memory is
// old, has mapped shared. What it has mapped of shared memory for itself is read now, as showChanged
// does for a new mapping: fork(2) copies no entries of page tables for such pages.
func (sp *space) keepInherited(old *space) error {
	c := &call{}
	hidden := old.hiddenShared(nil)
	for _, m := range sp.maps.all() {
		if m.Object == 0 {
			continue
		}
		op := checkpoint.MapOp{Start: m.Start, End: m.End, Map: m.Mapping}
		if m.private() {
			sp.showShared(&m)
			continue
		}
		known := sp.group.sharers != nil && m.Prot&checkpoint.ProtWrite != 0 && !sp.session.strangers
		if known && sp.objects.at(m.Object).Path == sharedAnonymous {
			// It was zero, and what recorded processes have stored in it, which nobody else can
			// have, is known. To read all of it would give each hole a page.
			sp.noteUnmapped(&m, hidden.intersect(ranges{{m.Start / checkpoint.PageSize, m.End / checkpoint.PageSize}}))
			continue
		}
		if err := sp.captureFrom(c, &op, mapFile(sp.pid, m.Start, m.End)); err != nil {
			return err
		}
	}
	return nil
}
