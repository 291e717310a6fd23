package dwarf

import (
	"strconv"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// What an expression is made of: numbers, characters, parentheses, names of variables,
// functions, enumerators and registers.

// primary parses a name, number, character or parenthesis.
func (x *evalState) primary() Value {
	if x.take("(") {
		v := x.conditional()
		x.need(")")
		return v
	}
	if x.at >= len(x.toks) {
		x.fail("something is missing at the end")
	}
	t := x.toks[x.at]
	x.at++
	switch t.kind {
	case 'n':
		return x.name(t.text)
	case '0':
		return x.literal(t.text)
	case 'c':
		return x.integer(uint64(int64(int8(t.char))), typeChar)
	case 's':
		return x.text(t.text)
	}
	x.fail("%q is not understood", t.text)
	return Value{}
}

// literal is a number, with C's suffixes.
func (x *evalState) literal(s string) Value {
	digits := strings.TrimRight(s, "uUlL")
	suffix := strings.ToLower(s[len(digits):])
	n, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		f, err := strconv.ParseFloat(strings.TrimRight(digits, "fF"), 64)
		if err != nil {
			x.fail("%s is no number", s)
		}
		return x.double(f)
	}
	unsigned, long := strings.Contains(suffix, "u"), strings.Contains(suffix, "l")
	decimal := s[0] != '0'
	switch {
	case !unsigned && !long && n < 1<<31:
		return x.integer(n, typeInt)
	case !long && n < 1<<32 && (unsigned || !decimal):
		return x.integer(n, typeUInt)
	case !unsigned && n < 1<<63:
		return x.integer(n, typeLong)
	}
	return x.integer(n, typeULong)
}

// registerAliases are gdb's own names of registers.
var registerAliases = map[string]int{"pc": RIP, "sp": RSP, "fp": RBP}

// registerNumber returns the number of a general register by its name.
func registerNumber(name string) (n int, ok bool) {
	if n, ok = registerAliases[name]; !ok {
		n, ok = regnum.AMD64NameToDwarf[name]
	}
	return n, ok && n < numRegs
}

// name is a variable, an enumerator, a register or a function.
func (x *evalState) name(s string) Value {
	if reg, ok := strings.CutPrefix(s, "$"); ok {
		n, ok := registerNumber(reg)
		if !ok {
			x.fail("there is no register %s", s)
		}
		v, ok := x.env.Regs.get(uint64(n))
		if !ok {
			x.fail("%s is not known in this frame", s)
		}
		out := x.integer(v, typeLong)
		out.Name = s
		return out
	}
	if s == "true" || s == "false" {
		return x.boolean(s == "true")
	}
	if s == "nullptr" || s == "NULL" {
		return x.integer(0, x.pointerType(nil))
	}
	s = strings.TrimPrefix(s, "::")
	if x.scope != nil {
		if v, ok := x.scope.lookup(s); ok {
			return v
		}
		if this, ok := x.scope.lookup("this"); ok {
			if v, ok := this.target().find(s); ok {
				return v
			}
		}
	}
	if v, ok := x.env.global(s); ok {
		return v
	}
	if v, ok := x.goGlobal(s); ok {
		return v
	}
	if v, ok := x.enumerator(s); ok {
		return v
	}
	if m := x.env.Module; m != nil {
		if addr, ok := m.Lookup(s); ok {
			return Value{Name: s, env: x.env, typ: x.functionType(s), pieces: []piece{{place: inMemory, addr: addr + x.env.Bias}}}
		}
	}
	if x.peek() == "(" && x.env.Run != nil {
		if v, ok := x.function(s); ok {
			return v
		}
	}
	x.fail("there is no %s here", s)
	return Value{}
}

// functionType is the type of a function by its name.
func (x *evalState) functionType(name string) *Type {
	m := x.env.Module
	for _, off := range m.names().functions[name] {
		if t := m.typeAt(off); t.Kind == KindFunction {
			return t
		}
	}
	return typeCode
}

// enumerator looks a name up among the enumerations of the file.
func (x *evalState) enumerator(name string) (Value, bool) {
	m := x.env.Module
	if m == nil || m.data == nil {
		return Value{}, false
	}
	for _, off := range m.names().enums {
		t := m.typeAt(off)
		t.load()
		for _, e := range t.enums {
			if e.name == name {
				return x.integer(uint64(e.value), t), true
			}
		}
	}
	return Value{}, false
}
