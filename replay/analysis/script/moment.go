package script

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/dwarf"
	"vplay/replay/analysis/heap"
	"vplay/replay/analysis/uninit"
	"vplay/replay/observe"
)

// What a callback of a script gets: the program at one moment, and what happened there.

// moment is a Starlark value with attributes. What looks at the program's memory can be used while
// the callback runs; the rest stays.
type moment struct {
	r    *run
	v    *observe.View // nil when the moment is over
	over bool
	kind string
	at   checkpoint.Position
	tid  checkpoint.TID
	pc   uint64
	sp   uint64

	frames []*dwarf.Env // innermost first, as far as somebody asked
	whole  bool         // frames are all there are

	args    [6]uint64           // call, return
	called  string              // call, return: the function, as the script named it
	inlined bool                // call: of a copy in another function
	body    bool                // call: behind the code that makes the frame
	entered checkpoint.Position // return: where it was called
	result  uint64              // return

	call     *syscall // syscall
	returned *int64   // syscall: nil where it has not returned
	text     string   // syscall, signal

	signo int32  // signal
	fault bool   // signal
	addr  uint64 // signal: of a fault; freed

	access *observe.Access // access, race
	other  starlark.Value  // race: the access before

	use *uninit.Report // uninit

	problem *heap.Problem // heap
}

var _ starlark.HasAttrs = (*moment)(nil)

// errOver says that a moment was kept for longer than it lasts.
var errOver = errors.New("the moment is over: the program can be looked at only while the callback runs")

// String implements starlark.Value.
func (m *moment) String() string { return "<" + m.kind + " at " + m.at.String() + ">" }

// Type implements starlark.Value.
func (m *moment) Type() string { return "moment" }

// Freeze implements starlark.Value; nothing of a moment changes.
func (m *moment) Freeze() {}

// Truth implements starlark.Value.
func (m *moment) Truth() starlark.Bool { return true }

// Hash implements starlark.Value.
func (m *moment) Hash() (uint32, error) { return 0, errors.New("a moment is no key") }

// attribute is what a name behind a moment stands for.
type attribute struct {
	of  []string // the kinds of moment that have it; nil is all
	get func(m *moment) (starlark.Value, error)
}

// attributes are those of all kinds of moments.
var attributes map[string]attribute

// kinds says which kinds of moment have an attribute; a name that is not there is of all.
var kinds = map[string][]string{
	"arg": {"call", "return"}, "result": {"return", "syscall"}, "entered": {"return"}, "inlined": {"call"},
	"name": {"call", "return", "syscall", "signal"}, "number": {"syscall", "signal"}, "args": {"syscall"}, "error": {"syscall"},
	"text": {"syscall", "signal", "uninit"}, "use": {"uninit"}, "origin": {"uninit"}, "fault": {"signal"}, "address": {"signal", "access", "race", "freed"}, "other": {"race"},
	"size": {"access", "race"}, "store": {"access", "race"}, "data": {"access"}, "old": {"access"}, "kernel": {"access"}, "new_value": {"access"}, "old_value": {"access"},
	"ended": {"end"}, "crashed": {"end"}, "problem": {"heap"},
	"caller": {"call", "return", "line", "exec", "syscall", "signal", "access", "race", "heap"},
}

func init() {
	plain := map[string]func(m *moment) (starlark.Value, error){
		"kind":        func(m *moment) (starlark.Value, error) { return starlark.String(m.kind), nil },
		"position":    func(m *moment) (starlark.Value, error) { return starlark.String(m.at.String()), nil },
		"interval":    func(m *moment) (starlark.Value, error) { return starlark.MakeUint64(uint64(m.at.Interval)), nil },
		"instruction": func(m *moment) (starlark.Value, error) { return starlark.MakeUint64(m.at.Instr), nil },
		"thread":      func(m *moment) (starlark.Value, error) { return starlark.MakeInt64(int64(m.tid)), nil },
		"pc":          func(m *moment) (starlark.Value, error) { return starlark.MakeUint64(m.place()), nil },
		"image":       func(m *moment) (starlark.Value, error) { return starlark.MakeInt(m.r.imageOf(m.at.Interval)), nil },
		"sp":          func(m *moment) (starlark.Value, error) { return starlark.MakeUint64(m.sp), nil },
		"inlined":     func(m *moment) (starlark.Value, error) { return starlark.Bool(m.inlined), nil },
		"entered":     func(m *moment) (starlark.Value, error) { return starlark.String(m.entered.String()), nil },
		"text":        func(m *moment) (starlark.Value, error) { return starlark.String(m.text), nil },
		"fault":       func(m *moment) (starlark.Value, error) { return starlark.Bool(m.fault), nil },
		"size":        func(m *moment) (starlark.Value, error) { return starlark.MakeInt(m.access.Size), nil },
		"store":       func(m *moment) (starlark.Value, error) { return starlark.Bool(m.access.Store), nil },
		"kernel":      func(m *moment) (starlark.Value, error) { return starlark.Bool(m.access.Event), nil },
		"data":        func(m *moment) (starlark.Value, error) { return starlark.Bytes(m.access.Data), nil },
		"old":         func(m *moment) (starlark.Value, error) { return starlark.Bytes(m.access.Old), nil },
		"new_value":   func(m *moment) (starlark.Value, error) { return littleEndian(m.access.Data), nil },
		"old_value":   func(m *moment) (starlark.Value, error) { return littleEndian(m.access.Old), nil },
		"ended": func(m *moment) (starlark.Value, error) {
			return starlark.String(ending(m.r.rec.Ending(m.r.o.PID))), nil
		},
		"crashed": func(m *moment) (starlark.Value, error) {
			return starlark.Bool(m.r.rec.Ending(m.r.o.PID).Kind == checkpoint.EndCrash), nil
		},
		"other":   func(m *moment) (starlark.Value, error) { return m.other, nil },
		"use":     func(m *moment) (starlark.Value, error) { return starlark.String(uses[m.use.Kind]), nil },
		"origin":  (*moment).origin,
		"address": (*moment).address, "result": (*moment).resultValue, "name": (*moment).name, "number": (*moment).number,
		"args": (*moment).arguments, "error": (*moment).errorName,
		"function": (*moment).function, "source": (*moment).source, "module": (*moment).module, "location": (*moment).location,
		"caller": (*moment).caller, "problem": (*moment).problemValue, "registers": (*moment).registers,
	}
	attributes = map[string]attribute{}
	for name, f := range plain {
		attributes[name] = attribute{kinds[name], f}
	}
	for name := range methods {
		attributes[name] = attribute{kinds[name], func(m *moment) (starlark.Value, error) { return &method{m, name}, nil }}
	}
}

