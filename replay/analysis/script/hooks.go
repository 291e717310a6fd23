package script

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"go.starlark.net/starlark"

	"vplay/checkpoint/abi"
	"vplay/replay/observe"
)

// What a script asks to be called for, while it is loaded.

// hooks are all of it. They do not change once the script is loaded.
type hooks struct {
	places   []*place // calls, lines, addresses
	returns  []*place
	syscalls []syscallHook
	signals  []starlark.Callable
	accesses []*accessHook
	heap     *heapHook // nil: nobody asks
	ranges   *rangeSet // nil: there is none
	end      []starlark.Callable
	races    *races      // nil: it was not asked for
	uninit   *uninitHook // nil: nobody asks
}

// place is code that was asked for by name.
type place struct {
	by       string // the function of the script's that asked: "on_call"
	names    []string
	f        starlark.Callable
	kind     string // of the moments: "call", "return", "line", "exec"
	body     bool   // behind the code that makes the frame
	inlined  bool   // where it was inlined, too
	optional bool   // it need not be there
	at       string // in the script
	found    atomic.Bool
	// onlyInlined says that there are copies of the function in others, and nothing else of it.
	onlyInlined atomic.Bool
	// native is called in place of f where it is set, and left in place of that of a return, with what the function has returned.
	native func(v *observe.View)
	left   func(v *observe.View, c *callRecord, result uint64)
}

// syscallHook is a set of system calls.
type syscallHook struct {
	numbers map[int64]bool // nil: all
	f       starlark.Callable
	enter   bool // called before the call, not behind it
}

// accessHook is memory whose accesses were asked for.
type accessHook struct {
	expr       string // "" where it is a range
	start, end uint64
	load       bool
	store      bool
	f          starlark.Callable
	at         string
	found      atomic.Bool
	why        atomic.Pointer[string] // the error of evaluating expr last
}

// needReplay reports whether anything in the recording was asked for.
func (h *hooks) needReplay() bool {
	return len(h.places)+len(h.returns)+len(h.syscalls)+len(h.signals)+len(h.accesses) > 0 || h.races != nil || h.heap != nil || h.ranges != nil || h.uninit != nil
}

// unfound is the error of what was asked for and is nowhere in the recording.
func (h *hooks) unfound() error {
	for _, list := range [][]*place{h.places, h.returns} {
		for _, p := range list {
			if p.found.Load() || p.optional {
				continue
			}
			what := "no function, and no symbol,"
			switch {
			case p.onlyInlined.Load():
				return &Error{At: p.at, What: fmt.Sprintf("%s: %s was inlined wherever it is called, so that there is no call (on_call with inlined=True has its copies)", p.by, strings.Join(p.names, ", "))}
			case p.kind == "line":
				what = "no line with code"
			}
			return &Error{At: p.at, What: fmt.Sprintf("%s: %s is called %s in the modules of the recorded program (optional=True says that it need not be there; "+
				"--symbols names folders with files that know more)", p.by, what, strings.Join(p.names, ", "))}
		}
	}
	for _, a := range h.accesses {
		if why := a.why.Load(); why != nil && !a.found.Load() {
			return &Error{At: a.at, What: fmt.Sprintf("on_access: %s: %s", a.expr, *why)}
		}
	}
	return nil
}

// onPlace makes on_call, on_return, on_line and on_exec.
func (r *run) onPlace(kind string) *starlark.Builtin {
	name := "on_" + kind
	return r.hook(name, func(fn *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) error {
		var what starlark.Value
		p := &place{by: name, kind: kind, at: r.caller()}
		params := []any{"name", &what, "f", &p.f, "optional?", &p.optional}
		if kind == "call" {
			params = append(params, "body?", &p.body, "inlined?", &p.inlined)
		}
		if err := starlark.UnpackArgs(name, args, kwargs, params...); err != nil {
			return err
		}
		var err error
		if p.names, err = nameList(what); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, n := range p.names {
			if _, _, err := splitLine(n); kind == "line" && err != nil {
				return fmt.Errorf("on_line: %w", err)
			}
		}
		if kind == "return" {
			r.hooks.returns = append(r.hooks.returns, p)
		} else {
			r.hooks.places = append(r.hooks.places, p)
		}
		return nil
	})
}

// hook makes a function that may be called only while the script is loaded.
func (r *run) hook(name string, f func(fn *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) error) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, fn *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if r.loaded {
			return nil, fmt.Errorf("%s: what is asked for must be said while the script is loaded, not in a callback: the recording is replayed on several cores by then", name)
		}
		return starlark.None, f(fn, args, kwargs)
	})
}

