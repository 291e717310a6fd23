package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay/debug"
	"vplay/replay/x86"
)

// What a moment tells of the program: where it is, its frames and variables, its memory.

// methods are the attributes that are called.
var methods = map[string]func(m *moment, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error){
	"arg": (*moment).arg, "value": (*moment).value, "show": (*moment).show, "memory": (*moment).readMemory, "string": (*moment).readString,
	"u8": word("u8", 1), "u16": word("u16", 2), "u32": word("u32", 4), "u64": word("u64", 8),
	"backtrace": (*moment).backtrace, "place": (*moment).placeOf, "symbol": (*moment).symbolOf, "call": (*moment).callFunction, "unreferenced": (*moment).unreferenced,
}

// Bounds of what a callback gets at once.
const (
	maxMemory = 16 << 20 // bytes
	maxString = 1 << 20
	maxFrames = 1024
)

// names returns the names at the moment.
func (m *moment) names() *loader.Resolver { return m.r.view.at(m.r, m.v.Machine()) }

// locate returns what is known of an address.
func (m *moment) locate(addr uint64) loader.Location {
	m.names()
	return m.r.view.locate(addr)
}

// located returns what is known of the moment's place.
func (m *moment) located() (loader.Location, error) {
	if m.over {
		return loader.Location{}, errOver
	}
	return m.locate(m.place()), nil
}

func (m *moment) function() (starlark.Value, error) {
	l, err := m.located()
	return starlark.String(l.Function), err
}

func (m *moment) module() (starlark.Value, error) {
	l, err := m.located()
	return starlark.String(l.Module), err
}

func (m *moment) source() (starlark.Value, error) {
	l, err := m.located()
	return starlark.String(l.Source()), err
}

func (m *moment) location() (starlark.Value, error) {
	l, err := m.located()
	return starlark.String(locationText(&l)), err
}

// locationText writes function, module and source line, as far as known.
func locationText(l *loader.Location) string {
	if src := l.Source(); src != "" {
		return l.String() + " " + src
	}
	return l.String()
}

// placeOf is place(address): what is known of any address.
func (m *moment) placeOf(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	addr, err := oneAddress("place", args, kwargs)
	if err != nil {
		return nil, err
	}
	l := m.locate(addr)
	return frameValue(&l), nil
}

// symbolOf is symbol(address): the symbol that an address is in, with the offset, "" where none is known.
func (m *moment) symbolOf(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	addr, err := oneAddress("symbol", args, kwargs)
	if err != nil {
		return nil, err
	}
	return starlark.String(m.names().Symbol(addr)), nil
}

// frameValue is a place as a struct.
func frameValue(l *loader.Location) starlark.Value {
	return starlarkstruct.FromStringDict(starlark.String("place"), starlark.StringDict{
		"pc": starlark.MakeUint64(l.Addr), "function": starlark.String(l.Function), "module": starlark.String(l.Module),
		"source": starlark.String(l.Source()), "file": starlark.String(l.File), "line": starlark.MakeInt(l.Line), "text": starlark.String(locationText(l)),
	})
}

// stack returns the calls that led to the moment, innermost first; the first is where it is. n bounds the frames.
func (m *moment) stack(n int) []loader.Location {
	if m.problem != nil {
		return m.r.stackAt(m.v, m.problem, n)
	}
	regs := loader.Regs(&m.v.CPU().State)
	return debug.BacktraceOf(m.names(), &regs, n)
}

// caller is the place that the function was called from.
func (m *moment) caller() (starlark.Value, error) {
	if m.over {
		return nil, errOver
	}
	if m.kind == "call" && !m.inlined && !m.body { // at the first instruction the return address is on top of the stack
		var b [8]byte
		if m.v.ReadMemory(m.sp, b[:]) < len(b) {
			return starlark.None, nil
		}
		l := m.locate(binary.LittleEndian.Uint64(b[:]) - 1)
		return frameValue(&l), nil
	}
	if m.kind == "return" { // the program is there
		l := m.locate(m.pc - 1)
		return frameValue(&l), nil
	}
	frames := m.stack(2)
	if len(frames) < 2 {
		return starlark.None, nil
	}
	return frameValue(&frames[1]), nil
}

