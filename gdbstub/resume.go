package gdbstub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vplay/replay/debug/api"
)

// Resume packets answer with a stop reply when the target has stopped. What
// the protocol calls "the other threads" runs as it was recorded: a replay has
// one schedule, so scheduler-locking cannot hold a thread back (alone.go says what is done
// about it). Other processes are moved, too, when the packet is about all.

// errNoProcess is the text for packets that need a process when none is held.
const errNoProcess = "no process: attach or run first"

// vCont answers vCont;ACTION[:THREAD];… For each thread the leftmost action
// that names it counts; the one that steps decides.
func (s *session) vCont(arg string) reply {
	r := api.Resume{Kind: api.Continue}
	pid, found, all := 0, false, false
	for a := range strings.SplitSeq(arg, ";") {
		action, thread, hasThread := strings.Cut(a, ":")
		var t threadRef
		if hasThread {
			var ok bool
			if t, ok = s.parseThread(thread); !ok {
				return replyError
			}
		}
		one, ok := s.parseAction(action)
		if !ok {
			return replyError
		}
		one.TID = t.tid
		all = all || t.pid == 0
		if !found || r.Kind == api.Continue && one.Kind != api.Continue && t.tid != 0 {
			r, pid, found = one, t.pid, true
		}
	}
	r.All = all
	r.Alone = r.TID != 0 && !strings.Contains(arg, ";")
	return s.resume(pid, r)
}

// parseAction parses one action of vCont.
func (s *session) parseAction(a string) (r api.Resume, ok bool) {
	if a == "" {
		return r, false
	}
	switch a[0] {
	case 'c', 's':
		ok = len(a) == 1
	case 'C', 'S':
		var n int
		n, ok = parseHexInt(a[1:])
		r.Signal = s.linuxSignal(n)
	case 'r':
		from, to, _ := strings.Cut(a[1:], ",")
		var ok2 bool
		r.Start, ok = parseHex(from)
		r.End, ok2 = parseHex(to)
		r.Kind = api.RangeStep
		return r, ok && ok2
	}
	if a[0] == 's' || a[0] == 'S' {
		r.Kind = api.Step
	}
	return r, ok
}

// resumeC answers c [ADDR] and resumeS s [ADDR]. An address to resume at would
// change the replay and is refused.
func (s *session) resumeC(addr string) reply { return s.resumeAt(api.Resume{Kind: api.Continue}, addr) }

func (s *session) resumeS(addr string) reply { return s.resumeAt(api.Resume{Kind: api.Step}, addr) }

// signalC answers C SIG[;ADDR] and signalS S SIG[;ADDR].
func (s *session) signalC(arg string) reply { return s.resumeSignal(api.Continue, arg) }

func (s *session) signalS(arg string) reply { return s.resumeSignal(api.Step, arg) }

func (s *session) resumeSignal(kind api.ResumeKind, arg string) reply {
	sig, addr, _ := strings.Cut(arg, ";")
	n, ok := parseHexInt(sig)
	if !ok {
		return replyError
	}
	return s.resumeAt(api.Resume{Kind: kind, Signal: s.linuxSignal(n)}, addr)
}

func (s *session) resumeAt(r api.Resume, addr string) reply {
	if addr != "" && !s.isPC(addr) {
		return s.refuse(refusal)
	}
	r.TID = s.resumed.tid
	return s.resume(s.resumed.pid, r)
}

// isPC reports whether a hex address is where the thread is anyway.
func (s *session) isPC(addr string) bool {
	v, ok := parseHex(addr)
	regs, err := s.registers(s.generalThread())
	return ok && err == nil && regs.RIP == v
}

