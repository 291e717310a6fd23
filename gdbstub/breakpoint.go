package gdbstub

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"vplay/dwarf/agentexpr"
	"vplay/replay/debug/api"
)

// The packets Z and z: breakpoints and watchpoints, with the conditions that come with
// them (gdb manual, appendix "Remote Serial Protocol", "Packets"). The target keeps and
// checks them; what a condition's bytecode means is package agentexpr's.

const maxConditions = 64 // per breakpoint

// breakKey identifies a breakpoint.
type breakKey struct {
	kind api.BreakpointKind
	addr uint64
	n    uint64
}

// parseBreak parses KIND,ADDR,LEN. It reports false for kinds that do not
// exist and for lengths that make no sense.
func parseBreak(arg string) (b api.Breakpoint, ok bool) {
	kind, where, _ := strings.Cut(arg, ",")
	if len(kind) != 1 || kind[0] < '0' || kind[0] > '4' {
		return b, false
	}
	addr, n, ok := parseRange(where)
	b = api.Breakpoint{Kind: api.BreakpointKind(kind[0] - '0'), Addr: addr, Len: n}
	if b.Kind >= api.WatchWrite && (n == 0 || n > api.MaxWatchLen) {
		return b, false
	}
	return b, ok
}

// setBreak answers Z KIND,ADDR,LEN[;CONDITIONS]. Setting it again replaces the
// conditions.
func (s *session) setBreak(arg string) reply {
	where, cond, _ := strings.Cut(arg, ";")
	b, ok := parseBreak(where)
	if !ok {
		return replyError
	}
	if !s.live {
		return s.fail(errNoProcess)
	}
	codes, programs, ok := parseConditions(cond)
	if !ok {
		return s.fail("condition is not valid agent bytecode")
	}
	b.Test, b.Conditions = anyHolds(programs), codes
	key := breakKey{b.Kind, b.Addr, b.Len}
	if _, have := s.breaks[key]; !have && len(s.breaks) >= api.MaxBreakpoints {
		return s.fail("too many breakpoints")
	}
	err := s.target.SetBreakpoint(b)
	switch {
	case errors.Is(err, api.ErrNotSupported):
		return reply{}
	case err != nil:
		return s.fail(err.Error())
	}
	s.breaks[key] = b
	return replyOK
}

// anyHolds returns the test of a breakpoint with agent expressions: it stops if one is
// not zero, or cannot be evaluated. Without any it is nil.
func anyHolds(programs []*agentexpr.Program) func(api.Machine) bool {
	if len(programs) == 0 {
		return nil
	}
	return func(m api.Machine) bool {
		return slices.ContainsFunc(programs, func(p *agentexpr.Program) bool { return p.Holds(m, agentRegister) })
	}
}

// clearBreak answers z. Clearing what is not set is not an error.
func (s *session) clearBreak(arg string) reply {
	where, _, _ := strings.Cut(arg, ";")
	b, ok := parseBreak(where)
	if !ok {
		return replyError
	}
	key := breakKey{b.Kind, b.Addr, b.Len}
	if b, ok = s.breaks[key]; !ok {
		return replyOK
	}
	delete(s.breaks, key)
	if err := s.target.ClearBreakpoint(b); err != nil {
		return s.fail(err.Error())
	}
	return replyOK
}

// parseConditions parses X LEN,HEX once or more, with or without a semicolon
// between. Commands to run at a breakpoint were not offered and are an error.
func parseConditions(arg string) (codes [][]byte, programs []*agentexpr.Program, ok bool) {
	for arg != "" {
		if arg[0] == ';' {
			arg = arg[1:]
			continue
		}
		if arg[0] != 'X' || len(codes) == maxConditions {
			return nil, nil, false
		}
		size, rest, _ := strings.Cut(arg[1:], ",")
		n, ok := parseHexInt(size)
		if !ok || n == 0 || n > agentexpr.MaxLen || len(rest) < 2*n {
			return nil, nil, false
		}
		code, err := hex.DecodeString(rest[:2*n])
		p, perr := agentexpr.Parse(code)
		if err != nil || perr != nil {
			return nil, nil, false
		}
		codes, programs, arg = append(codes, code), append(programs, p), rest[2*n:]
	}
	return codes, programs, true
}
