package gdbstub

import (
	"fmt"

	"vplay/replay/debug/api"
)

// A step of one thread while the client takes the others for stopped: vCont with one action.
// gdb sends it with scheduler-locking on, and also with it off, to get a thread over a
// breakpoint. In a replay the others run all the same when it is not the thread's turn, and
// may come to a breakpoint first. A stop of theirs ends gdb 13 with an internal error
// (finish_step_over, skip_inline_frames). With locking on the step is to go on; with it off
// the stop must not be lost. The packet is the same.
//
// So gdb is asked: the reply says that the thread got a signal and did not move, as when one
// arrives in the middle of a live step. The signal is SIGWAITING, which Linux has not and
// which gdb neither stops for nor shows. With locking on gdb then resumes the thread alone
// once more, and what the others come to is passed over. With it off gdb puts the breakpoint
// back and resumes all: now it gets the stop that was withheld, and nothing moves.
//
// gdb is asked, too, where the step would end the thread: at the SYSCALL of exit(2). The reply to
// that is N, for no thread that gdb has resumed is left. With locking on that is true. With it off
// gdb 13 says so and stops, though the other threads could go on, and what is
// worse, it believes for ever after that it steps over a breakpoint, and resumes nothing any more: it hangs at the
// next "continue", with gdbserver as well. Asked, it resumes all from before the SYSCALL.

// sigWaiting is GDB_SIGNAL_WAITING (gdb's include/gdb/signals.def).
const sigWaiting = 36

// withheld is a stop of one thread that came when another one was stepped alone.
type withheld struct {
	stop api.Stop
	ends int // the thread that the step would end, 0 for none
	pid  int
	tid  int // the thread that was stepped
}

// resumeAlone decides about a request forward when a stop may have been withheld at the one
// before. isDone means that out is the reply; else asks says that stops of other threads are
// to be withheld.
func (s *session) resumeAlone(pid int, r *api.Resume) (out reply, asks, isDone bool) {
	w := s.withheld
	s.withheld = withheld{}
	isStep := r.Alone && r.Kind != api.Continue && r.Dir == api.Forward
	switch {
	case s.lldb || s.srv.opt.RR: // takes stops of any thread
		r.Alone = r.Alone && !isStep
		return out, false, false
	case isStep && s.noResumed && w.stop.Kind == api.StopNone && w.ends != r.TID && !s.div.on && s.atExit(r.TID):
		s.withheld = withheld{ends: r.TID}
		return s.waits(r.TID), false, true
	case w.stop.Kind == api.StopNone || w.pid != pid || r.Dir != api.Forward || s.div.on:
		r.Alone = r.Alone && !isStep
		return out, isStep, false
	case !r.Alone:
		s.stopped(w.stop)
		return s.stopReply(w.stop), false, true
	case isStep && r.TID != w.tid && r.TID != w.stop.TID:
		s.withheld = w
		return s.waits(r.TID), false, true
	}
	return out, false, false
}

// stoppedAlone is the reply to a step of a thread alone that began at pc. When another thread
// has come to something first, its stop is withheld.
func (s *session) stoppedAlone(tid int, pc uint64, stop api.Stop) reply {
	switch {
	case stop.TID == tid && stop.Kind != api.StopReplayEnd || !s.exists(tid):
		return s.stopReply(stop)
	case stop.Kind == api.StopReplayEnd: // gdb 13 believes for ever after it that the step is under way
		stop.TID = tid
		s.withheld = withheld{stop: stop, pid: s.inferior.pid, tid: tid}
		return s.waits(tid)
	case stop.Kind == api.StopInterrupted:
		stop.TID = tid
		s.stopped(stop)
		return s.stopReply(stop)
	case !isOfThread(stop.Kind): // The process has ended, or is another program.
		return s.stopReply(stop)
	}
	s.withheld = withheld{stop: stop, pid: s.inferior.pid, tid: tid}
	if regs, err := s.registers(tid); err != nil || regs.RIP == pc {
		return s.waits(tid)
	}
	// The thread has executed its instruction, a system call that has not returned yet.
	stop = api.Stop{Kind: api.StopStep, TID: tid}
	s.stopped(stop)
	return s.stopReply(stop)
}

// sysExit is exit(2), which ends a thread (linux arch/x86/entry/syscalls/syscall_64.tbl).
const sysExit = 60

// atExit reports whether the next instruction of a thread is the SYSCALL that ends it.
func (s *session) atExit(tid int) bool {
	regs, err := s.registers(tid)
	if err != nil || regs.GPR[0] != sysExit {
		return false
	}
	var code [2]byte
	n, _ := s.target.ReadMemory(regs.RIP, code[:]) // what cannot be read is no SYSCALL
	return n == len(code) && code == [2]byte{0x0f, 0x05}
}

// waits is the reply that asks: the thread has not moved.
func (s *session) waits(tid int) reply {
	stop := api.Stop{Kind: api.StopStep, TID: tid}
	s.stopped(stop)
	out := s.stopReply(stop)
	copy(out.data, fmt.Sprintf("T%02x", sigWaiting))
	return out
}

// isOfThread reports whether a stop is for what a thread has come to.
func isOfThread(k api.StopKind) bool {
	switch k {
	case api.StopBreakpoint, api.StopHWBreakpoint, api.StopWatchWrite, api.StopWatchRead, api.StopWatchAccess,
		api.StopSignal, api.StopSyscallEntry, api.StopSyscallReturn:
		return true
	default:
		return false
	}
}

// noneResumed is the reply when the thread that was resumed alone has ended: for the client
// no thread runs any more.
func (s *session) noneResumed(tid int, stop api.Stop) reply {
	switch {
	case stop.Kind == api.StopNoThread:
	case isOfThread(stop.Kind):
		s.withheld = withheld{stop: stop, pid: s.inferior.pid, tid: tid}
	default:
		return s.stopReply(stop)
	}
	return text("N")
}
