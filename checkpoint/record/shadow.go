//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint/abi/ptrace"
)

// shadow is a copy-on-write clone of a process that stays stopped and holds
// the memory as it was when the clone was made. It is a child of the recorder or of init, not of
// a recorded process, raises no SIGCHLD, and dies with the recorder.
type shadow struct {
	memReader  // of its own memory
	pid        int
	site, vdso uint64 // of a SYSCALL instruction, and the start of what it is in
	window     *window
	noWindow   bool    // it could not be had
	windows    *uint64 // counts them
	scans      *uint64 // counts those that scan
	closed     bool    // it was killed
	reaped     bool    // its process is no more, and its number may be another's
}

// close kills the shadow; it is reaped when the next one is made, or by the loop.
func (s *shadow) close() {
	s.closed = true
	s.window.close()
	s.mem.close()
	if !s.reaped {
		_ = unix.Kill(s.pid, unix.SIGKILL) // not reaped yet, so it is there
	}
}

// reapClosed reaps the shadows that have been closed and are dead by now.
func (s *session) reapClosed() {
	for pid, sh := range s.shadows {
		if !sh.closed {
			continue
		}
		if ws, ok := ptrace.Poll(pid); ok {
			s.notOurs(pid, ws)
		}
	}
}

// awaitClosed waits for the end of the shadows that were killed. Until then they execute the
// program's file, and whoever writes to it once the program has ended finds it busy (ETXTBSY).
func (s *session) awaitClosed() {
	for pid, sh := range s.shadows {
		if sh.closed {
			sh.reap()
			delete(s.shadows, pid)
		}
	}
}

// reap kills the shadow, if nothing has, and waits for its end.
func (s *shadow) reap() {
	if !s.reaped {
		_ = unix.Kill(s.pid, unix.SIGKILL) // not reaped yet, so it is there
	}
	for !s.reaped {
		ws, err := ptrace.Wait(s.pid, 0)
		s.reaped = err != nil || !ws.Stopped()
	}
}

// newSource returns what will hold the program's memory as it is now: a
// shadow, or copies of its private pages when clones are refused.
func (sp *space) newSource(t *thread, private ranges) (pageReader, error) {
	defer sp.group.spend(&sp.session.border.clone, sp.group.cpuSpent())
	if !sp.noShadow && t.hasOwnFilter() {
		sp.noShadow = true
		sp.session.noteOnce("the program has a seccomp filter, which may kill it for being cloned: pages are copied instead")
	}
	if !sp.noShadow && !t.copiesAreSeen() {
		s, err := sp.newShadow(t)
		if err != nil || s != nil {
			return s, err
		}
		sp.noShadow = true
		sp.session.noteOnce("the program cannot be cloned: pages are copied instead")
	}
	return copyPages(sp.reader(), private)
}

// hasOwnFilter reports whether the thread has a seccomp filter that the recorder does not have itself, as in a container: one of
// the program's own may kill it for a call that it never makes.
func (t *thread) hasOwnFilter() bool {
	status, err := statusOf(t.tid)
	if err != nil || status.Number("Seccomp") == 0 {
		return false
	}
	own, err := statusOf(os.Getpid())
	return err != nil || status.Number("Seccomp") != own.Number("Seccomp") || status.Number("Seccomp_filters") > own.Number("Seccomp_filters")
}

// copiesAreSeen reports whether the program could see a copy of the thread's process: where that takes a number in a
// PID namespace of the program's, or has a recorded process for a parent once who made it has ended.
func (t *thread) copiesAreSeen() bool { return t.childrenElsewhere() || t.hasReaper() }