// caller is the place in the script that calls a function of ours.
func (r *run) caller() string { return r.thread.CallFrame(1).Pos.String() }

// nameList reads a name, an address, or a list of them.
func nameList(v starlark.Value) ([]string, error) {
	one := func(v starlark.Value) (string, error) {
		switch v := v.(type) {
		case starlark.String:
			if v == "" {
				return "", fmt.Errorf("a name is empty")
			}
			return string(v), nil
		case starlark.Int:
			if n, ok := v.Uint64(); ok {
				return fmt.Sprintf("%#x", n), nil
			}
		}
		return "", fmt.Errorf("a name is a string, and an address a number, not %s", v.Type())
	}
	list, isList := v.(starlark.Iterable)
	if _, isString := v.(starlark.String); isString || !isList {
		n, err := one(v)
		return []string{n}, err
	}
	var out []string
	it := list.Iterate()
	defer it.Done()
	var x starlark.Value
	for it.Next(&x) {
		n, err := one(x)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the list of names is empty")
	}
	return out, nil
}

// splitLine reads FILE:LINE.
func splitLine(s string) (file string, line int, err error) {
	i := strings.LastIndexByte(s, ':')
	if i > 0 {
		line, err = strconv.Atoi(s[i+1:])
	}
	if i <= 0 || err != nil || line <= 0 || path.Base(s[:i]) == "." {
		return "", 0, fmt.Errorf("a line is named FILE:LINE, not %q", s)
	}
	return s[:i], line, nil
}

// onSyscall is on_syscall.
func (r *run) onSyscall() *starlark.Builtin {
	return r.hook("on_syscall", func(_ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) error {
		var what starlark.Value
		var h syscallHook
		if err := starlark.UnpackArgs("on_syscall", args, kwargs, "name", &what, "f", &h.f, "enter?", &h.enter); err != nil {
			return err
		}
		if what != starlark.None {
			names, err := nameList(what)
			if err != nil {
				return fmt.Errorf("on_syscall: %w", err)
			}
			h.numbers = map[int64]bool{}
			for _, n := range names {
				nr, ok := abi.Number(n)
				if !ok {
					return fmt.Errorf("on_syscall: there is no system call %s", n)
				}
				h.numbers[nr] = true
			}
		}
		r.hooks.syscalls = append(r.hooks.syscalls, h)
		return nil
	})
}

// wants reports whether the hook is for a number.
func (h *syscallHook) wants(nr int64) bool { return h.numbers == nil || h.numbers[nr] }

// onAccess is on_access.
func (r *run) onAccess() *starlark.Builtin {
	return r.hook("on_access", func(_ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) error {
		var what starlark.Value
		h := &accessHook{at: r.caller()}
		kind := "rw"
		if err := starlark.UnpackArgs("on_access", args, kwargs, "what", &what, "f", &h.f, "kind?", &kind); err != nil {
			return err
		}
		h.load, h.store = strings.Contains(kind, "r"), strings.Contains(kind, "w")
		if strings.Trim(kind, "rw") != "" || kind == "" {
			return fmt.Errorf("on_access: kind is \"r\", \"w\" or \"rw\", not %q", kind)
		}
		switch what := what.(type) {
		case starlark.String:
			h.expr = string(what)
		case starlark.Tuple:
			if err := starlark.UnpackPositionalArgs("on_access: the range", what, nil, 2, new(starlark.Int), new(starlark.Int)); err != nil {
				return err
			}
			var ok, also bool
			h.start, ok = what[0].(starlark.Int).Uint64()
			h.end, also = what[1].(starlark.Int).Uint64()
			if !ok || !also || h.end <= h.start {
				return fmt.Errorf("on_access: a range is (START, END) with START below END")
			}
		case *rangeSet:
			what.hooks = append(what.hooks, h)
			return nil
		default:
			return fmt.Errorf("on_access: the first argument is an expression, a range (START, END), or ranges()")
		}
		r.hooks.accesses = append(r.hooks.accesses, h)
		return nil
	})
}

// onPlain makes on_signal and on_end.
func (r *run) onPlain(name string, list *[]starlark.Callable) *starlark.Builtin {
	return r.hook(name, func(_ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) error {
		var f starlark.Callable
		if err := starlark.UnpackArgs(name, args, kwargs, "f", &f); err != nil {
			return err
		}
		*list = append(*list, f)
		return nil
	})
}
