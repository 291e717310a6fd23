package dap

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// Breakpoints are kept as the client sets them, group by group: the lines of one
// source, the functions, the instructions, the data. The target has the sum of
// them: one breakpoint per address. Whether one is met where the target stops is in
// condition.go.

// maxBreakpoints bounds the addresses at a time.
const maxBreakpoints = api.MaxBreakpoints

// breakpoint is one that the client set.
type breakpoint struct {
	id        int
	kind      string // the protocol's reason
	addrs     []uint64
	data      api.Breakpoint // of a data breakpoint
	condition string
	hits      hitCount
	message   string // of a log point

	// find returns where it goes in the present program; nil for those that are at an
	// address, which means something in one program only.
	find     func() []api.Place
	missing  error         // why find found nothing
	source   *godap.Source // as the client has it; nil for functions
	line     int           // the client asked for
	verified bool
	program  string // that the address belongs to
}

// breakpoints are all of a session.
type breakpoints struct {
	groups map[string][]*breakpoint
	nextID int
	hit    []int // ids, of the present stop
	kind   string

	placedKeys map[placedKey]string // what the target has, with the conditions
}

// placedKey is what identifies a breakpoint of the target's.
type placedKey struct {
	kind api.BreakpointKind
	addr uint64
	len  uint64
}

func newBreakpoints() breakpoints {
	return breakpoints{groups: map[string][]*breakpoint{}, nextID: 1, placedKeys: map[placedKey]string{}}
}

// reason is that of the breakpoint that was hit.
func (b *breakpoints) reason() string {
	if b.kind == "" {
		return "breakpoint"
	}
	return b.kind
}

// replace puts a group in the place of what it was, and tells the target.
func (s *session) replace(group string, list []*breakpoint) error {
	old := s.breaks.groups[group]
	s.breaks.groups[group] = list
	if err := s.place(); err != nil {
		s.breaks.groups[group] = old
		return errors.Join(err, s.place())
	}
	if len(list) == 0 {
		delete(s.breaks.groups, group)
	}
	return nil
}

// place makes the target's breakpoints those of the groups. Conditions go with them,
// where all breakpoints at an address have one, so that the target need not stop for
// each hit; what they mean is decided in holds all the same.
func (s *session) place() error {
	want := map[placedKey][]string{} // conditions; one that is empty is none
	n := 0
	for _, list := range s.breaks.groups {
		n += len(list)
		for _, b := range list {
			if b.find == nil && b.program != s.program {
				continue
			}
			for _, a := range b.addrs {
				k := placedKey{api.BreakSoftware, a, 1}
				want[k] = append(want[k], b.condition)
			}
			if b.data.Len > 0 {
				k := placedKey{b.data.Kind, b.data.Addr, b.data.Len}
				want[k] = append(want[k], "")
			}
		}
	}
	if len(want) > maxBreakpoints || n > maxBreakpoints {
		return fmt.Errorf("more than %d breakpoints", maxBreakpoints)
	}
	for k := range s.breaks.placedKeys {
		if _, ok := want[k]; !ok {
			delete(s.breaks.placedKeys, k)
			if err := s.target.ClearBreakpoint(api.Breakpoint{Kind: k.kind, Addr: k.addr, Len: k.len}); err != nil {
				return err
			}
		}
	}
	for k, conditions := range want {
		slices.Sort(conditions)
		text := strings.Join(conditions, "\x00")
		if conditions[0] == "" {
			text, conditions = "", nil
		}
		if old, ok := s.breaks.placedKeys[k]; ok && old == text {
			continue
		}
		b := api.Breakpoint{Kind: k.kind, Addr: k.addr, Len: k.len}
		b.Test, b.Conditions = s.test(k.addr, conditions)
		if err := s.target.SetBreakpoint(b); err != nil {
			return err
		}
		s.breaks.placedKeys[k] = text
	}
	return nil
}

