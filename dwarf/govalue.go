package dwarf

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
)

// Values of Go programs behind the methods that Value has for all languages, and in
// expressions: members, elements, keys of maps, package variables. How a Go variable is
// read is in govar.go, how it is written in goprint.go, and how a map is gone through
// in gomap.go.

// goVar returns the value as a variable of Go; nil when it is none.
func (v Value) goVar() *goVar {
	if v.golang == nil || v.env == nil {
		return nil
	}
	var out *goVar
	switch addr, ok := v.Address(); {
	case v.err != nil:
		out = newGoVar(v.env, v.Name, 0, v.golang, processMemory{v.env})
		out.err = v.err
	case ok:
		out = newGoVar(v.env, v.Name, addr, v.golang, processMemory{v.env})
	default:
		out = newGoVar(v.env, v.Name, valueBase, v.golang, valueMemory{v})
	}
	return out
}

// value returns a variable as a value; its name is the variable's.
func (v *goVar) value() Value {
	out := Value{Name: v.name, env: v.env, golang: v.typ, err: v.err}
	if off := v.typ.Common().Offset; off != 0 && !isMade(v.typ) {
		out.typ = v.env.Module.typeAt(off)
	} else {
		out.typ = &Type{m: v.env.Module, size: sizeOf(v.typ), name: goTypeName(v.typ), golang: true}
	}
	switch mem := v.mem.(type) {
	case valueMemory:
		out.pieces, out.off = mem.v.pieces, mem.v.off+int64(v.addr-valueBase)
	default:
		out.pieces = []piece{{place: inMemory, addr: v.addr}}
		if v.addr == 0 && v.err == nil {
			out.err = memoryError{}
		}
	}
	return out
}

// isMade reports whether no entry of the file describes a type.
func isMade(t godwarf.Type) bool {
	switch t := t.(type) {
	case *godwarf.PtrType:
		return t.Offset == 0
	case *godwarf.ArrayType:
		return t.Offset == 0
	}
	return false
}

// goText writes the value as dlv does, on one line.
func (v Value) goText() string {
	g := v.goVar()
	g.load(goFull)
	return g.oneLine()
}

// goCount is NumChildren for Go: an interface has what is in it, a function value
// the variables that it captured.
func (v Value) goCount() (named, indexed int) {
	g := v.goVar()
	if g.err != nil || g.addr == 0 {
		return 0, 0
	}
	switch g.kind {
	case reflect.Slice, reflect.Array:
		return 0, int(min(max(g.length, 0), 1<<31-1))
	case reflect.Map:
		g.mapHeader()
		if g.err != nil {
			return 0, 0
		}
		return 0, int(min(max(g.length, 0), 1<<31-1))
	case reflect.Pointer:
		d := g.deref()
		if d.addr == 0 || d.kind == reflect.Invalid || g.err != nil {
			return 0, 0
		}
		if t, ok := d.real.(*godwarf.StructType); ok {
			return len(t.Field), 0
		}
		return 1, 0
	default:
		return len(g.members()), 0
	}
}

// members returns a struct's fields, what is in an interface, what a function
// captured, the parts of a channel.
func (v *goVar) members() []*goVar {
	switch v.kind { //nolint:exhaustive // the others have none
	case reflect.Struct:
		t, _ := v.real.(*godwarf.StructType)
		if t == nil {
			return nil
		}
		out := make([]*goVar, 0, len(t.Field))
		for _, f := range t.Field {
			out = append(out, v.field(f))
		}
		return out
	case reflect.Interface:
		data, isNil := v.dynamicValue()
		if isNil || v.err != nil {
			return nil
		}
		return []*goVar{data}
	case reflect.Func, reflect.Chan:
		v.load(goConfig{fields: -1, depth: 0})
		return v.children
	}
	return nil
}

// maxMapWalk bounds the buckets or groups that are looked at for a part of a map.
const maxMapWalk = 1 << 18

// goNumber is Uint for Go: numbers, and what is one pointer.
func (v Value) goNumber() (uint64, error) {
	g := v.goVar()
	switch g.kind { //nolint:exhaustive // the others are no numbers
	case reflect.Int, reflect.Uint, reflect.Bool, reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func:
		return v.bitsOf()
	}
	return 0, errSize
}

// goChildren is Children for Go. Those of a map are named by their keys.
func (v Value) goChildren(start, end int) (out []Value) {
	g := v.goVar()
	if g.err != nil || g.addr == 0 {
		return nil
	}
	var list []*goVar
	switch g.kind {
	case reflect.Slice, reflect.Array:
		for i := start; i < end; i++ {
			c := g.at(int64(i))
			c.name = "[" + strconv.Itoa(i) + "]"
			out = append(out, c.value())
		}
		return out
	case reflect.Map:
		n := 0
		g.eachEntry(min(max(goFull.buckets, 100*end), maxMapWalk), func(key, value *goVar) bool {
			if n >= start {
				value.name = "[" + key.asKey() + "]"
				out = append(out, value.value())
			}
			n++
			return n < end
		})
		return out
	case reflect.Pointer:
		d := g.deref()
		if d.kind == reflect.Struct {
			list = d.members()
			break
		}
		d.name = "*" + v.Name
		list = []*goVar{d}
	default:
		list = g.members()
	}
	for i := start; i < min(end, len(list)); i++ {
		out = append(out, list[i].value())
	}
	return out
}

