package script

import (
	"fmt"
	"path"
	"slices"

	"go.starlark.net/lib/json"
	"go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
)

// The names that a script has beyond the language's own. What a moment has is in moment.go.

// predeclaredNames are all of them.
var predeclaredNames = []string{
	"args", "recording", "on_call", "on_return", "on_line", "on_exec", "on_syscall", "on_signal", "on_access", "on_uninit", "on_heap", "on_end", "races", "ranges",
	"row", "hex", "signed", "struct", "json", "math",
}

func isPredeclared(name string) bool { return slices.Contains(predeclaredNames, name) }

// predeclared are their values.
func (r *run) predeclared() starlark.StringDict {
	var args []starlark.Value
	for _, a := range r.o.Args {
		args = append(args, starlark.String(a))
	}
	return starlark.StringDict{
		"args":       starlark.NewList(args),
		"recording":  r.recording(),
		"on_call":    r.onPlace("call"),
		"on_return":  r.onPlace("return"),
		"on_line":    r.onPlace("line"),
		"on_exec":    r.onPlace("exec"),
		"on_syscall": r.onSyscall(),
		"on_signal":  r.onPlain("on_signal", &r.hooks.signals),
		"on_access":  r.onAccess(),
		"on_heap":    r.onHeap(),
		"on_uninit":  r.onUninit(),
		"on_end":     r.onPlain("on_end", &r.hooks.end),
		"races":      r.racesBuiltin(),
		"ranges":     r.newRanges(),
		"row":        starlark.NewBuiltin("row", r.row),
		"hex":        starlark.NewBuiltin("hex", hexadecimal),
		"signed":     starlark.NewBuiltin("signed", signed),
		"struct":     starlark.NewBuiltin("struct", starlarkstruct.Make),
		"json":       json.Module,
		"math":       math.Module,
	}
}

// recording is what a script knows of the recording before it is replayed.
func (r *run) recording() starlark.Value {
	p, _ := r.rec.Process(r.o.PID)
	e := r.rec.Ending(r.o.PID)
	var args []starlark.Value
	for _, a := range p.Args {
		args = append(args, starlark.String(a))
	}
	return starlarkstruct.FromStringDict(starlark.String("recording"), starlark.StringDict{
		"file":      starlark.String(r.rec.File()),
		"name":      starlark.String(path.Base(r.rec.File())),
		"pid":       starlark.MakeInt(int(r.o.PID)),
		"program":   starlark.String(p.Program),
		"arguments": starlark.NewList(args),
		"crashed":   starlark.Bool(e.Kind == checkpoint.EndCrash),
		"ended":     starlark.String(ending(e)),
		"whole":     starlark.Bool(r.whole),
	})
}

// ending says how a process ended.
func ending(e checkpoint.Ending) string {
	switch e.Kind {
	case checkpoint.EndCrash:
		return "killed by " + abi.Signal(e.Signo).String()
	case checkpoint.EndExit:
		return fmt.Sprintf("exited with %d", e.ExitCode)
	default:
		return "was still running"
	}
}

// row hands named values over.
func (r *run) row(_ *starlark.Thread, fn *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("row: values have names: row(count=3)")
	}
	fields := make([]Field, 0, len(kwargs))
	budget := maxRow
	for _, kv := range kwargs {
		v, err := plain(kv[1], 0, &budget)
		if err != nil {
			return nil, fmt.Errorf("row: %s: %w", kv[0], err)
		}
		fields = append(fields, Field{string(kv[0].(starlark.String)), v})
	}
	if r.o.Row != nil {
		r.o.Row(fields)
	}
	return starlark.None, nil
}

// maxRow is how many values a row has, and maxDepth how deep they are.
const (
	maxRow   = 1 << 20
	maxDepth = 64
)

// plain makes a value one that encoding/json can write.
func plain(v starlark.Value, depth int, budget *int) (any, error) {
	if *budget--; *budget < 0 || depth > maxDepth {
		return nil, fmt.Errorf("it is too large")
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.Int:
		return v.BigInt(), nil
	case starlark.Float:
		return float64(v), nil
	case starlark.String:
		return string(v), nil
	case starlark.Bytes:
		return fmt.Sprintf("%x", string(v)), nil
	case starlark.IterableMapping:
		out := map[string]any{}
		for _, kv := range v.Items() {
			k, ok := starlark.AsString(kv[0])
			if !ok {
				k = kv[0].String()
			}
			x, err := plain(kv[1], depth+1, budget)
			if err != nil {
				return nil, err
			}
			out[k] = x
		}
		return out, nil
	case starlark.Iterable:
		out := []any{}
		it := v.Iterate()
		defer it.Done()
		var x starlark.Value
		for it.Next(&x) {
			y, err := plain(x, depth+1, budget)
			if err != nil {
				return nil, err
			}
			out = append(out, y)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s is no plain value", v.Type())
}

// hexadecimal is hex(n).
func hexadecimal(_ *starlark.Thread, fn *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var n starlark.Int
	if err := starlark.UnpackPositionalArgs("hex", args, kwargs, 1, &n); err != nil {
		return nil, err
	}
	return starlark.String(fmt.Sprintf("%#x", n.BigInt())), nil
}

// signed is signed(n, bits=64): the number that the lowest bits are in two's complement.
func signed(_ *starlark.Thread, fn *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var n starlark.Int
	bits := 64
	if err := starlark.UnpackArgs("signed", args, kwargs, "n", &n, "bits?", &bits); err != nil {
		return nil, err
	}
	if bits < 1 || bits > 64 {
		return nil, fmt.Errorf("signed: bits is 1 to 64")
	}
	v := n.And(starlark.MakeUint64(^uint64(0)))
	u, _ := v.Uint64()
	return starlark.MakeInt64(int64(u<<(64-bits)) >> (64 - bits)), nil
}
