package gdbstub

import (
	"fmt"

	"vplay/replay/debug/api"
)

// The processes of a recording. The target is about one at a time, and which one that is
// goes with each packet: Hg, Hc, vFile:setfs and thread ids name processes (gdb manual,
// appendix "Remote Serial Protocol", "multiprocess extensions").
//
// A client holds the first process from the start, and each other one when it attaches to it.
// gdb would take processes from a list of threads, too, but sets up only the one that
// the first stop is of: the others stay without target description, so that it cannot
// read their registers, and without libraries (gdb 13, remote_notice_new_inferior). An
// attach sets up everything, and needs the extended protocol.

// inferior is what a session keeps of one process.
type inferior struct {
	pid       int
	breaks    map[breakKey]api.Breakpoint
	libraries []api.Library // what the client has last read; nil before it asked
	div       diversion
}

// threadRef names a thread; 0 stands for any process, or any thread of it.
type threadRef struct{ pid, tid int }

// pids lists the processes that the client can hold, at least one.
func (s *session) pids() []int {
	if t, ok := s.target.(api.ProcessTarget); ok && s.multiprocess {
		if list := t.PIDs(); len(list) > 0 {
			return list
		}
	}
	return []int{s.inferior.pid}
}

// holds reports whether the client holds a process.
func (s *session) holds(pid int) bool {
	return s.live && s.taken[pid]
}

// use makes a process the one that the target is about, and reports whether it is.
func (s *session) use(pid int) bool {
	if s.inferior != nil && s.inferior.pid == pid {
		return true
	}
	if t, ok := s.target.(api.ProcessTarget); ok && s.multiprocess {
		if err := t.Select(pid); err != nil {
			s.srv.log.Warn("select process", "pid", pid, "err", err)
			return false
		}
	} else if s.inferior != nil && pid != s.target.Process().PID {
		return false
	}
	if s.inferiors[pid] == nil {
		s.inferiors[pid] = &inferior{pid: pid, breaks: map[breakKey]api.Breakpoint{}}
	}
	s.inferior = s.inferiors[pid]
	return true
}

// useGeneral makes the process that packets without a thread are about the target's.
func (s *session) useGeneral() {
	if s.general.pid == 0 || !s.use(s.general.pid) {
		s.use(s.stopPID)
	}
}

// each calls f for every process that the client has touched, with the target about it,
// and goes back to the present one.
func (s *session) each(f func()) {
	now := s.inferior.pid
	for _, i := range s.inferiors {
		if s.use(i.pid) {
			f()
		}
	}
	s.use(now)
}

// tellOthers tells a client that has one process of several, and cannot attach to the others,
// how its user comes to them: once, when it resumes, because gdb takes no text for its user
// while it connects.
func (s *session) tellOthers() {
	t, ok := s.target.(api.ProcessTarget)
	if !ok || s.extended || s.toldOthers || s.srv.opt.RR {
		return
	}
	s.toldOthers = true
	if n := len(t.PIDs()); n > 1 {
		s.console(fmt.Sprintf("vplay: process %d is one of %d in the recording: monitor processes lists them, vplay inferiors shows all in gdb\n", s.inferior.pid, n))
	}
}

// release lets go of one process. With the last one goes the hold on all.
func (s *session) release(pid int) {
	delete(s.taken, pid)
	if len(s.taken) == 0 {
		s.letGo()
		return
	}
	if s.use(pid) {
		s.guard("end the diversion", s.undivert)
		s.clearBreaks()
	}
}

// start makes the session begin with the process that the target is about.
func (s *session) start() {
	s.stop, s.stopPID = s.target.Stop(), s.target.Process().PID
	s.selected = selection{threadRef: threadRef{s.stopPID, s.stop.TID}}
	s.use(s.stopPID)
	if s.live {
		s.taken[s.stopPID] = true
	}
}
