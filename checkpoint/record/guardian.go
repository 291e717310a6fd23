//go:build linux && amd64

package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/checkpoint/abi/ptrace"
	"vplay/checkpoint/record/agent"
)

// The guardian waits until the recorder has ended. Where that had not said so before, it stops
// the threads that were recorded, gives them back what is their own, and lets them go.

// Descriptors of the guardian.
const (
	guardJournal  = 3
	guardRecorder = 4 // a pidfd of it
)

// Guard is the hidden verb of the guardian.
//
// Preconditions: called on the main goroutine, first thing in main.
func Guard() error {
	runtime.LockOSThread() // it will trace
	reserveThreads(guardianReserve)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2)
	// A kill of all that is called vplayd is not to be the guardian's end, too.
	if err := os.WriteFile("/proc/self/comm", []byte("vplay-guardian"), 0); err != nil {
		return err
	}
	_, j, err := mapJournal(guardJournal)
	if err != nil {
		return err
	}
	go func() {
		// For a recorder whose tracing thread ends in a way that the list does not tell.
		fds := []unix.PollFd{{Fd: guardRecorder, Events: unix.POLLIN}}
		for {
			if n, err := unix.Poll(fds, -1); n == 1 || err != unix.EINTR {
				j.sentry.word.Or(futexOwnerDied)
				j.entries[0].word.Or(futexOwnerDied)
				nudge(&j.entries[0].word)
				j.tell()
				return
			}
		}
	}()
	go func() { // the tracer's thread may end first
		j.await(&j.entries[0].word)
		nudge(&j.entries[0].word) // the kernel wakes one of those that wait
		j.tell()
	}()
	hurry(0)
	j.awaitEnd()
	if j.done.Load() != 0 {
		return j.relieve()
	}
	g := &guardian{journal: j, wards: map[int]*ward{}, places: map[int]place{}, actions: map[int]bool{}, jumps: map[int][]agent.Jump{}, own: map[int]bool{}, left: map[int]bool{}}
	g.stop()
	if err := j.relieve(); err != nil {
		return err
	}
	unhurry() // who is waited for needs the CPU
	g.seize()
	return g.heal()
}

// awaitEnd waits for the recorder's end. The sentry's futex is the herald's, where there is one: the kernel wakes one of those that
// wait.
func (j *journal) awaitEnd() {
	if j.herald.Load() != 0 {
		j.await(&j.heralded)
	} else {
		j.await(&j.sentry.word)
	}
}

// relieve waits for the end of the herald, which has been on watch until now, for a thread of Go may have to wait for others when it
// comes out of a call. What the herald sends when all is healed would leave a process stopped.
func (j *journal) relieve() error {
	pid := int(j.herald.Load())
	if pid == 0 {
		return nil
	}
	_, err := ptrace.Wait(pid, 0)
	return err
}

// guardian is what the guardian knows.
type guardian struct {
	journal *journal
	wards   map[int]*ward        // by thread
	places  map[int]place        // by process
	actions map[int]bool         // the processes that have their own actions for signals
	jumps   map[int][]agent.Jump // of the agent of a process
	own     map[int]bool         // the processes that have their own code
	left    map[int]bool         // threads that are none of its business: they could not be seized, or were killed
}

// ward is a thread that the guardian takes care of.
type ward struct {
	tid, pid int
	undo     *undo
	copied   bool // undo is of the thread that has made it
	once     bool // it need not be the recorder's: where it cannot be seized at once, it is left alone
	executed bool // another program than undo is of
	seized   bool
	healed   bool
	grouped  bool  // the SIGSTOP was delivered, and has stopped the whole process
	killed   []int // its children that were copies of it
	held     []heldSignal
}

// place is where a process makes calls that are injected, 0 for nowhere.
type place struct{ vdso, end, site uint64 }