// test is true where one of the conditions is; nil for none. codes are the same, if all have that form.
func (s *session) test(pc uint64, conditions []string) (test func(api.Machine) bool, codes [][]byte) {
	if len(conditions) == 0 {
		return nil, nil
	}
	tests := make([]func(api.Machine) bool, len(conditions))
	codes = make([][]byte, len(conditions))
	for i, c := range conditions {
		tests[i], codes[i] = s.symbols.Condition(pc, c)
	}
	if slices.ContainsFunc(codes, func(code []byte) bool { return code == nil }) {
		codes = nil
	}
	return func(m api.Machine) bool {
		return slices.ContainsFunc(tests, func(t func(api.Machine) bool) bool { return t(m) })
	}, codes
}

// removeAll clears every breakpoint.
func (s *session) removeAll() {
	clear(s.breaks.groups)
	if err := s.place(); err != nil {
		s.srv.log.Warn("clear breakpoints", "err", err)
	}
}

// id returns the number of a new breakpoint.
func (b *breakpoints) id() int {
	b.nextID++
	return b.nextID - 1
}

// errNoCode says that there is no code for a breakpoint.
var errNoCode = errors.New("there is no code here, or no symbols of it")

// resolve finds out where a breakpoint goes in the present program, and describes it to
// the client.
func (s *session) resolve(b *breakpoint) godap.Breakpoint {
	out := godap.Breakpoint{Id: b.id, Line: b.line, Source: b.source}
	places := b.find()
	b.addrs = nil
	for _, p := range places {
		b.addrs = append(b.addrs, p.Addr)
	}
	if b.verified = len(places) > 0; !b.verified {
		out.Message = b.missing.Error()
		return out
	}
	p := places[0]
	out.Verified, out.InstructionReference = true, hex(p.Addr)
	switch {
	case b.source != nil:
		out.Line = p.Line - 1 + s.lineBase
	case p.File != "":
		out.Source, out.Line = s.source(p.File), p.Line-1+s.lineBase
	}
	return out
}

func setBreakpoints(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SetBreakpointsArguments](raw)
	if err != nil {
		return nil, err
	}
	if len(a.Breakpoints) == 0 && len(a.Lines) > 0 { // what old clients send
		for _, l := range a.Lines {
			a.Breakpoints = append(a.Breakpoints, godap.SourceBreakpoint{Line: l})
		}
	}
	file := s.fromClient(a.Source.Path)
	if file == "" {
		file = a.Source.Name
	}
	out := make([]godap.Breakpoint, len(a.Breakpoints))
	var list []*breakpoint
	for i, want := range a.Breakpoints {
		b := &breakpoint{id: s.breaks.id(), kind: "breakpoint", source: &a.Source, line: want.Line, missing: errNoCode}
		b.find = func() []api.Place { return s.symbols.Lines(file, want.Line+1-s.lineBase) }
		if err := b.conditions(want.Condition, want.HitCondition, want.LogMessage); err != nil {
			out[i] = godap.Breakpoint{Id: b.id, Line: want.Line, Source: &a.Source, Message: err.Error()}
			continue
		}
		out[i] = s.resolve(b)
		list = append(list, b)
	}
	if err := s.replace("source "+file, list); err != nil {
		return nil, err
	}
	return godap.SetBreakpointsResponseBody{Breakpoints: out}, nil
}

func setFunctionBreakpoints(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SetFunctionBreakpointsArguments](raw)
	if err != nil {
		return nil, err
	}
	out := make([]godap.Breakpoint, len(a.Breakpoints))
	var list []*breakpoint
	for i, want := range a.Breakpoints {
		name := strings.TrimSuffix(strings.TrimSpace(want.Name), "()")
		b := &breakpoint{id: s.breaks.id(), kind: "function breakpoint", missing: fmt.Errorf("there is no function %s", clip(name))}
		b.find = func() []api.Place { return s.symbols.Functions(name) }
		if err := b.conditions(want.Condition, want.HitCondition, ""); err != nil {
			out[i] = godap.Breakpoint{Id: b.id, Message: err.Error()}
			continue
		}
		out[i] = s.resolve(b)
		list = append(list, b)
	}
	if err := s.replace("functions", list); err != nil {
		return nil, err
	}
	return godap.SetFunctionBreakpointsResponseBody{Breakpoints: out}, nil
}

