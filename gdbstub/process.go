package gdbstub

import (
	"slices"

	"vplay/replay/debug/api"
)

// The processes of a recording. The target is about one at a time, and which one that is
// goes with each packet: Hg, Hc, vFile:setfs and thread ids name processes (gdb manual,
// appendix "Remote Serial Protocol", "multiprocess extensions"). A client that does not
// know of processes sees the first one.

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
	return s.live && !s.released[pid] && slices.Contains(s.pids(), pid)
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

// release lets go of one process. With the last one goes the hold on all.
func (s *session) release(pid int) {
	if s.released == nil {
		s.released = map[int]bool{}
	}
	s.released[pid] = true
	if slices.ContainsFunc(s.pids(), func(pid int) bool { return !s.released[pid] }) {
		if s.use(pid) {
			s.guard("end the diversion", s.undivert)
			s.clearBreaks()
		}
		return
	}
	s.letGo()
}

// acquire takes a process at the position where it is. A client that held none holds that
// one only.
func (s *session) acquire(pid int) {
	if !s.live {
		s.released = map[int]bool{}
		for _, other := range s.pids() {
			s.released[other] = true
		}
	}
	delete(s.released, pid)
	s.take(pid)
}

// start makes the session begin with the process that the target is about.
func (s *session) start() {
	s.stop, s.stopPID = s.target.Stop(), s.target.Process().PID
	s.selected = selection{tid: s.stop.TID}
	s.use(s.stopPID)
}
