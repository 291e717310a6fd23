//go:build linux && amd64

package record

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
)

// System calls: what is done at the entry and at the exit of each, and the events that they
// leave in the log. What single classes of calls need is elsewhere, by class: memory in
// mapops.go, files in filewrite.go, children in children.go, execve in exec.go.

// The kernel's restart codes (include/linux/errno.h) as results.
const (
	restartSys     = -512
	restartNoIntr  = -513
	restartNoHand  = -514
	restartBlock   = -516
	errnoIntr      = -int64(unix.EINTR)
	errnoNoSys     = -int64(unix.ENOSYS)
	syscallInsnLen = 2
)

func isRestart(ret int64) bool {
	switch ret {
	case restartSys, restartNoIntr, restartNoHand, restartBlock:
		return true
	}
	return false
}

// eventCost is the memory an event takes besides its data, in bytes.
const eventCost = 320

// logEvent appends an event, which happens now, to the current interval.
func (t *thread) logEvent(ev checkpoint.Event) { t.logEventOf(happensNow, ev) }

// logEventOf appends an event of a time (order.go) to the current interval.
func (t *thread) logEventOf(at int64, ev checkpoint.Event) {
	ev.TID = checkpoint.TID(t.tid)
	ev.Seq = t.group().number(at)
	t.group().cur.rec.Events = append(t.group().cur.rec.Events, ev)
	n := int64(eventCost + len(ev.XState) + len(ev.Siginfo))
	for i := range ev.Writes {
		n += int64(len(ev.Writes[i].Data)) + 48
	}
	t.group().cur.bytes += n
	t.session.result.Stats.Events++
}

// onEntry handles a system call's entry.
func (t *thread) onEntry() (action, error) {
	c := &t.call
	if c.pending {
		t.finishPending(t.atNextEntry())
	}
	if t.group().timer.comes(t) {
		return t.drain()
	}
	if len(t.sig.held) > 0 && !t.endsBySignal() {
		return t.handBack()
	}
	t.noteEntry()
	t.sendHeld()
	t.sig.syncPending = false // what is sent comes with the exit of the call
	if e := t.session.log.Trace(); e.Enabled() {
		row, known := abi.Lookup(t.call.nr)
		e.Str("sys", row.Name).Bool("known", known).Msg("enter")
	}
	return t.enter()
}

// enter prepares for a call whose entry is logged. One that changes the memory of another process
// waits for the turn first.
func (t *thread) enter() (action, error) {
	c := &t.call
	effect, why := abi.EffectOf(c.nr, c.args)
	if err := t.agentCall(effect); err != nil {
		return action{}, err
	}
	if err := t.codeInCall(effect); err != nil {
		return action{}, err
	}
	if err := t.beforeWrite(effect); err != nil {
		return action{}, err
	}
	t.proc.giveUpLeases(c)
	if c.entering = t.joinsBefore(); c.entering {
		return t.giveUpGroupTurn(action{status: callStop}, checkpoint.SchedBlocked), nil
	}
	if err := t.call.keepRemote(); err != nil {
		return action{}, err
	}
	t.keepViews()
	c.tries = t.mayWaitForPipe()
	c.vectors = abi.Blocks(&c.mem, c.nr, c.args)
	return t.classify(abi.Name(c.nr), effect, why)
}

// noteEntry logs the entry of the call that the thread is at.
func (t *thread) noteEntry() { t.noteEntryOf(happensNow) }

// noteEntryOf is noteEntry for a call that was entered at a time (order.go).
func (t *thread) noteEntryOf(at int64) {
	c := &t.call
	*c = call{in: true, nr: int64(t.regs.Orig_rax), entry: t.regs, mem: callMem{t.proc}}
	c.args = [6]uint64{t.regs.Rdi, t.regs.Rsi, t.regs.Rdx, t.regs.R10, t.regs.R8, t.regs.R9}
	regs := t.entryRegs()
	t.logEventOf(at, t.session.enterEvent(c.nr, c.args, &regs))
	t.session.result.Stats.Calls++
	t.session.result.Stats.Stopped[c.nr]++
	t.space().calls++
}

// enterEvent is the event of a call's entry, with registers as they are behind SYSCALL.
func (s *session) enterEvent(nr int64, args [6]uint64, regs *checkpoint.Regs) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventEnter, NR: nr, Args: args, RegHash: checkpoint.HashRegs(regs), Regs: s.debugRegs(regs)}
}

// unmadeEvent is the event of the exit of a call that counts as interrupted and will be made
// again: the kernel has not seen it.
func unmadeEvent(nr int64, after *checkpoint.Regs) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventExit, NR: nr, Result: restartNoIntr, Restart: true, RestartNR: nr, RegHash: checkpoint.HashRegs(after)}
}