// method is a method of a moment, as a value: a starlark.Builtin with less to allocate.
type method struct {
	m    *moment
	name string
}

var _ starlark.Callable = (*method)(nil)

// String implements starlark.Value, as a starlark.Builtin does.
func (b *method) String() string { return "<built-in method " + b.name + " of moment value>" }

// Type implements starlark.Value.
func (b *method) Type() string { return "builtin_function_or_method" }

// Freeze implements starlark.Value.
func (b *method) Freeze() {}

// Truth implements starlark.Value.
func (b *method) Truth() starlark.Bool { return true }

// Hash implements starlark.Value.
func (b *method) Hash() (uint32, error) { return 0, errors.New("a method of a moment is no key") }

// Name implements starlark.Callable.
func (b *method) Name() string { return b.name }

// CallInternal implements starlark.Callable.
func (b *method) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if b.m.over && b.name != "arg" {
		return nil, fmt.Errorf("%s: %w", b.name, errOver)
	}
	v, err := methods[b.name](b.m, args, kwargs)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Attr implements starlark.HasAttrs.
func (m *moment) Attr(name string) (starlark.Value, error) {
	a := attributes[name]
	if a.get == nil || !a.isOf(m) {
		return nil, nil //nolint:nilnil // this is how Starlark is told that there is none
	}
	return a.get(m)
}

// isOf reports whether moments of this kind have the attribute.
func (a attribute) isOf(m *moment) bool { return a.of == nil || slices.Contains(a.of, m.kind) }

// AttrNames implements starlark.HasAttrs.
func (m *moment) AttrNames() []string {
	var out []string
	for name, a := range attributes {
		if a.isOf(m) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// place is the address that the moment is about: of an access, the instruction that made it.
func (m *moment) place() uint64 {
	switch {
	case m.kind == "access", m.kind == "race":
		return m.access.PC
	case m.problem != nil && m.problem.PC != 0:
		return m.problem.PC
	}
	return m.pc
}

func (m *moment) address() (starlark.Value, error) {
	if m.kind == "access" || m.kind == "race" {
		return starlark.MakeUint64(m.access.Addr), nil
	}
	return starlark.MakeUint64(m.addr), nil
}

func (m *moment) resultValue() (starlark.Value, error) {
	switch {
	case m.kind == "return":
		return starlark.MakeUint64(m.result), nil
	case m.returned == nil:
		return starlark.None, nil
	}
	return starlark.MakeInt64(*m.returned), nil
}

// name is that of the function, the system call or the signal.
func (m *moment) name() (starlark.Value, error) {
	switch m.kind {
	case "syscall":
		return starlark.String(abi.Name(m.call.nr)), nil
	case "signal":
		return starlark.String(abi.Signal(m.signo).String()), nil
	}
	return starlark.String(m.called), nil
}

func (m *moment) number() (starlark.Value, error) {
	if m.kind == "signal" {
		return starlark.MakeInt(int(m.signo)), nil
	}
	return starlark.MakeInt64(m.call.nr), nil
}

func (m *moment) arguments() (starlark.Value, error) {
	out := make(starlark.Tuple, len(m.args))
	for i, a := range m.args {
		out[i] = starlark.MakeUint64(a)
	}
	return out, nil
}

// errorName is the name of the error that a system call has returned, None where it has not failed.
func (m *moment) errorName() (starlark.Value, error) {
	if m.returned == nil {
		return starlark.None, nil
	}
	if e, failed := abi.ErrnoOf(*m.returned); failed {
		return starlark.String(e.Name()), nil
	}
	return starlark.None, nil
}

// kept is an access that a script may keep, with its bytes.
func kept(a *observe.Access) *observe.Access {
	x := *a
	x.Data, x.Old = append([]byte(nil), a.Data...), append([]byte(nil), a.Old...)
	return &x
}

// littleEndian is the number that up to eight bytes are, None for more or none.
func littleEndian(b []byte) starlark.Value {
	if len(b) == 0 || len(b) > 8 {
		return starlark.None
	}
	n := uint64(0)
	for i, x := range b {
		n |= uint64(x) << (8 * i)
	}
	return starlark.MakeUint64(n)
}
