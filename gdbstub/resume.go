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
// one schedule, so scheduler-locking cannot hold a thread back.

// errNoProcess is the text for packets that need a process when none is held.
const errNoProcess = "no process: attach or run first"

// vCont answers vCont;ACTION[:THREAD];… For each thread the leftmost action
// that names it counts; the one that steps decides.
func (s *session) vCont(arg string) reply {
	r := api.Resume{Kind: api.Continue}
	found := false
	for a := range strings.SplitSeq(arg, ";") {
		action, thread, hasThread := strings.Cut(a, ":")
		tid := 0
		if hasThread {
			var ok bool
			if tid, ok = s.parseThread(thread); !ok {
				return replyError
			}
		}
		one, ok := s.parseAction(action)
		if !ok {
			return replyError
		}
		one.TID = tid
		if !found || r.Kind == api.Continue && one.Kind != api.Continue && tid != 0 {
			r, found = one, true
		}
	}
	return s.resume(r)
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
	r.TID = s.resumeTID
	return s.resume(r)
}

// isPC reports whether a hex address is where the thread is anyway.
func (s *session) isPC(addr string) bool {
	v, ok := parseHex(addr)
	regs, err := s.registers(s.general())
	return ok && err == nil && regs.RIP == v
}

// back answers bs and bc.
func (s *session) back(arg string) reply {
	switch arg {
	case "s":
		return s.resume(api.Resume{Dir: api.Backward, Kind: api.Step, TID: s.resumeTID})
	case "c":
		return s.resume(api.Resume{Dir: api.Backward, Kind: api.Continue, TID: s.resumeTID})
	}
	return reply{}
}

// resume moves the target and reports the stop. An error's text goes to the
// user as console output before the stop.
func (s *session) resume(r api.Resume) reply {
	if !s.live {
		return s.fail(errNoProcess)
	}
	if r.TID != 0 && !s.exists(r.TID) {
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
	r.PassSignals, r.CatchAll, r.CatchSyscalls, r.ExecEvents = s.pass, s.catchAll, s.catch, s.execEvents
	if !s.leave(r) {
		return s.resumeDiverted(r)
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
	if stop.Note != "" {
		s.console(strings.TrimSuffix(stop.Note, "\n") + "\n")
	}
	s.stop, s.generalTID = stop, 0
	if stop.Kind == api.StopExec {
		return s.execReply(stop, r)
	}
	if stop.Moved && s.libraries != nil && !s.lldb && !slices.Equal(s.libraries, s.target.Libraries()) {
		s.held = held{senseOf(&r), stop}
		return s.librariesReply(stop)
	}
	return s.stopReply(stop)
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

// held is a stop that the client has not been told of. When the list of libraries is
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
	if arg != "" && !s.isOurs(arg) {
		return replyError
	}
	s.letGo()
	return replyOK
}

// detach answers D and D;PID.
func (s *session) detach(arg string) reply {
	if arg != "" && (arg[0] != ';' || !s.isOurs(arg[1:])) {
		return replyError
	}
	s.letGo()
	return replyOK
}

// isOurs reports whether a hex process id is the recorded one.
func (s *session) isOurs(arg string) bool {
	pid, ok := parseHexInt(arg)
	return ok && pid == s.target.Process().PID
}

// vAttach takes the process at the position where it is.
func (s *session) vAttach(arg string) reply {
	if !s.isOurs(arg) {
		return s.refuse("the recording holds process " + itoa(s.target.Process().PID))
	}
	s.take()
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
	s.take()
	return s.plainStop(s.stop)
}

// restart answers R, which has no reply.
func (s *session) restart(string) reply {
	s.undivert()
	if err := s.target.Rewind(); err != nil {
		s.srv.log.Warn("rewind", "err", err)
	} else {
		s.take()
	}
	return reply{silent: true}
}

// take makes the process the client's.
func (s *session) take() {
	s.live, s.attached = true, true
	s.generalTID, s.resumeTID = 0, 0
	s.forget()
	s.stop = s.target.Stop()
}

// refuseRun answers lldb's A, a program to start with its arguments.
func refuseRun(s *session, _ string) reply {
	return s.fail("a replay starts no programs; use vRun to rewind")
}