// entryRegs are the registers after the SYSCALL instruction has retired.
func (t *thread) entryRegs() checkpoint.Regs {
	r := regsOf(&t.regs)
	r.R[0] = t.regs.Orig_rax
	return r
}

// classify does what a call's class needs before it runs.
func (t *thread) classify(name string, effect abi.Effect, why string) (action, error) {
	c := &t.call
	if err := t.beforeServing(); err != nil {
		return action{}, err
	}
	switch effect {
	case abi.EffectRefuse:
		return t.refuse(name, why)
	case abi.EffectExit:
		return action{}, t.onExitCall()
	case abi.EffectExec:
		return t.beforeExec()
	case abi.EffectTask:
		return t.beforeTask()
	case abi.EffectMem:
		return action{}, t.beforeMem()
	case abi.EffectOpaque:
		return action{}, t.beginGap(why)
	case abi.EffectFileWrite:
		t.proc.beforeFileWrite(&t.call)
		if err := t.proc.beforeOwnMem(&t.call); err != nil {
			return action{}, err
		}
	case abi.EffectPlain, abi.EffectSignal: // Nothing but what the number asks for.
	}
	switch c.nr {
	case unix.SYS_SCHED_SETAFFINITY:
		return action{}, t.guestSetsAffinity()
	case unix.SYS_PRCTL, unix.SYS_ARCH_PRCTL:
		return action{}, t.guestTraps()
	case unix.SYS_PTRACE:
		return action{}, t.beforePtrace()
	case unix.SYS_SECCOMP:
		t.noteListener()
	}
	if next, err := t.beforeKill(); err != nil || t.group().done {
		return next, err
	}
	c.since = time.Now()
	g := t.group()
	if c.tries {
		return action{}, t.tryCall()
	}
	waits := (!g.alone() || t.space().isSeen()) && t.mayBlock()
	c.mayBlock = waits && (!g.alone() || g.sharers != nil)
	if waits {
		if err := t.redirect(); err != nil {
			return action{}, err
		}
	}
	return action{}, t.resumeTimeout()
}

// patch replaces the call's arguments for the kernel, those that are not replaced yet and those that are; the exit
// restores them.
func (t *thread) patch(edit func(r *ptrace.Regs)) error {
	c := &t.call
	if !c.patched {
		c.given = t.regs
	}
	edit(&c.given)
	c.patched = true
	t.session.guard.of(t.tid).patch(c)
	given := c.given
	return t.setRegs(&given)
}

// refuse answers a call that cannot be replayed in the kernel's place.
func (t *thread) refuse(name, why string) (action, error) {
	t.call.answered, t.call.answer = true, -int64(abi.DenyErrno(t.call.nr))
	if t.call.nr == unix.SYS_RSEQ && t.space().attached {
		t.call.answer = t.guestRseq()
		return action{}, t.patch(func(r *ptrace.Regs) { r.Orig_rax = ^uint64(0) })
	}
	t.session.noteOnce("refused " + name + ": " + why)
	return action{}, t.patch(func(r *ptrace.Regs) { r.Orig_rax = ^uint64(0) })
}

// onExit handles a system call's exit.
func (t *thread) onExit() (action, error) {
	c := &t.call
	if c.patched {
		if err := t.unpatch(); err != nil {
			return action{}, err
		}
	}
	ret := int64(t.regs.Rax)
	c.in = false
	t.sig.atExit = t.regs
	if c.exec && ret == 0 {
		return action{}, t.beginImage()
	}
	if c.gap {
		return action{}, t.endGap(ret)
	}
	if c.nr != unix.SYS_RT_SIGRETURN && (isRestart(ret) || ret == errnoIntr && t.anyDue()) {
		c.pending = true
		if t.parked.noXState { // a handler begins with another one
			var err error
			if t.sig.xstate, err = t.session.source.getXState(t.tid); err != nil {
				return action{}, err
			}
		}
		return action{}, nil
	}
	return action{}, t.finishCall(ret)
}

// unpatch restores the arguments that were replaced for the kernel.
func (t *thread) unpatch() error {
	c := &t.call
	e := &c.entry
	t.regs.Rdi, t.regs.Rsi, t.regs.Rdx = e.Rdi, e.Rsi, e.Rdx
	t.regs.R10, t.regs.R8, t.regs.R9, t.regs.Orig_rax = e.R10, e.R8, e.R9, e.Orig_rax
	if c.answered {
		t.regs.Rax = uint64(c.answer)
	}
	return t.setRegs(&t.regs)
}

// sizeChanged is why an interval ends at a call that cuts a file that is mapped, or has it grow.
const sizeChanged = "a mapped file changed its size"