// asKey is a map's key as it is shown, without the interface that it may be in.
func (v *goVar) asKey() string {
	v.load(goFull)
	if v.kind == reflect.Interface && v.err == nil && len(v.children) == 1 {
		v = v.children[0]
	}
	return v.oneLine()
}

// goMember is v.name, through pointers and interfaces, and in embedded structs.
func (x *evalState) goMember(v Value, name string) Value {
	g := v.goVar()
	for range maxChain {
		x.check(g.err)
		if g.kind == reflect.Pointer {
			g = g.deref()
			continue
		}
		if g.kind != reflect.Interface {
			break
		}
		data, isNil := g.dynamicValue()
		x.check(g.err)
		if name == "data" && !isNil {
			return data.value()
		}
		if isNil {
			x.fail("%s is nil", v.Name)
		}
		g = data
	}
	if g.addr == 0 {
		x.fail("%s is nil", v.Name)
	}
	found := g.find(name, 0)
	if found == nil {
		x.fail("there is no member %s", name)
	}
	x.check(found.err)
	return found.value()
}

// find looks for a member, and then in those that are embedded.
func (v *goVar) find(name string, depth int) *goVar {
	if v.kind == reflect.Pointer {
		v = v.deref()
	}
	if depth > maxNesting || v.addr == 0 {
		return nil
	}
	for _, c := range v.members() {
		if c.name == name || strings.HasSuffix(c.name, "."+name) {
			return c
		}
	}
	t, ok := v.real.(*godwarf.StructType)
	if !ok {
		return nil
	}
	for _, f := range t.Field {
		if f.Embedded {
			if c := v.field(f).find(name, depth+1); c != nil {
				return c
			}
		}
	}
	return nil
}

// goIndex is v[i] for arrays, slices and strings, v[key] for maps.
func (x *evalState) goIndex(v, i Value) Value {
	g := v.goVar()
	if g.kind == reflect.Pointer {
		g = g.deref()
	}
	x.check(g.err)
	switch g.kind { //nolint:exhaustive // the others have no elements
	case reflect.Slice, reflect.Array, reflect.String:
		n := int64(x.number(x.rvalue(i)))
		if n < 0 || n >= g.length {
			x.fail("index %d is out of bounds: the length is %d", n, g.length)
		}
		e := g.at(n)
		e.name = fmt.Sprintf("%s[%d]", v.Name, n)
		return e.value()
	case reflect.Map:
		if i.golang != nil {
			return x.goKey(v, i.goText())
		}
		return x.goKey(v, strconv.FormatInt(int64(x.number(x.rvalue(i))), 10))
	}
	x.fail("%s has no elements", v.Name)
	return Value{}
}

// goKey is v[key] for a map, key being as it is shown.
func (x *evalState) goKey(v Value, want string) Value {
	g := v.goVar()
	if g.kind == reflect.Pointer {
		g = g.deref()
	}
	if g.kind != reflect.Map {
		x.fail("%s is no map", v.Name)
	}
	var found *goVar
	g.eachEntry(maxMapWalk, func(key, value *goVar) bool {
		if key.asKey() == want {
			found = value
		}
		return found == nil
	})
	x.check(g.err)
	if found == nil {
		x.fail("the map has no key %s", want)
	}
	found.name = v.Name + "[" + want + "]"
	return found.value()
}

// goDereference is *v.
func (x *evalState) goDereference(v Value) Value {
	g := v.goVar()
	x.check(g.err)
	d := g.deref()
	switch {
	case g.kind != reflect.Pointer:
		x.fail("%s is no pointer", v.Name)
	case d.kind == reflect.Invalid:
		x.fail("%s points to void", v.Name)
	case d.addr == 0:
		x.check(g.err)
		x.fail("%s is nil", v.Name)
	}
	d.name = "*" + v.Name
	return d.value()
}

// goGlobal finds a variable of the function's package, or of the package that the
// name is of.
func (x *evalState) goGlobal(name string) (Value, bool) {
	if x.scope == nil || !x.env.Module.isGo(x.scope.die) {
		return Value{}, false
	}
	if v, ok := x.env.global(packageOf(x.scope.Function) + "." + name); ok {
		return v, true
	}
	if x.peek() != "." || x.at+1 >= len(x.toks) || x.toks[x.at+1].kind != 'n' {
		return Value{}, false
	}
	v, ok := x.env.global(name + "." + x.toks[x.at+1].text)
	if ok {
		x.at += 2
	}
	return v, ok
}