// stop sends SIGSTOP to all threads that are recorded, and kills the copies of the program that the recorder has
// made. They are still traced by the thread that ends, so that this has to be fast.
func (g *guardian) stop() {
	j := g.journal
	for i := range int(j.used.Load()) {
		u := &j.undos[i]
		if tid := int(u.tid.Load()); tid != 0 {
			_ = unix.Tgkill(int(u.pid), tid, unix.SIGSTOP) // it fails only for one that is gone
			g.wards[tid] = &ward{tid: tid, pid: int(u.pid), undo: u}
		}
	}
	for _, pid := range childrenOf(fmt.Sprintf("/proc/%d/task/%d", j.recorder.Load(), j.tracer.Load())) {
		if g.wards[pid] == nil && g.isTraced(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	for _, w := range g.wards {
		if w.undo.copies.Load() != 0 {
			w.killed = g.killCopies(w.pid, w.tid)
		}
	}
	for _, w := range g.listed() {
		g.stopTasks(w.pid)
	}
}

// stopTasks sends SIGSTOP to the threads and the children of a process that are not known yet and still traced.
func (g *guardian) stopTasks(pid int) {
	g.addTasks(pid, false, func(pid, tid int) bool { return g.isTraced(tid) && unix.Tgkill(pid, tid, unix.SIGSTOP) == nil })
}

// isTraced reports whether the recorder still traces a thread.
func (g *guardian) isTraced(tid int) bool { return tracerOf(tid) == int(g.journal.tracer.Load()) }

// killCopies kills the children of a thread that the recorder knows only as copies, with theirs, and returns which.
func (g *guardian) killCopies(pid, tid int) (killed []int) {
	for _, child := range childrenOf(fmt.Sprintf("/proc/%d/task/%d", pid, tid)) {
		if g.wards[child] != nil || !g.isTraced(child) {
			continue
		}
		_ = g.killCopies(child, child)
		if unix.Kill(child, unix.SIGKILL) == nil {
			killed = append(killed, child)
			g.left[child] = true
		}
	}
	return killed
}

// listed returns the first threads of processes.
func (g *guardian) listed() (list []*ward) {
	for _, w := range g.wards {
		if w.tid == w.pid {
			list = append(list, w)
		}
	}
	return list
}

// addTasks adds the threads and the children of a process that are not known yet and that are wanted: what was
// being made when the recorder was killed.
func (g *guardian) addTasks(pid int, once bool, wanted func(pid, tid int) bool) {
	of := g.wards[pid].undo
	add := func(p, tid int) {
		if g.wards[tid] == nil && !g.left[tid] && wanted(p, tid) {
			g.wards[tid] = &ward{tid: tid, pid: p, undo: of, copied: true, once: once}
		}
	}
	tids, err := tasksOf(pid)
	if err != nil {
		return
	}
	for _, tid := range tids {
		add(pid, tid)
		for _, child := range childrenOf(fmt.Sprintf("/proc/%d/task/%d", pid, tid)) {
			add(child, child)
		}
	}
}

// guardianOptions are the ptrace options of the wards.
const guardianOptions = ptrace.OptSysGood | ptrace.OptFork | ptrace.OptVfork | ptrace.OptClone

// seizeLimit is how long it may take until the recorder's thread has let the threads go.
const seizeLimit = 5 * time.Second

// seize attaches to all as soon as they are let go, and has them stop.
func (g *guardian) seize() {
	end := time.Now().Add(seizeLimit)
	for again := true; again; {
		again = false
		for tid, w := range g.wards {
			switch {
			case w.seized:
				continue
			case !w.seize(end):
				w.leave()
				delete(g.wards, tid)
				g.left[tid] = true
			}
			again = true
		}
		for _, w := range g.listed() {
			g.stopTasks(w.pid) // made since: the recorder's thread need not be gone yet
			g.addTasks(w.pid, true, func(int, int) bool { return true })
		}
	}
}

// seize attaches to one, and reports whether that was possible.
func (w *ward) seize(end time.Time) bool {
	for n := 1; ; n++ {
		switch err := ptrace.Seize(w.tid, guardianOptions); {
		case err == nil:
			w.seized = true
			_ = ptrace.Interrupt(w.tid) // it fails only for one that has gone
			return true
		case !errors.Is(err, unix.EPERM), w.once, n%64 == 0 && (hasEnded(w.tid) || time.Now().After(end)):
			return false
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// leave undoes the SIGSTOP of one that the guardian may not trace: a program may forbid it (PR_SET_DUMPABLE).
func (w *ward) leave() {
	if !w.once && !w.undo.listens {
		_ = unix.Kill(w.pid, unix.SIGCONT) // it fails only for one that is gone
	}
}

// heal gives the threads back what is their own as they come to stops, and lets them go.
func (g *guardian) heal() error {
	for len(g.wards) > 0 {
		tid, ws, err := ptrace.WaitAny(0)
		if err != nil {
			return err
		}
		w := g.wards[tid]
		switch {
		case !ws.Stopped():
			delete(g.wards, tid)
			continue
		case w == nil:
			if w = g.made(tid); w == nil {
				_ = ptrace.Resume(tid, ptrace.Detach, 0)
				continue
			}
		}
		gone, err := g.onStop(w, ws)
		if gone || err != nil {
			delete(g.wards, tid)
		}
		if err != nil {
			_ = ptrace.Resume(tid, ptrace.Detach, 0)
		}
	}
	return nil
}

// made returns a thread that one of the wards has made before it stopped.
func (g *guardian) made(tid int) *ward {
	status, err := statusOf(tid)
	if err != nil {
		return nil
	}
	pid := int(status.Number("Tgid"))
	of := g.wards[pid]
	if of == nil {
		of = g.wards[int(status.Number("PPid"))]
	}
	if of == nil {
		return nil
	}
	w := &ward{tid: tid, pid: pid, undo: of.undo, copied: true, seized: true}
	g.wards[tid] = w
	return w
}

// onStop heals a thread at its first stop, and lets it go once no signal of the recorder's or the guardian's is on
// its way to it.
func (g *guardian) onStop(w *ward, ws unix.WaitStatus) (gone bool, err error) {
	switch event := ptrace.Event(ws); event {
	case unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK, unix.PTRACE_EVENT_CLONE:
		return false, ptrace.Resume(w.tid, ptrace.Cont, 0)
	case ptrace.EventStop:
		w.grouped = w.grouped || ptrace.StopSignal(ws) == unix.SIGSTOP
	}
	if sig := signalOf(ws); sig != 0 {
		g.hold(w, sig)
	}
	if !w.healed {
		w.healed = true
		_ = g.healWard(w) // where it fails the thread still is not to stay stopped
	}
	pending := ptrace.Pending(w.tid, false)
	mask, err := ptrace.GetSigmask(w.tid)
	if err != nil {
		return false, err
	}
	const drained = 1<<(unix.SIGSEGV-1) | 1<<(reservedSignal-1)
	if pending&(1<<(unix.SIGSTOP-1)|drained&^mask) != 0 && !w.grouped {
		return false, ptrace.Resume(w.tid, ptrace.Cont, 0)
	}
	for i := range w.held {
		sendAs(w.pid, w.tid, &w.held[i])
	}
	if w.grouped && !w.undo.listens {
		_ = unix.Kill(w.pid, unix.SIGCONT)
	}
	return true, ptrace.Resume(w.tid, ptrace.Detach, 0)
}

// hold keeps a signal at whose delivery the thread is, unless it is the recorder's or the guardian's, or comes from
// an instruction that is executed again.
func (g *guardian) hold(w *ward, sig int) {
	var si ptrace.Siginfo
	if ptrace.GetSiginfo(w.tid, &si) == nil && g.isPrograms(sig, &si) {
		w.held = append(w.held, heldSignal{sig, si})
	}
}

// isPrograms reports whether a signal is the program's, and would not come again by itself: it is neither the recorder's nor the
// guardian's, nor comes from an instruction that is executed again.
func (g *guardian) isPrograms(sig int, si *ptrace.Siginfo) bool {
	if isFault(sig, si) || unix.Signal(sig) == unix.SIGSYS && si.Code() == ptrace.UserDispatch {
		return false
	}
	ours := sig == int(unix.SIGSTOP) || sig == int(reservedSignal)
	return !ours || si.Code() != siTkill || !g.isOurs(int(si.PID()))
}

// holdArrived keeps the signal at whose delivery the thread was when the recorder was killed. It returns its number, 0 for none.
func (g *guardian) holdArrived(w *ward) int {
	sig := int(w.undo.arrived.Load())
	if w.copied || sig == 0 || !g.isPrograms(sig, &w.undo.arrivedInfo) {
		return 0
	}
	w.held = append(w.held, heldSignal{sig, w.undo.arrivedInfo})
	return sig
}

// isOurs reports whether the sender of a signal is the recorder, the guardian or its herald, which have no number in another
// PID namespace.
func (g *guardian) isOurs(pid int) bool {
	return pid == 0 || pid == unix.Getpid() || pid == int(g.journal.recorder.Load()) || pid == int(g.journal.herald.Load())
}

// healWard gives a thread that is at a stop its registers, instructions, CPUs and signals.
func (g *guardian) healWard(w *ward) error {
	mem, mm, err := ptraceSource{}.open(w.pid)
	if err != nil {
		return err
	}
	defer mem.close()
	defer mm.close()
	w.executed = w.undo.isOther(mem)
	arrived := g.holdArrived(w) // a call that it has ended is not made again
	if err := w.ownRegs(mem); err != nil {
		return err
	}
	g.ownCode(w, mem)
	if err := g.inject(w, mem); err != nil {
		return err
	}
	_ = unix.SchedSetaffinity(w.tid, &w.undo.affinity) // it fails only for one that is gone
	if !w.copied {
		for sig := 1; sig <= 64; sig++ {
			if w.undo.held>>(sig-1)&1 != 0 && sig != arrived {
				w.held = append(w.held, heldSignal{signo: sig})
			}
		}
	}
	return nil
}

// ownCode takes the jumps to the agent out of a process, or out of a new child of one, which has the jumps and not what they lead to. The
// agent itself does so only at the next of its calls.
func (g *guardian) ownCode(w *ward, mem memory) {
	of := int(w.undo.pid)
	if g.own[w.pid] || w.executed {
		return
	}
	g.own[w.pid] = true
	if w.undo.agent == 0 {
		if g.journal.halts.Load() != 0 {
			ownInsns(w.pid, mem)
		}
		return
	}
	list, known := g.jumps[of]
	if !known {
		list = jumpsOf(of, w.undo.agent)
		g.jumps[of] = list
	}
	for _, j := range list {
		var now [1]byte
		if n, err := mem.readAt(now[:], j.Addr); err == nil && n == 1 && isJump(now[0]) {
			_, _ = mem.writeAt(j.Own[:jumpSize], j.Addr) // it fails only where the process has gone
		}
	}
}

// ownInsns takes HLT out of the code of a process without an agent, which no list tells of: in the pages of files that are its own it
// gets back what the file has, and in the vdso what that of this process has, which is the same kernel's.
func ownInsns(pid int, mem memory) {
	objs := &objectTable{}
	list, err := readMaps(pid, objs)
	if err != nil {
		return
	}
	other, mm, err := ptraceSource{}.open(pid)
	if err != nil {
		return
	}
	defer other.close()
	defer mm.close()
	for _, m := range list {
		if m.Prot&checkpoint.ProtExec == 0 || !m.private() {
			continue
		}
		r, done, err := codeBehind(pid, &m, objs)
		if err != nil {
			continue
		}
		_ = mm.visit(m.Start, m.End, func(page, entry uint64) {
			if entry&(pmPresent|pmSwap) != 0 && entry&pmFile == 0 {
				ownInsnsAt(page*checkpoint.PageSize, mem, r, int64(m.Offset+page*checkpoint.PageSize-m.Start))
			}
		})
		done()
	}
}

// codeBehind opens what a mapping of code shows of a file of objs, or of the vdso, from the start of that. It fails where there is nothing to
// compare with.
func codeBehind(pid int, m *mapping, objs *objectTable) (r io.ReaderAt, done func(), err error) {
	switch {
	case m.Name == vdsoName:
		image, err := guardVDSO()
		return bytes.NewReader(image), func() {}, err
	case m.Object == 0:
		return nil, nil, os.ErrNotExist
	}
	return openBehind(pid, m, objs.at(m.Object))
}

// ownInsnsAt is ownInsns for the page at addr. The code has its content at off.
func ownInsnsAt(addr uint64, mem memory, code io.ReaderAt, off int64) {
	var now, own [checkpoint.PageSize]byte
	if n, err := mem.readAt(now[:], addr); err != nil || n != len(now) {
		return
	}
	n, _ := code.ReadAt(own[:], off) // a file ends in its last page
	for i, b := range own[:n] {
		if now[i] == hlt && b != hlt {
			_, _ = mem.writeAt(own[i:i+1], addr+uint64(i)) // it fails only where the process has gone
		}
	}
}

// isJump reports whether code begins with a JMP that leads to the agent, or with HLT in the place of RDTSC.
func isJump(opcode byte) bool { return opcode == 0xe9 || opcode == 0xeb || opcode == hlt }

// jumpsOf reads the jumps of a process, which may have gone.
func jumpsOf(pid int, at uint64) []agent.Jump {
	mem, mm, err := ptraceSource{}.open(pid)
	if err != nil {
		return nil
	}
	defer mem.close()
	defer mm.close()
	return agent.JumpsOf(at, func(addr uint64, b []byte) bool {
		n, err := mem.readAt(b, addr)
		return err == nil && n == len(b)
	})
}

// ownRegs gives the thread the registers of its program: where it would be after what it was in.
func (w *ward) ownRegs(mem memory) error {
	var r ptrace.Regs
	if err := ptrace.GetRegs(w.tid, &r); err != nil {
		return err
	}
	u := w.undo
	base := r.Gs_base // the agent's, which the program's call does not have
	how, patched := u.borrowed.Load(), u.patched.Load() != 0
	if how == maskBorrowed {
		if err := w.ownMask(); err != nil {
			return err
		}
	}
	if w.copied {
		how, patched = 0, false
	}
	switch {
	case w.executed, how != 0 && u.hasMade(&r): // they are its own
	case how != 0:
		r = u.regs
	case patched && u.answered && r.Rip == u.entry.Rip && int64(r.Orig_rax) < 0:
		r = u.entry
		r.Rax, r.Orig_rax, r.Gs_base = uint64(u.answer), ^uint64(0), base
	case patched && !u.answered && r.Rip == u.entry.Rip && r.Orig_rax == u.entry.Orig_rax:
		ret := r.Rax
		if !isRestart(int64(ret)) {
			u.copyResults(mem, &r)
		}
		r = u.entry
		r.Gs_base = base
		if r.Rax = ret; int64(ret) == restartBlock { // it would go on with what the kernel was given
			noHand := restartNoHand
			r.Rax = uint64(noHand)
		}
	case patched && !u.answered && r.Rip == u.entry.Rip-syscallInsnLen && r.Rsp == u.entry.Rsp: // about to make it again
		r = u.entry
		r.Gs_base = base
		beforeCall(&r, u.entry.Orig_rax)
	case w.isUnmade(&r):
		beforeCall(&r, r.Orig_rax)
	}
	leaveCall(&r, w.signaled)
	return ptrace.SetRegs(w.tid, &r)
}

// isOther reports whether a process with memory mem has executed another program since the entry was written: that has not the
// recorder's place for injected calls, or has it elsewhere.
func (u *undo) isOther(mem memory) bool {
	if u.site == 0 {
		return false
	}
	var code [syscallInsnLen]byte
	n, err := mem.readAt(code[:], u.site)
	return err != nil || n != len(code) || !bytes.Equal(code[:], callSite[:syscallInsnLen])
}

// hasMade reports whether a thread, whose registers are r, has made the call of its own before which it was lent: the recorder
// gives it back at the entry of that (letTSCInCall).
func (u *undo) hasMade(r *ptrace.Regs) bool {
	return int64(r.Orig_rax) >= 0 && r.Orig_rax == u.regs.Rax && r.Rip == u.regs.Rip+syscallInsnLen
}

// ownMask gives a thread that was lent its mask, and likewise a child of such a one, which has inherited that all are blocked.
func (w *ward) ownMask() error {
	const unblocked = 1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1)
	if w.copied {
		if mask, err := ptrace.GetSigmask(w.tid); err != nil || mask|unblocked != ^uint64(0) {
			return err
		}
	}
	return ptrace.SetSigmask(w.tid, w.undo.mask)
}

// isUnmade reports whether a thread is behind a call that was not let through, because it was to be the agent's. The signal that
// says so was the recorder's to give, and is gone with it.
func (w *ward) isUnmade(r *ptrace.Regs) bool {
	return int64(r.Orig_rax) >= 0 && r.Rax == r.Orig_rax && r.Rip-(r.Gs_base-agent.Block) >= agent.Size && w.isUnderAgent(r)
}

// isUnderAgent reports whether only the agent's own calls of a thread, with registers r, are let through.
func (w *ward) isUnderAgent(r *ptrace.Regs) bool {
	dispatch, err := ptrace.GetDispatch(w.tid) // it fails before Linux 6.4, where there is no agent
	return err == nil && dispatch.On() && dispatch.In(r.Gs_base-agent.Block, agent.Block)
}

// signaled reports whether a signal waits for the thread that may end a call.
func (w *ward) signaled() bool {
	const ours = 1<<(unix.SIGSTOP-1) | 1<<(reservedSignal-1)
	mask, err := ptrace.GetSigmask(w.tid)
	pending := ptrace.Pending(w.tid, false) | ptrace.Pending(w.tid, true)
	return err == nil && (len(w.held) > 0 || pending&^mask&^ours != 0)
}

// copyResults copies what a call has written to scratch memory to where the program wants it.
func (u *undo) copyResults(mem memory, r *ptrace.Regs) {
	args := [6]uint64{u.entry.Rdi, u.entry.Rsi, u.entry.Rdx, u.entry.R10, u.entry.R8, u.entry.R9}
	as := &plainMem{mem}
	to, err := abi.Redirect(as, int64(u.entry.Orig_rax), args, u.scratch)
	now := [6]uint64{r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8, r.R9}
	if u.scratch.Len == 0 || err != nil || now != to.Args && now != args { // those may be the program's again
		return
	}
	for _, w := range to.Results(as, int64(r.Rax)) {
		_, _ = mem.writeAt(w.Data, w.Addr) // what cannot be written has been unmapped meanwhile
	}
}

// plainMem is a process's memory for package abi.
type plainMem struct{ memory }

// ReadAt implements abi.Memory.
func (m *plainMem) ReadAt(addr uint64, b []byte) int {
	n, _ := m.readAt(b, addr)
	return n
}

// inject has the thread make the calls that undo the recorder's.
func (g *guardian) inject(w *ward, mem memory) error {
	at, err := g.placeOf(w.pid, mem)
	if err != nil || at.site == 0 {
		return err
	}
	if err := w.letThrough(mem); err != nil {
		return err
	}
	in, err := borrow(w.pid, w.tid, at.site, nil)
	if err != nil {
		return err
	}
	u, j := w.undo, g.journal
	trap := trapState{tsc: j.tsc.Load() != 0, cpuid: j.cpuid.Load() != 0, ownTSC: u.ownTSC, ownCPUID: u.ownCPUID}
	sigsys := false
	if !g.actions[w.pid] { // another of its threads may run by now, and set what it wants
		trap.handler, sigsys, g.actions[w.pid] = u.segv, u.healer && w.pid == int(u.pid), true
	}
	if w.executed { // nothing of that is left
		trap.handler, sigsys = 0, false
	}
	if err = trap.disarm(in); err == nil && !w.executed {
		err = registerRseq(in, &u.rseq)
	}
	if err == nil && sigsys {
		_, err = in.do(unix.SYS_RT_SIGACTION, uint64(unix.SIGSYS), agent.OwnAction(u.agent), 0, 8)
	}
	if err == nil && u.scratch.Len != 0 && !w.copied && !w.executed {
		_, err = in.do(unix.SYS_MUNMAP, u.scratch.Addr, u.scratch.Len)
	}
	for _, child := range w.killed {
		if err == nil {
			_, err = in.do(unix.SYS_WAIT4, uint64(child), 0, unix.WALL, 0)
		}
	}
	return errors.Join(err, in.end())
}

// letThrough has all calls of a thread that was under the agent let through, and the agent leave it at the next of them that comes
// there.
func (w *ward) letThrough(mem memory) error {
	var r ptrace.Regs
	if err := ptrace.GetRegs(w.tid, &r); err != nil || !w.isUnderAgent(&r) {
		return err
	}
	at, off := agent.Unsupervised(r.Gs_base)
	if _, err := mem.writeAt(off, at); err != nil {
		return err
	}
	return ptrace.SetDispatch(w.tid, false, 0, 0)
}

// placeOf returns where a process makes injected calls. Its vdso gets the code back that an attach has replaced.
func (g *guardian) placeOf(pid int, mem memory) (place, error) {
	if at, ok := g.places[pid]; ok {
		return at, nil
	}
	at, err := findPlace(pid, mem)
	if err != nil {
		return at, err
	}
	g.places[pid] = at
	return at, ownVDSO(mem, at)
}

// findPlace looks for the vdso of a process.
func findPlace(pid int, mem memory) (at place, err error) {
	list, err := readMaps(pid, &objectTable{})
	if err != nil {
		return at, err
	}
	for _, m := range list {
		if m.Name == vdsoName {
			at.vdso, at.end = m.Start, m.End
			at.site, err = findSyscall(mem, m.Start, m.End)
		}
	}
	return at, err
}

// guardVDSO reads the guardian's own vdso, which is the one that all processes have; nothing where there is none.
func guardVDSO() ([]byte, error) {
	self := unix.Getpid()
	own, mm, err := ptraceSource{}.open(self)
	if err != nil {
		return nil, err
	}
	defer own.close()
	defer mm.close()
	from, err := findPlace(self, own)
	if err != nil {
		return nil, err
	}
	image := make([]byte, from.end-from.vdso)
	if n, err := own.readAt(image, from.vdso); err != nil || n != len(image) {
		return nil, err
	}
	return image, nil
}

// ownVDSO gives a vdso its own code back, which is what the guardian's own vdso has.
func ownVDSO(mem memory, at place) error {
	image, err := guardVDSO()
	if err != nil || len(image) == 0 || uint64(len(image)) != at.end-at.vdso {
		return err
	}
	patches, err := planVDSO(image, at.vdso)
	if err != nil {
		return err
	}
	now := make([]byte, len(patches[0].now))
	if n, err := mem.readAt(now, patches[0].addr); err != nil || n != len(now) || !bytes.Equal(now, patches[0].now) {
		return err // nobody has attached to it
	}
	return unpatchVDSO(mem, patches)
}