// childrenElsewhere reports whether the thread's children begin in another PID namespace than the recorder's: it was made there,
// or has called unshare(2) or setns(2). A shadow takes a number there, and if it is the first it is the namespace's init, with
// whose end all end. Whose maker has ended there is a child of that init, which waits for it.
func (t *thread) childrenElsewhere() bool {
	folder := fmt.Sprintf("/proc/%d/task/%d/ns/", t.proc.pid, t.tid)
	own, err := os.Readlink(folder + "pid")
	if err != nil {
		return false
	}
	if recorders, err := os.Readlink("/proc/thread-self/ns/pid"); err == nil && own != recorders {
		return true
	}
	children, err := os.Readlink(folder + "pid_for_children")
	if err != nil { // it has no init yet (man 7 namespaces), or the kernel is older than 4.12
		_, err = os.Lstat(folder + "pid_for_children")
		return err == nil
	}
	return children != own
}

// hasReaper reports whether a recorded process takes the place of init for orphans of the thread's process: the process itself
// or one above it (PR_SET_CHILD_SUBREAPER, man 2 prctl). The shadows of the first are no orphans (cloneMemory).
func (t *thread) hasReaper() bool {
	s := t.session
	if !s.reapers || t.proc == s.first && s.attach == nil {
		return false
	}
	for pid := t.proc.pid; pid > 1; {
		if s.isReaper(pid) {
			return true
		}
		status, err := statusOf(pid)
		if err != nil {
			return false
		}
		pid = int(status.Number("PPid"))
	}
	return false
}

func (s *session) isReaper(pid int) bool {
	for _, t := range s.threads {
		if t.proc.pid == pid {
			return t.proc.reaper
		}
	}
	return false
}

// setReaper notes whether orphans come to the process.
func (p *process) setReaper(is bool) {
	p.reaper = is
	p.session.reapers = p.session.reapers || is
}

// newShadow clones the program, which is at a stop where calls can be
// injected. It returns nil when the clone is refused.
func (sp *space) newShadow(t *thread) (pageReader, error) {
	sp.session.reapClosed()
	if sp.session.opt.refuseShadows {
		return nil, nil
	}
	pid, ret, err := sp.cloneMemory(t)
	if err != nil {
		if pid != 0 {
			drop(pid)
		}
		return nil, err
	}
	if pid == 0 {
		sp.session.log.Debug().Int64("result", ret).Msg("clone refused")
		return nil, nil
	}
	s := &shadow{pid: pid, site: sp.site, vdso: sp.vdso, windows: &sp.session.result.Stats.Windows, scans: &sp.session.result.Stats.Scans}
	if err := sp.settle(s); err != nil {
		drop(s.pid)
		sp.session.log.Warn().Err(err).Msg("a shadow was lost; pages are copied instead")
		return nil, nil
	}
	sp.session.shadows[s.pid] = s
	sp.session.result.Stats.Shadows++
	return s, nil
}

// cloneMemory has the thread make a process with a copy of its memory, which is not to be a
// child of any recorded process: they would see it in wait(2). It returns 0 and the kernel's
// result when the kernel refuses.
func (sp *space) cloneMemory(t *thread) (pid int, ret int64, err error) {
	in, err := sp.session.source.inject(t.proc.pid, t.tid, sp.site)
	if err != nil {
		return 0, 0, err
	}
	if t.proc == sp.session.first && sp.session.attach == nil {
		// A child of its parent, which is the recorder.
		if ret, err = cloneAgain(in, cloneParent); err == nil {
			err = in.end()
		}
		return in.made(), ret, err
	}
	// A helper, which shares the memory and is gone at once, makes it: so its parent is init.
	if ret, err = cloneAgain(in, cloneVM); err != nil || in.made() == 0 {
		return 0, ret, errors.Join(err, in.end())
	}
	helper := in.made()
	pid, ret, err = sp.cloneBy(helper)
	drop(helper)
	if _, werr := in.do(unix.SYS_WAIT4, uint64(helper), 0, unix.WALL, 0); err == nil {
		err = werr
	}
	return pid, ret, errors.Join(err, in.end())
}

