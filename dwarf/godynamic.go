package dwarf

import (
	"debug/dwarf"
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// What is known only when the program runs: the type of what is in an interface,
// the code and the captured variables of a function value, type arguments.

var (
	errInterface = errors.New("invalid interface type")
	errNoType    = errors.New("could not resolve interface type")
)

// dynamic reads what is in an interface: a pair of pointers, to its type and to it
// (runtime.eface), or to a table that has the type (runtime.iface).
func (l *goLoad) dynamic(v *goVar, level int) {
	data, isNil := v.dynamicValue()
	if v.err != nil {
		return
	}
	v.children = []*goVar{data}
	if isNil || level <= l.depth {
		l.load(data, level)
	} else {
		data.onlyAddr = true
	}
}

// dynamicValue returns what is in an interface.
func (v *goVar) dynamicValue() (value *goVar, isNil bool) {
	it, ok := v.real.(*godwarf.InterfaceType)
	if !ok {
		v.err = errInterface
		return nil, false
	}
	s := newGoVar(v.env, v.name, v.addr, it.Type, v.mem)
	data, desc := s.named("data"), s.named("_type")
	if tab := s.named("tab"); tab != nil {
		if tab = tab.deref(); tab.addr == 0 {
			isNil = true
		} else if desc = tab.named("Type"); desc == nil {
			desc = tab.named("_type")
		}
		v.err = tab.err
	}
	switch {
	case v.err != nil:
		return nil, false
	case data == nil || desc == nil && !isNil:
		v.err = errInterface
		return nil, false
	}
	var at uint64
	if !isNil {
		at = desc.word()
		v.err = desc.err
		isNil = at == 0
	}
	switch {
	case v.err != nil:
		return nil, false
	case isNil:
		out := data.deref()
		v.err = data.err
		return out, true
	}
	t, direct, err := v.env.runtimeType(at)
	if err != nil {
		v.err = err
		return nil, false
	}
	if _, isPointer := underlying(t).(*godwarf.PtrType); direct || isPointer {
		return newGoVar(v.env, "data", data.addr, t, data.mem), false
	}
	out := newGoVar(v.env, "data", data.addr, pointerTo(t), data.mem).deref()
	out.name = "data"
	return out, false
}

// runtimeType returns the type that the program describes at an address. direct
// says that an interface holds such a value itself, not its address.
func (e *Env) runtimeType(at uint64) (t godwarf.Type, direct bool, err error) {
	p := e.Module.goProgram()
	start, ok := e.typesStart()
	if !ok {
		return nil, false, errNoType
	}
	off, ok := p.indexed().runtime[at-start]
	if !ok {
		return nil, false, errNoType
	}
	if t, err = p.typeAt(off); err != nil {
		return nil, false, fmt.Errorf("%w: %w", errInterface, err)
	}
	return t, e.isDirect(at, t), nil
}

// directFlag is abi.TFlagDirectIface (Go 1.26) and abi.KindDirectIface (before).
const directFlag = 1 << 5

// isDirect reads whether an interface holds values of the type t itself, which the
// program describes at an address. Where the description cannot be read, what is
// one pointer counts as such.
func (e *Env) isDirect(at uint64, t godwarf.Type) bool {
	p := e.Module.goProgram()
	for _, name := range runtimeTypes[:2] {
		off, ok := p.indexed().names[name]
		if !ok {
			continue
		}
		if dt, err := p.typeAt(off); err == nil {
			d := newGoVar(e, "", at, dt, processMemory{e})
			known := false
			for _, name := range []string{"TFlag", "Kind_", "kind"} {
				if f := d.named(name); f != nil {
					n := f.uintAt(0, 1)
					if f.err == nil && n&directFlag != 0 {
						return true
					}
					known = known || f.err == nil
				}
			}
			if known {
				return false
			}
		}
	}
	return isPointerShaped(t)
}

// isPointerShaped reports whether a type is one pointer, or has just that in it.
func isPointerShaped(t godwarf.Type) bool {
	for range maxChain {
		switch u := underlying(t).(type) {
		case *godwarf.PtrType, *godwarf.MapType, *godwarf.ChanType, *godwarf.FuncType:
			return true
		case *godwarf.StructType:
			if len(u.Field) != 1 {
				return false
			}
			t = u.Field[0].Type
		case *godwarf.ArrayType:
			if u.Count != 1 {
				return false
			}
			t = u.Type
		default:
			return false
		}
	}
	return false
}

// typesStart returns the address of runtime.types: by its symbol, or where there
// are no symbols by the runtime's own variable.
func (e *Env) typesStart() (uint64, bool) {
	if at, ok := e.Module.goProgram().typesStart(); ok {
		return at + e.Bias, true
	}
	md, ok := e.global("runtime.firstmoduledata")
	if !ok {
		return 0, false
	}
	v := md.goVar()
	if v == nil {
		return 0, false
	}
	f := v.named("types")
	if f == nil {
		return 0, false
	}
	n := f.word()
	return n, f.err == nil
}

// typeArgument returns the type that a type parameter stands for: the function's
// dictionary has the types that it was instantiated with.
func (e *Env) typeArgument(t godwarf.Type, dictionary uint64) godwarf.Type {
	p, ok := t.(*godwarf.ParametricType)
	if !ok {
		return t
	}
	if dictionary != 0 && p.DictIndex >= 0 && p.DictIndex < 1<<20 {
		if at, ok := load(e.Mem, dictionary+uint64(p.DictIndex)*8); ok {
			if arg, _, err := e.runtimeType(at); err == nil {
				return arg
			}
		}
	}
	return p.Type
}

// function reads a function value: the function's name, and its captured variables.
func (l *goLoad) function(v *goVar, level int) {
	closure := v.word()
	if v.err != nil || closure == 0 {
		return
	}
	code := newGoVar(v.env, "", closure, v.real, v.mem.behind())
	if v.base, v.err = code.word(), code.err; v.err != nil {
		return
	}
	f := v.env.Module.functionAt(v.base - v.env.Bias)
	if f == nil {
		v.err = fmt.Errorf("could not find function for %#x", v.base)
		return
	}
	v.text = f.name
	t := v.env.Module.goProgram().closure(f.offset)
	v.length = int64(len(t.Field))
	if level <= l.depth {
		c := newGoVar(v.env, "", closure, t, v.mem.behind())
		l.load(c, level)
		v.children = c.children
	}
}

// goTypeOf reads the type of a variable's entry.
func (p *goProgram) goTypeOf(e godwarf.Entry) (godwarf.Type, error) {
	off, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return nil, errGoType
	}
	return p.typeAt(off)
}