// back answers bs and bc.
func (s *session) back(arg string) reply {
	switch arg {
	case "s":
		r := api.Resume{Dir: api.Backward, Kind: api.Step, TID: s.resumed.tid, Alone: s.resumed.tid != 0 && !s.srv.opt.RR}
		t := s.selected.thread()
		is := s.resumed.pid == 0 || s.resumed.pid == t.pid
		if r.TID == 0 && is && s.holds(t.pid) && s.useThread(t) {
			r.TID = t.tid
		}
		return s.resume(s.resumed.pid, r)
	case "c":
		return s.resume(s.resumed.pid, api.Resume{Dir: api.Backward, Kind: api.Continue, TID: s.resumed.tid, Alone: s.resumed.tid != 0 && !s.srv.opt.RR})
	}
	return reply{}
}

// resume moves a process, or all of them, the selected one along its log, when pid is 0. It
// reports the stop. An error's text goes to the user as console output before the stop.
func (s *session) resume(pid int, r api.Resume) reply {
	if pid == 0 {
		r.All = true
		if pid = s.selected.thread().pid; !s.holds(pid) {
			pid = s.inferior.pid
		}
	}
	if !s.holds(pid) {
		return s.fail(errNoProcess)
	}
	if !s.useThread(threadRef{pid, r.TID}) {
		return s.fail("no such thread")
	}
	if out, ok := s.rrRestarted(&r); ok {
		return out
	}
	if h := s.held; h.stop.Kind != api.StopNone {
		s.held = held{}
		if h.by == senseOf(&r) {
			return s.stopReply(h.stop)
		}
	}
	isAlone := r.Alone && r.Dir == api.Forward && s.noResumed && !s.srv.opt.RR
	out, asks, isDone := s.resumeAlone(pid, &r)
	if isDone {
		return out
	}
	r.PassSignals, r.CatchAll, r.CatchSyscalls, r.ExecEvents = s.pass, s.catchAll, s.catch, s.execEvents
	if !s.leave(r) {
		return s.resumeDiverted(r)
	}
	s.leaveOthers()
	var pc uint64
	if regs, err := s.registers(r.TID); asks && err == nil {
		pc = regs.RIP
	}
	s.forget()
	var stop api.Stop
	var err error
	if !s.await("resume", func(ctx context.Context) { stop, err = s.target.Resume(ctx, r) }) {
		s.console("vplay: internal error, see the log of the server\n")
		stop = s.target.Stop()
	}
	if s.closed != nil {
		return reply{silent: true}
	}
	if err != nil {
		s.console("vplay: " + err.Error() + "\n")
		if stop.Kind == api.StopNone {
			stop = s.target.Stop()
		}
	}
	stop = s.kept(stop)
	s.tellOthers()
	if stop.Note != "" {
		s.console(strings.TrimSuffix(stop.Note, "\n") + "\n")
	}
	s.stopped(stop)
	if stop.Kind == api.StopExec {
		return s.execReply(stop, r)
	}
	if stop.Moved && s.libraries != nil && !s.lldb && !slices.Equal(s.libraries, s.target.Libraries()) {
		s.held = held{senseOf(&r), stop}
		return s.librariesReply(stop)
	}
	if isAlone && !s.exists(r.TID) {
		return s.noneResumed(r.TID, stop)
	}
	if asks {
		return s.stoppedAlone(r.TID, pc, stop)
	}
	return s.stopReply(stop)
}

// stopped notes where a movement of the process that the target is about has ended. The
// stop's thread is selected from now on.
func (s *session) stopped(stop api.Stop) {
	s.stoppedAt(stop)
	s.selected = selection{threadRef: threadRef{s.stopPID, stop.TID}}
}

// stoppedAt notes a stop of the process that the target is about. Its thread is the
// client's general one from now on.
func (s *session) stoppedAt(stop api.Stop) {
	s.stop, s.stopPID, s.general = stop, s.inferior.pid, threadRef{}
}