// cloneBy has a new helper, which is on its way to its first stop, clone itself.
func (sp *space) cloneBy(helper int) (pid int, ret int64, err error) {
	ws, err := sp.session.waitChild(helper)
	if err != nil || !ws.Stopped() {
		return 0, 0, err
	}
	in, err := borrow(helper, helper, sp.site, nil)
	if err != nil {
		return 0, 0, err
	}
	// What it makes has that from the start: without its tracer it would run on as a second program.
	if err := ptrace.SetOptions(helper, sp.session.options()|ptrace.OptExitKill); err != nil {
		return 0, 0, err
	}
	ret, err = cloneAgain(in, 0)
	return in.made(), ret, err
}

// cloneAgain makes a clone(2), and makes it again where something that is no signal to the
// program wanted its attention.
func cloneAgain(in caller, flags uint64) (ret int64, err error) {
	ret, err = in.do(unix.SYS_CLONE, flags)
	for n := 0; err == nil && ret == restartNoIntr && n < cloneTries; n++ {
		ret, err = in.do(unix.SYS_CLONE, flags)
	}
	return ret, err
}

// cloneTries bounds how often a clone that the kernel wants made again is.
const cloneTries = 8

// sweep kills the clones that no shadow accounts for. They are children of the
// tracer's thread, whose end would let them run on as second programs, and
// traced by it: other children were the thread's before it became a tracer's.
func (s *session) sweep() {
	for _, pid := range childrenOf("/proc/thread-self") {
		if _, recorded := s.threads[pid]; recorded || tracerOf(pid) != unix.Gettid() {
			continue
		}
		at, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid)) // for the log alone
		s.log.Warn().Int("pid", pid).Bytes("syscall", at).Msg("a clone was left over")
		drop(pid)
	}
}

// childrenOf returns the children of a thread, whose folder in /proc is given; none where the
// kernel has no CONFIG_PROC_CHILDREN.
func childrenOf(folder string) []int {
	list, err := os.ReadFile(folder + "/children")
	if err != nil {
		return nil
	}
	var pids []int
	for _, f := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(f); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tracerOf returns the thread that traces a process, 0 when there is none.
func tracerOf(pid int) int {
	status, err := statusOf(pid)
	if err != nil {
		return 0
	}
	return int(status.Number("TracerPid"))
}

// drop ends a clone that is of no use.
func drop(pid int) {
	if unix.Kill(pid, unix.SIGKILL) != nil {
		return // not there any more
	}
	for {
		if ws, err := ptrace.Wait(pid, 0); err != nil || !ws.Stopped() {
			return
		}
		_ = ptrace.Resume(pid, ptrace.Cont, 0) // from PTRACE_EVENT_EXIT
	}
}

// settle makes a new clone harmless: it holds no descriptor of the program's,
// no terminal, and is the first to go when memory gets low.
func (sp *space) settle(s *shadow) error {
	ws, err := ptrace.Wait(s.pid, 0)
	if err != nil {
		return err
	}
	if !ws.Stopped() {
		return &goneError{ws}
	}
	if err := sp.becomeBare(s.pid); err != nil {
		return err
	}
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.pid), []byte("1000"), 0); err != nil {
		sp.session.log.Debug().Err(err).Msg("oom_score_adj of a shadow")
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/mem", s.pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	s.mem = procMem(fd)
	return err
}

// becomeBare has a new clone, which is at its first stop, hold no descriptor of the program's, and
// no terminal.
func (sp *space) becomeBare(pid int) error {
	if err := ptrace.SetOptions(pid, ptrace.OptSysGood|ptrace.OptExitKill); err != nil {
		return err
	}
	in, err := borrow(pid, pid, sp.site, nil)
	if err != nil {
		return err
	}
	if _, err := in.do(unix.SYS_SETSID); err != nil {
		return err
	}
	_, err = in.do(unix.SYS_CLOSE_RANGE, 0, 0xffffffff, 0)
	return err
}