// backtrace is backtrace(n=32).
func (m *moment) backtrace(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	n := 32
	if err := starlark.UnpackArgs("backtrace", args, kwargs, "n?", &n); err != nil {
		return nil, err
	}
	var out []starlark.Value
	for _, l := range m.stack(min(n, maxFrames)) {
		out = append(out, frameValue(&l))
	}
	return starlark.NewList(out), nil
}

// registers are the general registers and rip by their names.
func (m *moment) registers() (starlark.Value, error) {
	if m.over {
		return nil, errOver
	}
	c := m.v.CPU()
	d := starlark.NewDict(len(checkpoint.RegNames) + 2)
	for i, name := range checkpoint.RegNames {
		if err := d.SetKey(starlark.String(name), starlark.MakeUint64(c.R[i])); err != nil {
			return nil, err
		}
	}
	if err := d.SetKey(starlark.String("rip"), starlark.MakeUint64(c.RIP)); err != nil {
		return nil, err
	}
	return d, d.SetKey(starlark.String("eflags"), starlark.MakeUint64(c.Flags()))
}

// arg is arg(n): the integer argument n of a call, from 0.
func (m *moment) arg(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var n int
	if err := starlark.UnpackArgs("arg", args, kwargs, "n", &n); err != nil {
		return nil, err
	}
	switch {
	case m.inlined:
		return nil, errors.New("arg: the function was inlined here, there are no arguments: value(\"NAME\") may know them")
	case n < 0 || n >= len(m.args):
		return nil, fmt.Errorf("arg: the first %d integer arguments are in registers, from 0; others are not known", len(m.args))
	}
	return starlark.MakeUint64(m.args[n]), nil
}

func oneAddress(name string, args starlark.Tuple, kwargs []starlark.Tuple) (uint64, error) {
	var a starlark.Int
	if err := starlark.UnpackArgs(name, args, kwargs, "address", &a); err != nil {
		return 0, err
	}
	addr, ok := a.Uint64()
	if !ok {
		return 0, fmt.Errorf("%s: %s is no address", name, a)
	}
	return addr, nil
}

// word makes u8 to u64: what is in memory at an address, None where it cannot be read.
func word(name string, n int) func(m *moment, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return func(m *moment, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		addr, err := oneAddress(name, args, kwargs)
		if err != nil {
			return nil, err
		}
		var b [8]byte
		if m.v.ReadMemory(addr, b[:n]) < n {
			return starlark.None, nil
		}
		return starlark.MakeUint64(binary.LittleEndian.Uint64(b[:])), nil
	}
}

// readMemory is memory(address, n): the bytes that can be read, n at most.
func (m *moment) readMemory(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a starlark.Int
	var n int
	if err := starlark.UnpackArgs("memory", args, kwargs, "address", &a, "n", &n); err != nil {
		return nil, err
	}
	addr, ok := a.Uint64()
	if !ok || n < 0 || n > maxMemory {
		return nil, fmt.Errorf("memory: an address, and 0 to %d bytes", maxMemory)
	}
	b := make([]byte, n)
	return starlark.Bytes(b[:m.v.ReadMemory(addr, b)]), nil
}

// readString is string(address, most=4096): the text up to a zero byte.
func (m *moment) readString(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var a starlark.Int
	most := 4096
	if err := starlark.UnpackArgs("string", args, kwargs, "address", &a, "most?", &most); err != nil {
		return nil, err
	}
	addr, ok := a.Uint64()
	if !ok || most < 0 || most > maxString {
		return nil, fmt.Errorf("string: an address, and 0 to %d bytes", maxString)
	}
	var out []byte
	var page [256]byte
	for len(out) < most {
		n := m.v.ReadMemory(addr+uint64(len(out)), page[:min(len(page), most-len(out))])
		if i := strings.IndexByte(string(page[:n]), 0); i >= 0 {
			return starlark.String(out) + starlark.String(page[:i]), nil
		}
		if out = append(out, page[:n]...); n < len(page) {
			break
		}
	}
	if len(out) == 0 && most > 0 {
		return starlark.None, nil
	}
	return starlark.String(out), nil
}

// envs returns frames in which expressions can be evaluated, frame of them at least if there are as many.
func (m *moment) envs(frame int) []*dwarf.Env {
	if len(m.frames) > frame || m.whole {
		return m.frames
	}
	res := m.names()
	st := &m.v.CPU().State
	regs := loader.Regs(st)
	n := frame + 2
	frames := res.Backtrace(&regs, n)
	m.whole = len(frames) < n
	m.frames = dwarf.Envs(frames, &m.r.view.memory)
	for _, e := range m.frames {
		equip(e, res, st)
	}
	return m.frames
}