// finishCall logs a call's exit and does what a sync point allows.
func (t *thread) finishCall(ret int64) error {
	ev, err := t.exitEvent(ret)
	if err != nil {
		t.call.in = true // killed, and the log has no exit
		return err
	}
	if t.group().cutOff {
		ev.Reason = sizeChanged
	}
	if ev.Reason != "" {
		// The effects cannot be listed after all: what was logged ends at the
		// entry, and a new image starts here.
		return t.lateGap(ev.Reason)
	}
	t.logEvent(ev)
	if err := t.afterCall(ret); err != nil {
		return err
	}
	t.noteWrite()
	return t.syncPoint()
}

// exitEvent makes the event of the exit that the program is at.
func (t *thread) exitEvent(ret int64) (checkpoint.Event, error) {
	c := &t.call
	ev := checkpoint.Event{Kind: checkpoint.EventExit, NR: c.nr, Result: ret}
	var err error
	if err = t.space().mapEffects(&t.call, &ev, ret); err != nil {
		return ev, err
	}
	if len(ev.Maps) > 0 {
		t.space().noteStorers(ev.Maps)
		if t.session.strangers {
			t.space().noteSharers()
		}
	}
	if c.nr == unix.SYS_SCHED_GETAFFINITY && ret > 0 {
		t.answerAffinity(ret)
	}
	if c.nr == unix.SYS_PRCTL && c.args[0] == prGetTSC && ret == 0 && t.proc.trap.tsc {
		t.answerTSC()
	}
	if ret == 0 {
		t.answerSegv()
	}
	// Before what comes into the memory only now.
	ev.Writes = append(ev.Writes, t.group().othersWrites(t.space())...)
	ev.Writes = append(ev.Writes, t.group().seenWrites(t.space())...)
	if c.redirection != nil {
		ev.Writes = append(ev.Writes, t.redirected(ret)...)
	} else if !c.answered {
		var blocks abi.Memory = &c.mem
		if c.vectors != nil {
			blocks = abi.NewOverlay(&c.mem, c.vectors)
		}
		ranges, err := abi.OutputsBy(nil, &c.mem, blocks, c.nr, c.args, ret)
		if err != nil {
			ev.Reason = fmt.Sprintf("%s: %v", abi.Name(c.nr), err)
		}
		ev.Writes = append(ev.Writes, t.space().readWrites(ranges)...)
	}
	if t.proc.resized(&t.call) {
		ev.Reason = sizeChanged
		return ev, nil
	}
	ev.Writes = append(ev.Writes, t.proc.fileEffects(&t.call)...)
	ev.Writes = append(ev.Writes, t.space().ownMemWrites(&t.call, ret)...)
	ev.Writes = append(ev.Writes, t.space().outsideWrites()...)
	refilled := t.space().refilled(&t.call)
	t.space().noteLogged(refilled)
	ev.Writes = append(ev.Writes, refilled...)
	now, was := regsOf(&t.regs), regsOf(&c.entry)
	was.R[0] = uint64(ret)
	if now != was || t.session.opt.FullRegs {
		ev.Regs = &now
	}
	if c.nr == unix.SYS_RT_SIGRETURN {
		if ev.XState, err = t.session.source.getXState(t.tid); err != nil {
			return ev, err
		}
	}
	ev.RegHash = checkpoint.HashRegs(&now)
	if t.parked.noXState {
		t.parked.noXState = false
		if ev.XState = t.sig.xstate; ev.XState == nil {
			ev.XState, err = t.session.source.getXState(t.tid)
		}
		t.sig.xstate = nil
	}
	return ev, err
}

// mapEffects puts what the call did to the memory map into its event, and
// into the model.
func (sp *space) mapEffects(c *call, ev *checkpoint.Event, ret int64) error {
	apply := func(ops []checkpoint.MapOp) {
		for i := range ops {
			sp.maps.apply(&ops[i])
			sp.noteRemapped(c, &ops[i])
		}
		ev.Maps = append(ev.Maps, ops...)
	}
	if c.overAgent {
		sp.noteReplaced(c, ret)
	}
	ops, err := sp.mapOps(c, ret)
	if err != nil {
		return err
	}
	apply(ops)
	sp.noteLogged(c.shown)
	sp.noteNewMemory(c, ret)
	if !sp.asksKernel(c, ret) {
		ev.Writes = c.shown
		return nil
	}
	ops, ev.Writes, err = sp.observed(c)
	apply(ops)
	ev.Writes = append(ev.Writes, c.shown...)
	return err
}

// callMem is the guest's memory as package abi reads it.
type callMem struct{ p *process }

// ReadAt implements abi.Memory.
func (m *callMem) ReadAt(addr uint64, b []byte) int { return m.p.space.readMem(addr, b) }

// Writable implements abi.Hints from the map model.
func (m *callMem) Writable(addr, n uint64) bool {
	for end := addr + n; addr < end; {
		r := m.p.space.maps.at(addr)
		if r == nil || r.Prot&checkpoint.ProtWrite == 0 {
			return false
		}
		if r.Object != 0 {
			// A page beyond the end of a file faults.
			if o := m.p.space.objects.at(r.Object); o.Size < 0 || r.Offset+(min(end, r.End)-r.Start) > uint64(o.Size) {
				return false
			}
		}
		addr = r.End
	}
	return true
}

