package dap

import (
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// A process that calls execve becomes another program, and a recording may hold both.
// The target goes over that boundary in both directions. Addresses then mean something
// else: breakpoints on lines and functions are looked for in the new program, those at
// addresses rest until their program is back, and the client is told at the next stop.

// programKey tells one program of the process from another: the auxiliary vector has
// addresses of its memory.
func (s *session) programKey() string {
	p := s.target.Process()
	return p.ExecFile + "\x00" + string(p.Auxv)
}

// follow moves the breakpoints to the present program when it is another than before.
// Whoever has the target calls it, the session or a movement.
func (s *session) follow() {
	key := s.programKey()
	if key == s.program {
		return
	}
	isFirst := s.program == ""
	s.program = key
	if isFirst {
		return
	}
	s.entered = true
	groups := s.breaks.groups
	s.breaks.groups = nil
	err := s.place() // conditions, too, belong to a program
	s.breaks.groups = groups
	for _, list := range groups {
		for _, b := range list {
			if b.find == nil {
				continue
			}
			was := b.verified
			if body := s.resolve(b); was || b.verified {
				s.changed[b.id] = body
			}
		}
	}
	if err == nil {
		err = s.place()
	}
	if err != nil {
		s.srv.log.Warn("breakpoints of another program", "err", err)
	}
}

// tellProgram tells the client that the program is another than at the stop before, and
// where its breakpoints are now.
func (s *session) tellProgram() {
	if !s.entered {
		return
	}
	s.entered = false
	s.tellProcess()
	for _, body := range s.changed {
		s.event("breakpoint", godap.BreakpointEventBody{Reason: "changed", Breakpoint: body})
	}
	clear(s.changed)
}

func (s *session) tellProcess() {
	p := s.target.Process()
	s.event("process", godap.ProcessEventBody{Name: p.ExecFile, SystemProcessId: p.PID, StartMethod: "attach", PointerSize: 64})
}

// seek moves the target to where a line of the console says, "seek WHERE", into another
// program, too. A monitor command alone stays in the program.
func (m *movement) seek(where string, out *writer) error {
	t := m.s.target
	if err := t.Monitor(m.ctx, "resume-at "+where, out); err != nil {
		return err
	}
	if _, err := m.resume(api.Resume{Kind: api.Step}); err != nil {
		return err
	}
	return t.Monitor(m.ctx, "when", out)
}

// seekTarget returns where a console's line wants to go, if that is what it says.
func seekTarget(line string) (where string, ok bool) {
	where, ok = strings.CutPrefix(line, "seek ")
	where = strings.TrimSpace(where)
	return where, ok && where != ""
}
