package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/loader"
	"vplay/replay/analysis/taint"
	"vplay/replay/analysis/uninit"
	"vplay/replay/observe"
	"vplay/replay/x86"
)

// on_uninit: a script is called where the program uses bytes that it has never written. What is
// undefined is followed by package uninit for each instruction, which no script could.

// uninitHook is what on_uninit asks for.
type uninitHook struct {
	f       starlark.Callable
	place   *place // the functions that have models
	checker *uninit.Checker
	image   int
	view    *observe.View // of the present interval
	modeled func()        // has the checker told of functions that were found
}

// onUninit is on_uninit(f).
func (r *run) onUninit() *starlark.Builtin {
	return r.hook("on_uninit", func(_ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) error {
		h := &uninitHook{}
		if err := starlark.UnpackArgs("on_uninit", args, kwargs, "f", &h.f); err != nil {
			return err
		}
		if r.hooks.uninit != nil {
			return fmt.Errorf("on_uninit: it is asked for already")
		}
		h.place = &place{by: "on_uninit", kind: "model", names: uninit.Functions(), optional: true}
		h.checker = uninit.New(func(u *uninit.Report) { r.undefined(h, u) }, func() checkpoint.Position { return h.view.Position() })
		r.hooks.uninit = h
		return nil
	})
}

// observe has the checker see all that an interval executes.
func (h *uninitHook) observe(r *run, ob *observe.Observer, t *targets) {
	e := h.checker.Engine
	ob.Pending = &e.Pending
	start, event := ob.Start, ob.Event
	ob.Start = func(v *observe.View) {
		if image := r.imageOf(v.Machine().Interval()); image != h.image {
			h.image = image
			h.checker.Reset()
		}
		h.view = v
		h.know(t)
		e.Begin(v.Machine())
		if start != nil {
			start(v)
		}
	}
	ob.Instr = func(v *observe.View, in *x86.Inst) { e.Before(v.CPU(), in) }
	ob.Executed = func(v *observe.View, in *x86.Inst, x x86.Exit) { e.After(v.CPU(), in, x) }
	ob.Event = func(v *observe.View, ev *checkpoint.Event) {
		if event != nil {
			event(v, ev)
		}
		e.Event(v.Machine(), ev)
		if err := e.Err(); err != nil {
			v.Stop(err)
		}
	}
	mapped := ob.Mapped
	r.rec.Budget().Renew() // an interval, and each module's symbols, may take as much as a debugger's command
	ob.Mapped = func(v *observe.View) (addresses, functions []uint64) {
		r.rec.Budget().Renew()
		addresses, functions = mapped(v)
		h.know(t)
		return addresses, functions
	}
}

// know tells the checker where functions are.
func (h *uninitHook) know(t *targets) {
	for addr, l := range t.models {
		h.checker.SetFunction(addr, l)
	}
}

// uses are the names of the kinds of uses.
var uses = map[taint.UseKind]string{
	taint.Branch: "branch", taint.Target: "target", taint.Address: "address", taint.Argument: "argument", taint.Buffer: "buffer", taint.Condition: "string",
}

// undefined tells of a use.
func (r *run) undefined(h *uninitHook, u *uninit.Report) {
	m := &moment{kind: "uninit", use: u, text: useText(u), args: u.Args}
	r.tell(h.f, h.view, m)
}

// useText says what a use is.
func useText(u *uninit.Report) string {
	switch u.Kind {
	case taint.Branch:
		return "a conditional jump depends on undefined bytes"
	case taint.Target:
		return "where a jump or call goes depends on undefined bytes"
	case taint.Address:
		return "an address is made of undefined bytes"
	case taint.Argument:
		return fmt.Sprintf("argument %d of %s is undefined", u.Arg+1, abi.Name(u.NR))
	case taint.Buffer:
		return fmt.Sprintf("bytes %d to %d of what argument %d of %s points to are undefined", u.From, u.To-1, u.Arg+1, abi.Name(u.NR))
	default:
		if u.Arg > 0 {
			return fmt.Sprintf("argument %d of %s is undefined", u.Arg, u.Function)
		}
		return fmt.Sprintf("%s looks at undefined bytes", u.Function)
	}
}

// origins are the names of the kinds of origins.
var origins = map[uninit.OriginKind]string{uninit.Heap: "heap", uninit.Grown: "realloc", uninit.Stack: "stack"}

// origin is the attribute of where undefined bytes came to be; None where that is not known.
func (m *moment) origin() (starlark.Value, error) {
	o := &m.use.Origin
	if o.Kind == uninit.Unknown {
		return starlark.None, nil
	}
	fields := starlark.StringDict{
		"kind": starlark.String(origins[o.Kind]), "address": starlark.MakeUint64(o.Addr), "size": starlark.MakeUint64(o.Size),
		"position": starlark.None,
	}
	pc := o.PC
	if o.Kind != uninit.Stack {
		pc-- // the call, not what comes behind it
		fields["position"] = starlark.String(o.Position.String())
	}
	var l loader.Location
	if m.over {
		return nil, errOver
	}
	l = m.locate(pc)
	fields["text"] = starlark.String(locationText(&l))
	fields["function"] = starlark.String(l.Function)
	return starlarkstruct.FromStringDict(starlark.String("origin"), fields), nil
}