func setInstructionBreakpoints(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SetInstructionBreakpointsArguments](raw)
	if err != nil {
		return nil, err
	}
	out := make([]godap.Breakpoint, len(a.Breakpoints))
	var list []*breakpoint
	for i, want := range a.Breakpoints {
		b := &breakpoint{id: s.breaks.id(), kind: "instruction breakpoint", program: s.program}
		out[i] = godap.Breakpoint{Id: b.id}
		addr, err := parseAddress(want.InstructionReference)
		if err == nil {
			err = b.conditions(want.Condition, want.HitCondition, "")
		}
		if err != nil {
			out[i].Message = err.Error()
			continue
		}
		b.addrs = []uint64{addr + uint64(want.Offset)}
		out[i].Verified, out[i].InstructionReference = true, hex(b.addrs[0])
		list = append(list, b)
	}
	if err := s.replace("instructions", list); err != nil {
		return nil, err
	}
	return godap.SetInstructionBreakpointsResponseBody{Breakpoints: out}, nil
}

// dataBreakpointInfo answers where a variable is, if it can be watched.
func dataBreakpointInfo(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.DataBreakpointInfoArguments](raw)
	if err != nil {
		return nil, err
	}
	v, err := s.valueOf(a.VariablesReference, a.Name, a.FrameId)
	if err != nil {
		return godap.DataBreakpointInfoResponseBody{Description: err.Error()}, nil //nolint:nilerr // it is the answer
	}
	if v.Size <= 0 || v.Size > api.MaxWatchLen {
		return godap.DataBreakpointInfoResponseBody{Description: a.Name + " is not in memory"}, nil
	}
	return godap.DataBreakpointInfoResponseBody{
		DataId: fmt.Sprintf("%#x/%d", v.Addr, v.Size), Description: fmt.Sprintf("%s (%d bytes at %#x)", a.Name, v.Size, v.Addr),
		AccessTypes: []godap.DataBreakpointAccessType{"write", "read", "readWrite"},
	}, nil
}

// watchKinds are the kinds of data breakpoints by the protocol's names.
var watchKinds = map[godap.DataBreakpointAccessType]api.BreakpointKind{
	"": api.WatchWrite, "write": api.WatchWrite, "read": api.WatchRead, "readWrite": api.WatchAccess,
}

func setDataBreakpoints(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.SetDataBreakpointsArguments](raw)
	if err != nil {
		return nil, err
	}
	out := make([]godap.Breakpoint, len(a.Breakpoints))
	var list []*breakpoint
	for i, want := range a.Breakpoints {
		b := &breakpoint{id: s.breaks.id(), kind: "data breakpoint", program: s.program}
		out[i] = godap.Breakpoint{Id: b.id}
		err := b.watch(want)
		if err == nil {
			err = b.conditions(want.Condition, want.HitCondition, "")
		}
		if err != nil {
			out[i].Message = err.Error()
			continue
		}
		out[i].Verified = true
		list = append(list, b)
	}
	if err := s.replace("data", list); err != nil {
		return nil, err
	}
	return godap.SetDataBreakpointsResponseBody{Breakpoints: out}, nil
}

// watch takes a data breakpoint's id, ADDRESS/LENGTH, apart.
func (b *breakpoint) watch(want godap.DataBreakpoint) error {
	where, length, _ := strings.Cut(want.DataId, "/")
	addr, err := parseAddress(where)
	n, err2 := strconv.ParseUint(length, 10, 32)
	kind, ok := watchKinds[want.AccessType]
	if err != nil || err2 != nil || !ok || n == 0 || n > api.MaxWatchLen {
		return fmt.Errorf("%q is no data breakpoint of this server", clip(want.DataId))
	}
	b.data = api.Breakpoint{Kind: kind, Addr: addr, Len: n}
	return nil
}

// clip shortens what a client sent for a message.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}

func hex(a uint64) string { return fmt.Sprintf("%#x", a) }

// parseAddress reads an address as this server writes them, or in decimal.
func parseAddress(s string) (uint64, error) {
	a, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no address", clip(s))
	}
	return a, nil
}