// equip gives a frame what it needs beyond its general registers. Vector registers are those of the innermost frame, as gdb has it.
func equip(e *dwarf.Env, res *loader.Resolver, st *x86.State) {
	e.Vector = loader.Vector(st)
	e.TLS = func(m *dwarf.Module, offset uint64) (uint64, bool) { return res.ThreadLocal(m, st.FSBase, offset) }
	e.Symbolize = res.Symbol
}

// evaluate evaluates an expression of the program's language in a frame, or of what is global in another module.
func (m *moment) evaluate(expr string, frame int, c *diverted) (v dwarf.Value, err error) {
	envs := m.envs(frame)
	if frame < 0 || frame >= len(envs) {
		return v, fmt.Errorf("there is no frame %d", frame)
	}
	e := c.calling(envs[frame])
	if v, err = e.Eval(expr, 0); err == nil {
		if err = v.Err(); err == nil {
			return v, nil
		}
	}
	res := m.names()
	for _, mod := range res.Modules() {
		d := res.File(mod)
		if d == nil || d == e.Module || !d.HasLines() || c.d != nil { // what has called is not tried once more
			continue
		}
		g := *e
		g.Module, g.Bias, g.PC, g.Caller, g.Run = d, mod.Bias, mod.Bias, nil, nil
		if x, e := g.Eval(expr, -1); e == nil && x.Err() == nil {
			return x, nil
		}
	}
	return v, err
}

// calling returns a frame in which expressions may call functions.
func (c *diverted) calling(e *dwarf.Env) *dwarf.Env {
	out := *e
	out.Run, out.Mem = c, c
	out.Extern = c.m.symbol
	return &out
}

// expression reads the arguments of value and show, and evaluates the expression, whose value is as good as long as c is open.
func (m *moment) expression(name string, args starlark.Tuple, kwargs []starlark.Tuple, c *diverted) (v dwarf.Value, instead starlark.Value, err error) {
	var expr string
	frame := 0
	if err := starlark.UnpackArgs(name, args, kwargs, "expr", &expr, "frame?", &frame, "default?", &instead); err != nil {
		return v, nil, err
	}
	if frame < 0 || frame > maxFrames {
		return v, nil, fmt.Errorf("%s: frames are 0 to %d", name, maxFrames)
	}
	if v, err = m.evaluate(expr, frame, c); err == nil {
		return v, nil, nil
	}
	if instead != nil {
		return v, instead, nil
	}
	return v, nil, fmt.Errorf("%s: %s: %w (default=None gives None then)", name, expr, err)
}

// value is value(expr, frame=0, default): a number, or what show has for anything else.
func (m *moment) value(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	c := &diverted{m: m}
	defer c.close()
	v, instead, err := m.expression("value", args, kwargs, c)
	if err != nil || instead != nil {
		return instead, err
	}
	return valueOf(v), nil
}

// show is show(expr, frame=0, default): as debuggers print it.
func (m *moment) show(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	c := &diverted{m: m}
	defer c.close()
	v, instead, err := m.expression("show", args, kwargs, c)
	if err != nil || instead != nil {
		return instead, err
	}
	return starlark.String(v.String()), nil
}

// valueOf converts integers, pointers, enumerations, truth values and floating point numbers; all else is text.
func valueOf(v dwarf.Value) starlark.Value {
	text := v.String()
	if text == "true" || text == "false" {
		return starlark.Bool(text == "true")
	}
	n, err := v.Uint()
	if f, isNumber := strconv.ParseFloat(text, 64); isNumber == nil && !v.HasIntegers() && !v.IsPointer() {
		// The bits of a floating point number are not what it shows; an integer of Go is.
		if i, isInt := strconv.ParseInt(text, 10, 64); err != nil || isInt != nil || uint64(i) != n && strings.TrimPrefix(text, "-") == text {
			return starlark.Float(f)
		}
	}
	if err == nil {
		if size := v.Size(); strings.HasPrefix(text, "-") && size > 0 && size <= 8 {
			shift := 64 - 8*uint(size)
			return starlark.MakeInt64(int64(n<<shift) >> shift)
		}
		return starlark.MakeUint64(n)
	}
	return starlark.String(text)
}