// kept makes a recorded exit the end of history for a client that would end its
// session at a W reply, and with it the way back. In the extended protocol the
// connection stays, and the client can take the process again.
func (s *session) kept(stop api.Stop) api.Stop {
	if s.extended {
		return stop
	}
	switch stop.Kind {
	case api.StopExited:
		return api.Stop{Kind: api.StopReplayEnd, TID: stop.TID, Note: fmt.Sprintf("vplay: the program has exited with code %d; the way back is open", stop.Code)}
	case api.StopKilled:
		return api.Stop{Kind: api.StopReplayEnd, TID: stop.TID, Note: fmt.Sprintf("vplay: the program was killed by signal %d; the way back is open", stop.Signo)}
	default:
		return stop
	}
}

// execReply tells the client that the program is another one now. The client takes its
// breakpoints for gone, puts them where they belong in the new program, and goes on;
// after a move there is nowhere to go on to.
func (s *session) execReply(stop api.Stop, r api.Resume) reply {
	s.clearBreaks()
	s.libraries = nil
	if stop.Moved {
		// gdb forgets with the old program that it was stepping, and continues. Signal 0
		// is a stop for no reason.
		s.held = held{sense{dir: r.Dir}, api.Stop{Kind: api.StopSignal, TID: stop.TID}}
	}
	return s.stopReply(stop)
}

// held is a stop that has not been reported to the client. When the list of libraries is
// another after a move, it is told of that first, as if the dynamic loader had run.
// It reads the list, puts its breakpoints where they belong now, and goes on as it
// did: then it gets the stop, and nothing moves.
type held struct {
	by   sense
	stop api.Stop
}

// sense is what a client that goes on after a change of the libraries repeats.
type sense struct {
	dir    api.Direction
	isStep bool
}

func senseOf(r *api.Resume) sense { return sense{r.Dir, r.Kind != api.Continue} }

// kill answers k. lldb and Delve wait for a reply, gdb reads none.
func (s *session) kill(string) reply {
	s.letGo()
	if s.lldb || s.srv.opt.RR {
		return text("X09")
	}
	return reply{silent: true}
}

// vKill ends the hold on the process, never the server.
func (s *session) vKill(arg string) reply {
	return s.letGoOf(arg)
}

// letGoOf ends the hold on the process with a hex id, or on all without one.
func (s *session) letGoOf(arg string) reply {
	pid, ok := parseHexInt(arg)
	switch {
	case arg == "":
		s.letGo()
	case !ok || !slices.Contains(s.pids(), pid):
		return replyError
	default:
		s.release(pid)
	}
	return replyOK
}

// detach answers D and D;PID.
func (s *session) detach(arg string) reply {
	pid, ok := strings.CutPrefix(arg, ";")
	if arg != "" && (!ok || pid == "") {
		return replyError
	}
	return s.letGoOf(pid)
}

// vAttach takes a process at the position where it is.
func (s *session) vAttach(arg string) reply {
	pid, ok := parseHexInt(arg)
	if !ok || !slices.Contains(s.pids(), pid) {
		return s.refuse("the recording holds process " + itoa(s.target.Process().PID))
	}
	s.take(pid)
	return s.plainStop(s.stop)
}

// vRun takes the process at the beginning of its history, whatever program and
// arguments the client names.
func (s *session) vRun(arg string) reply {
	if s.srv.opt.RR {
		return s.rrRun(arg)
	}
	s.undivert()
	if err := s.target.Rewind(); err != nil {
		return s.refuse(err.Error())
	}
	s.take(s.inferior.pid)
	return s.plainStop(s.stop)
}

// restart answers R, which has no reply.
func (s *session) restart(string) reply {
	s.undivert()
	if err := s.target.Rewind(); err != nil {
		s.srv.log.Warn("rewind", "err", err)
	} else {
		s.take(s.inferior.pid)
	}
	return reply{silent: true}
}

// take makes a process the client's, at the position where it is.
func (s *session) take(pid int) {
	s.live, s.attached = true, true
	s.general, s.resumed, s.withheld = threadRef{}, threadRef{}, withheld{}
	s.forget()
	s.use(pid)
	s.start()
}

// refuseRun answers lldb's A, a program to start with its arguments.
func refuseRun(s *session, _ string) reply {
	return s.fail("a replay starts no programs; use vRun to rewind")
}
