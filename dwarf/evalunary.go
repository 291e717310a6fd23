package dwarf

import (
	"debug/dwarf"
	"slices"
	"strconv"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// The part of the expression parser that binds closest: prefix operators, casts,
// members, indices, numbers, names of variables, registers and types. Operators between
// two operands, and the conversions that C makes for them, are in eval.go; what is
// different for Go's values is in govalue.go. Also here: where the functions of a name
// begin, for breakpoints.

// unary parses prefix operators and casts.
func (x *evalState) unary() Value {
	x.enter()
	v := x.prefixed()
	x.depth--
	return v
}

func (x *evalState) prefixed() Value {
	switch x.peek() {
	case "-":
		x.at++
		v := x.rvalue(x.unary())
		if f, ok := x.isFloat(v); ok {
			return x.double(-f)
		}
		return x.apply("-", x.integer(0, typeInt), v)
	case "+":
		x.at++
		return x.rvalue(x.unary())
	case "~":
		x.at++
		return x.apply("^", x.unary(), x.integer(^uint64(0), typeInt))
	case "!":
		x.at++
		return x.boolean(!x.truth(x.unary()))
	case "*":
		x.at++
		return x.dereference(x.unary())
	case "&":
		x.at++
		v := x.unary()
		if t := v.typ.strip(); t != nil && t.Kind == KindReference {
			v = v.target()
		}
		p := x.pointerTo(v, v.typ)
		if v.golang != nil {
			p.golang = pointerTo(v.golang)
			t := *p.typ
			t.name, t.golang = p.golang.Common().Name, true
			p.typ = &t
		}
		return p
	case "(":
		start := x.at
		x.at++
		if t, ok := x.typeName(); ok && x.take(")") {
			return x.cast(x.unary(), t)
		}
		x.at = start
	}
	if x.at < len(x.toks) && x.toks[x.at].kind == 'n' && x.toks[x.at].text == "sizeof" {
		return x.sizeof()
	}
	return x.postfix()
}

// sizeof parses what stands behind sizeof.
func (x *evalState) sizeof() Value {
	x.at++
	start := x.at
	if x.take("(") {
		if t, ok := x.typeName(); ok && x.take(")") {
			return x.sizeOf(t)
		}
	}
	x.at = start
	return x.sizeOf(x.unary().typ)
}

func (x *evalState) sizeOf(t *Type) Value {
	n := t.byteSize(x.env)
	if n < 0 {
		x.check(errSize)
	}
	return x.integer(uint64(n), typeULong)
}

// dereference is *v.
func (x *evalState) dereference(v Value) Value {
	if v.golang != nil {
		return x.goDereference(v)
	}
	if t := v.typ.strip(); t != nil && t.Kind == KindFunction {
		return v
	}
	name := v.Name
	if c := v.referent().holder(0); c != nil && c.object != nil {
		x.check(c.object.err)
		return *c.object
	}
	v = x.rvalue(v)
	t := v.typ.strip()
	if t.Kind != KindPointer {
		x.fail("%s is no pointer", name)
	}
	if e := t.element(); e.strip() == nil || e.strip().Kind == KindUnknown {
		x.fail("%s points to void", name)
	}
	out := v.target()
	x.check(out.err)
	out.Name = "*" + name
	return out
}

// cast is (t)v.
func (x *evalState) cast(v Value, t *Type) Value {
	s := t.strip()
	if s == nil {
		x.fail("a cast to void")
	}
	if s.Kind == KindStruct || s.Kind == KindUnion || s.Kind == KindArray {
		if _, ok := v.Address(); !ok {
			x.fail("only what is in memory is cast to %s", t.declare("", 0))
		}
		v.typ, v.golang = t, nil
		return v
	}
	v = x.rvalue(v)
	f, isFloat := x.isFloat(v)
	if s.Kind == KindBase && s.enc == encFloat {
		if !isFloat {
			f = x.toFloat(v)
		}
		if s.size == 4 {
			f = float64(float32(f))
		}
		return x.double(f)
	}
	n := x.number(v)
	if s.Kind == KindBase && s.enc == encBoolean {
		n = map[bool]uint64{true: 1}[x.truth(v)]
	}
	return x.integer(extend(n, uint64(max(s.byteSize(x.env), 0))*8, s.isSigned()), t)
}

// postfix parses members, indices, and what they are of.
func (x *evalState) postfix() Value {
	v := x.primary()
	for {
		switch {
		case x.take("["):
			if v.golang != nil && x.at < len(x.toks) && x.toks[x.at].kind == 's' {
				v = x.goKey(v, x.toks[x.at].text)
				x.at++
			} else {
				v = x.indexed(v, x.conditional())
			}
			x.need("]")
		case x.take("."), x.take("->"):
			if x.at >= len(x.toks) || x.toks[x.at].kind != 'n' {
				x.fail("a member's name is missing")
			}
			name := x.toks[x.at].text
			x.at++
			if x.peek() == "(" {
				x.take("(")
				x.need(")")
				v = x.method(v, name)
			} else {
				v = x.member(v, name)
			}
		case x.peek() == "(":
			x.fail("functions are not called")
		default:
			return v
		}
	}
}

// indexed is v[i].
func (x *evalState) indexed(v, i Value) Value {
	if v.golang != nil {
		return x.goIndex(v, i)
	}
	if t := v.typ.strip(); t != nil && t.Kind == KindReference {
		v = v.target()
	}
	if t := v.typ.strip(); t != nil && t.Kind == KindArray {
		x.check(v.err)
		out := v.index(int64(x.number(x.rvalue(i))))
		x.check(out.err)
		return out
	}
	if c := v.holder(0); c != nil && c.array {
		return x.held(c, int(x.number(x.rvalue(i))))
	}
	return x.dereference(x.apply("+", v, i))
}

// held is what a container holds at an index.
func (x *evalState) held(c *container, i int) Value {
	if i < 0 || i >= c.n {
		x.fail("%d is no index: there are %s", i, numElements(c.n))
	}
	list := c.children(i, 1)
	if len(list) == 0 {
		x.check(errSize)
	}
	x.check(list[0].err)
	return list[0]
}

// methods are those of containers that are understood, for they only look.
var methods = map[string]func(x *evalState, c *container) Value{
	"size":      func(x *evalState, c *container) Value { return x.integer(c.size(), typeULong) },
	"length":    func(x *evalState, c *container) Value { return x.integer(c.size(), typeULong) },
	"empty":     func(x *evalState, c *container) Value { return x.boolean(c.size() == 0) },
	"front":     func(x *evalState, c *container) Value { return x.held(c, 0) },
	"back":      func(x *evalState, c *container) Value { return x.held(c, c.n-1) },
	"get":       func(x *evalState, c *container) Value { return x.held(c, 0) },
	"value":     func(x *evalState, c *container) Value { return x.held(c, 0) },
	"has_value": func(x *evalState, c *container) Value { return x.boolean(c.n > 0) },
}

// size is how many values or characters a container holds.
func (c *container) size() uint64 {
	if c.text != nil {
		return c.length
	}
	return uint64(c.n)
}

// method is v.name(), or v->name().
func (x *evalState) method(v Value, name string) Value {
	v = v.referent()
	if t := v.typ.strip(); t != nil && t.Kind == KindPointer {
		v = v.target()
	}
	x.check(v.err)
	c := v.holder(0)
	f, ok := methods[name]
	if c == nil || !ok {
		x.fail("functions are not called")
	}
	return f(x, c)
}

// holder is the container that a value is, or that its first base class is that is one.
func (v Value) holder(depth int) *container {
	if c := v.container(depth); c != nil {
		return c
	}
	t := v.typ.strip()
	if v.err != nil || t == nil || t.Kind != KindStruct || depth > maxNesting {
		return nil
	}
	t.load()
	for i := range t.fields {
		if f := &t.fields[i]; f.base {
			return v.member(f).holder(depth + 1)
		}
	}
	return nil
}

// referent is what a reference refers to; other values are themselves.
func (v Value) referent() Value {
	if t := v.typ.strip(); t != nil && t.Kind == KindReference {
		return v.target()
	}
	return v
}

// member is v.name, or v->name: as gdb, either works for both.
func (x *evalState) member(v Value, name string) Value {
	if v.golang != nil {
		return x.goMember(v, name)
	}
	for range maxChain {
		t := v.typ.strip()
		if t == nil || t.Kind != KindPointer && t.Kind != KindReference {
			break
		}
		v = v.target()
	}
	x.check(v.err)
	if out, ok := v.find(name); ok {
		x.check(out.err)
		return out
	}
	if c := v.holder(0); c != nil && c.object != nil {
		x.check(c.object.err)
		if out, ok := c.object.find(name); ok {
			x.check(out.err)
			return out
		}
	}
	x.fail("there is no member %s", name)
	return Value{}
}

// find looks for a member, in anonymous ones and base classes too.
func (v Value) find(name string) (Value, bool) {
	budget := maxFields // a damaged file can make a class its own base class, twice
	return v.findWithin(name, 0, &budget)
}

func (v Value) findWithin(name string, depth int, budget *int) (Value, bool) {
	t := v.typ.strip()
	if t == nil || t.Kind != KindStruct && t.Kind != KindUnion || depth > maxChain || *budget <= 0 {
		return Value{}, false
	}
	t.load()
	*budget -= len(t.fields)
	for i := range t.fields {
		if f := &t.fields[i]; f.name == name && !f.base && !f.isStatic {
			return v.member(f), true
		}
	}
	for i := range t.fields {
		if f := &t.fields[i]; f.base || f.name == "" {
			if out, ok := v.member(f).findWithin(name, depth+1, budget); ok {
				return out, true
			}
		}
	}
	return Value{}, false
}

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

// typeWords are those that type names of C are made of.
var typeWords = strings.Fields("unsigned signed long short int char float double _Bool bool void const volatile struct union enum class")

// typeName parses a type's name and stars; ok is false when it is none, and
// then nothing is certain about what was taken.
func (x *evalState) typeName() (t *Type, ok bool) {
	var base []string
	tag := ""
	for x.at < len(x.toks) && x.toks[x.at].kind == 'n' {
		w := x.toks[x.at].text
		switch {
		case w == "const" || w == "volatile":
		case w == "struct" || w == "union" || w == "enum" || w == "class":
			tag = w
		case slices.Contains(typeWords, w) || len(base) == 0:
			base = append(base, w)
		default:
			return nil, false
		}
		x.at++
	}
	if len(base) == 0 {
		return nil, false
	}
	if t, ok = x.namedType(base, tag); !ok {
		return nil, false
	}
	for x.at < len(x.toks) {
		switch {
		case x.take("*"):
			t = x.pointerType(t)
		case x.toks[x.at].kind == 'n' && (x.toks[x.at].text == "const" || x.toks[x.at].text == "volatile"):
			x.at++
		default:
			return t, true
		}
	}
	return t, true
}

// namedType finds a type by the words of its name.
func (x *evalState) namedType(base []string, tag string) (*Type, bool) {
	if tag == "" {
		if t, ok := basicType(base); ok {
			return t, true
		}
	}
	if len(base) != 1 {
		return nil, false
	}
	m := x.env.Module
	if m == nil || m.data == nil || x.isVariable(base[0]) && tag == "" {
		return nil, false
	}
	for _, off := range m.names().types[strings.TrimPrefix(base[0], "::")] {
		t := m.typeAt(off)
		isTag := t.Kind == KindStruct || t.Kind == KindUnion || t.Kind == KindEnum
		if tag == "" && isTag && m.isC(m.headerOf(off)) || tag != "" && (!isTag || t.word != tag && m.isC(m.headerOf(off))) {
			continue
		}
		return t, true
	}
	return nil, false
}

// isVariable reports whether a name is one in the scope, which hides types.
func (x *evalState) isVariable(name string) bool {
	if x.scope == nil {
		return false
	}
	_, ok := x.scope.lookup(name)
	return ok
}

// basicType is a type of C made of several words in any order.
func basicType(base []string) (*Type, bool) {
	count := map[string]int{}
	for _, w := range base {
		count[w]++
	}
	name := strings.Join(base, " ")
	sized := func(size, enc int64) (*Type, bool) {
		return &Type{Kind: KindBase, name: name, size: size, enc: enc}, true
	}
	unsigned := count["unsigned"] > 0
	pick := func(size int64) (*Type, bool) {
		if unsigned {
			return sized(size, encUnsigned)
		}
		return sized(size, encSigned)
	}
	for _, w := range base {
		if !slices.Contains(typeWords, w) {
			return nil, false
		}
	}
	switch {
	case count["void"] > 0:
		return nil, len(base) == 1
	case count["_Bool"]+count["bool"] > 0:
		return sized(1, encBoolean)
	case count["float"] > 0:
		return sized(4, encFloat)
	case count["double"] > 0 && count["long"] > 0:
		return sized(16, encFloat)
	case count["double"] > 0:
		return sized(8, encFloat)
	case count["char"] > 0 && unsigned:
		return sized(1, encUnsignedChar)
	case count["char"] > 0:
		return sized(1, encSignedChar)
	case count["short"] > 0:
		return pick(2)
	case count["long"] > 0:
		return pick(8)
	}
	return pick(4)
}

// Functions returns the addresses of the first instructions of the functions of
// that name, also of those in namespaces and classes by their full name.
func (m *Module) Functions(name string) (out []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if m.data != nil {
		for _, off := range m.names().functions[name] {
			if e := m.entryAt(off); e != nil {
				if rs, err := m.data.Ranges(e); err == nil && len(rs) > 0 {
					out = append(out, entryPC(e, rs))
				}
			}
		}
	}
	if len(out) == 0 {
		if addr, ok := m.Lookup(name); ok {
			out = append(out, addr)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// entryPC is where a function is entered: DW_AT_entry_pc, or the start of its
// first range.
func entryPC(e *dwarf.Entry, ranges [][2]uint64) uint64 {
	switch pc := e.Val(dwarf.AttrEntrypc).(type) {
	case uint64:
		return pc
	case int64: // from the start of the function (DWARF 5, 2.18)
		return ranges[0][0] + uint64(pc)
	}
	return ranges[0][0]
}