// Datagram implements abi.Hints.
func (m *callMem) Datagram(fd int32) bool {
	st, ok := m.p.statFD(fd)
	return ok && st.Mode&unix.S_IFMT == unix.S_IFSOCK
}

// outcome is how an interrupted call ends: with a result, or by being made
// again as call number result.
type outcome struct {
	restart bool
	result  int64
}

// asIs is the outcome of a call that is interrupted by the program's end.
func (t *thread) asIs() outcome { return outcome{result: int64(t.sig.atExit.Rax)} }

// atNextEntry is the outcome of an interrupted call behind which the thread, at the entry of a call, has taken no signal: the
// kernel makes it again by the code of a restart, and this is its entry. EINTR is what the program has seen.
func (t *thread) atNextEntry() outcome {
	if !isRestart(int64(t.sig.atExit.Rax)) {
		return t.asIs()
	}
	return outcome{true, int64(t.regs.Orig_rax)}
}

// finishPending logs the exit of an interrupted call, whose end is now known.
func (t *thread) finishPending(o outcome) {
	c := &t.call
	c.pending = false
	saved := t.regs
	t.regs = t.sig.atExit
	code := int64(t.regs.Rax)
	if !o.restart {
		t.regs.Rax = uint64(o.result)
	}
	ev, err := t.exitEvent(int64(t.regs.Rax))
	if err != nil {
		t.session.log.Error().Err(err).Msg("interrupted call")
	}
	ev.Reason = ""
	if o.restart {
		ev.Restart, ev.RestartNR, ev.Result = true, o.result, code
		r := regsOf(&t.regs)
		r.RIP -= syscallInsnLen
		r.R[0] = uint64(o.result)
		ev.RegHash = checkpoint.HashRegs(&r)
		if ev.Regs != nil {
			ev.Regs = &r
		}
	}
	t.logEvent(ev)
	t.regs = saved
}

// afterCall keeps the tracer's own state in step with what the call changed.
func (t *thread) afterCall(ret int64) error {
	c := &t.call
	switch c.nr {
	case unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN:
		return t.refreshMask()
	case unix.SYS_RT_SIGACTION:
		if ret == 0 {
			t.proc.noteAction(&t.call)
		}
	case unix.SYS_CLONE, unix.SYS_CLONE3:
		if t.call.thread != nil {
			t.startThread()
			return t.mapScratch()
		}
	case unix.SYS_SET_TID_ADDRESS:
		t.clearTID = c.args[0]
	case unix.SYS_SET_ROBUST_LIST:
		if ret == 0 {
			t.robust = c.args[0]
		}
	case unix.SYS_WRITE, unix.SYS_WRITEV:
		t.noteStderr(ret)
	case unix.SYS_PRCTL:
		switch {
		case c.args[0] == unix.PR_SET_NAME:
			t.readName()
		case c.args[0] == unix.PR_SET_CHILD_SUBREAPER && ret == 0:
			t.proc.setReaper(c.args[1] != 0)
		}
	case unix.SYS_PERSONALITY:
		t.space().noteExecImplied()
	case unix.SYS_RT_SIGTIMEDWAIT:
		if ret > 0 {
			t.session.relay.taken(t, unix.Signal(ret))
		}
	case unix.SYS_KILL:
		if ret == 0 && int32(c.args[0]) == -1 {
			t.session.relay.sentToAll(t, unix.Signal(c.args[1]))
		}
	}
	return nil
}

// syncPoint is called with the program at a sync point, everything logged: it
// looks for signals that come right here, and for the interval's end.
func (t *thread) syncPoint() error {
	t.atSync = true
	pending := t.pending()
	t.sig.syncPending = pending&^t.sig.mask != 0
	if t.sig.syncPending {
		return nil
	}
	if t.group().sharers != nil {
		if err := t.watchStores(); err != nil {
			return err
		}
		if err := t.dropShared(); err != nil {
			return err
		}
	}
	if t.space().isSeen() {
		if err := t.mapScratch(); err != nil {
			return err
		}
	}
	g := t.group()
	cpu, err := g.cpuTime()
	if err != nil {
		return err
	}
	full := func(past time.Duration) bool {
		return past >= g.leastSpacing && g.cur.isFull(1) || g.cur.isFull(overfull)
	}
	if past := cpu - g.cur.rec.CPUStart; past >= g.spacing && !g.goesOnFirst(t, cpu) || full(past) || g.liveDue {
		return g.cut(t, intervalEnd{kind: checkpoint.EndSync, cpu: cpu})
	}
	return nil
}
