package dwarf

// The part of the expression parser that binds closest: prefix operators, casts, members
// and indices. What they are applied to, numbers and names, is in evalprimary.go, names of
// types in evaltype.go. Operators between two operands are in eval.go; what is different
// for Go's values is in govalue.go.

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
			if x.take("(") {
				v = x.method(v, name)
			} else {
				v = x.member(v, name)
			}
		case x.take("("):
			v = x.called(v, nil)
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
