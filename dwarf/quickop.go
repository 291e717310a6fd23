package dwarf

import (
	"slices"

	"vplay/dwarf/agentexpr"
)

// The operators of quick expressions (quick.go): the same grammar as in eval.go, evalunary.go
// and evalprimary.go, and the same conversions as in evalarith.go.

// conditional is what stands in parentheses. c ? a : b, of which both sides are evaluated
// elsewhere, has no quick form.
func (c *quickener) conditional() quickValue {
	c.x.enter()
	v := c.binary(0)
	c.x.depth--
	if c.x.peek() == "?" {
		c.give()
	}
	return v
}

func (c *quickener) binary(level int) quickValue {
	if level == len(levels) {
		return c.unary()
	}
	a := c.binary(level + 1)
	for {
		op := c.x.peek()
		if op == "" || !isOneOf(op, levels[level]) {
			return a
		}
		c.x.at++
		b := c.binary(level + 1)
		if op == "||" || op == "&&" {
			a = c.logic(op == "||", c.number(a), c.number(b))
		} else {
			a = c.apply(op, c.rvalue(a), c.rvalue(b))
		}
	}
}

// logic is || and &&, whose right side counts only when the left does not decide.
func (c *quickener) logic(or bool, a, b quickNode) quickValue {
	return quickValue{typ: typeInt, num: func(e *agentexpr.Builder) {
		a(e)
		isTrue := e.Jump(agentexpr.IfGoto)
		var isFalse func()
		if !or {
			isFalse = e.Jump(agentexpr.Goto)
			isTrue()
		}
		b(e)
		alsoTrue := e.Jump(agentexpr.IfGoto)
		if !or {
			isFalse()
		}
		e.Number(0)
		end := e.Jump(agentexpr.Goto)
		if or {
			isTrue()
		}
		alsoTrue()
		e.Number(1)
		end()
	}}
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// apply is a binary operator other than these.
func (c *quickener) apply(op string, a, b quickValue) quickValue {
	pa, pb := a.typ.strip().Kind == KindPointer, b.typ.strip().Kind == KindPointer
	if (pa || pb) && (op == "+" || op == "-") {
		return c.pointers(op, a, b, pa, pb)
	}
	c.width(a.typ)
	c.width(b.typ)
	t := promoted(a.typ, b.typ)
	if op == "<<" || op == ">>" {
		t = promoted(a.typ, typeInt)
	}
	bits, signed := int(t.size)*8, t.isSigned()
	x, y := extended(a.num, bits, signed), extended(b.num, bits, signed)
	if num := compared(op, x, y, signed); num != nil {
		return quickValue{typ: typeInt, num: num}
	}
	code, ok := arithmetic[op]
	if !ok {
		c.give()
	}
	if !signed && code.unsigned != 0 {
		code.op = code.unsigned
	}
	return quickValue{typ: t, num: extended(quickOperator(code.op, x, y), bits, signed)}
}

// arithmetic are the operators that compute; unsigned is for unsigned numbers, if that is another.
var arithmetic = map[string]struct{ op, unsigned byte }{
	"+": {agentexpr.Add, 0}, "-": {agentexpr.Sub, 0}, "*": {agentexpr.Mul, 0},
	"&": {agentexpr.BitAnd, 0}, "|": {agentexpr.BitOr, 0}, "^": {agentexpr.BitXor, 0},
	"<<": {agentexpr.Lsh, 0}, ">>": {agentexpr.RshSigned, agentexpr.RshUnsigned},
	"/": {agentexpr.DivSigned, agentexpr.DivUnsigned}, "%": {agentexpr.RemSigned, agentexpr.RemUnsigned},
}

// compared is a comparison; nil for other operators.
func compared(op string, x, y quickNode, signed bool) quickNode {
	less := byte(agentexpr.LessUnsigned)
	if signed {
		less = agentexpr.LessSigned
	}
	switch op {
	case "==":
		return quickOperator(agentexpr.Equal, x, y)
	case "!=":
		return not(quickOperator(agentexpr.Equal, x, y))
	case "<":
		return quickOperator(less, x, y)
	case ">":
		return quickOperator(less, y, x)
	case "<=":
		return not(quickOperator(less, y, x))
	case ">=":
		return not(quickOperator(less, x, y))
	}
	return nil
}

// not is 1 for 0, and 0 for all else.
func not(a quickNode) quickNode {
	return func(b *agentexpr.Builder) {
		a(b)
		b.Op(agentexpr.LogNot)
	}
}

// pointers is pointer arithmetic.
func (c *quickener) pointers(op string, a, b quickValue, pa, pb bool) quickValue {
	if pb && !pa {
		if op == "-" {
			c.give()
		}
		a, b, pa, pb = b, a, pb, pa
	}
	if pa && pb {
		c.give()
	}
	c.width(b.typ)
	e := a.typ.strip().element()
	size := e.byteSize(c.x.env)
	if e.strip() == nil || size < 1 {
		size = 1
	}
	if op == "-" {
		size = -size
	}
	return quickValue{typ: a.typ, num: quickOperator(agentexpr.Add, a.num, quickOperator(agentexpr.Mul, b.num, constantNode(uint64(size))))}
}

// unary is prefix operators and casts.
func (c *quickener) unary() quickValue {
	c.x.enter()
	v := c.prefixed()
	c.x.depth--
	return v
}

func (c *quickener) prefixed() quickValue {
	x := c.x
	zero := quickValue{typ: typeInt, num: constantNode(0)}
	switch x.peek() {
	case "-":
		x.at++
		return c.apply("-", zero, c.rvalue(c.unary()))
	case "+":
		x.at++
		return c.rvalue(c.unary())
	case "~":
		x.at++
		return c.apply("^", c.rvalue(c.unary()), quickValue{typ: typeInt, num: constantNode(^uint64(0))})
	case "!":
		x.at++
		return c.apply("==", quickValue{typ: typeLong, num: c.number(c.unary())}, zero)
	case "*":
		x.at++
		return c.dereference(c.rvalue(c.unary()))
	case "&":
		x.at++
		v := c.unary()
		if v.addr == nil || v.typ.strip() == nil || v.typ.strip().Kind == KindReference {
			c.give()
		}
		return quickValue{typ: x.pointerType(v.typ), num: v.addr}
	case "(":
		start := x.at
		x.at++
		if t, ok := x.typeName(); ok && x.take(")") {
			return c.cast(c.rvalue(c.unary()), t)
		}
		x.at = start
	}
	if x.at < len(x.toks) && x.toks[x.at].kind == 'n' && x.toks[x.at].text == "sizeof" {
		c.give()
	}
	return c.postfix()
}

func (c *quickener) cast(v quickValue, t *Type) quickValue {
	c.width(v.typ)
	num := v.num
	if s := t.strip(); s != nil && s.Kind == KindBase && s.enc == encBoolean {
		num = not(not(num))
	}
	return quickValue{typ: t, num: c.fit(num, t)}
}

// dereference is *v.
func (c *quickener) dereference(v quickValue) quickValue {
	t := v.typ.strip()
	if t == nil || t.Kind != KindPointer || t.element().strip() == nil {
		c.give()
	}
	return quickValue{typ: t.element(), addr: v.num}
}

// postfix is members and indices, and what they are of.
func (c *quickener) postfix() quickValue {
	v := c.primary()
	for {
		switch x := c.x; {
		case x.take("["):
			i := c.rvalue(c.conditional())
			x.need("]")
			if s := v.typ.strip(); s == nil || s.Kind != KindArray && s.Kind != KindPointer {
				c.give() // a container's
			}
			v = c.dereference(c.apply("+", c.rvalue(v), i))
		case x.take("."), x.take("->"):
			if x.at >= len(x.toks) || x.toks[x.at].kind != 'n' {
				c.give()
			}
			name := x.toks[x.at].text
			x.at++
			v = c.member(v, name)
		case x.peek() == "(":
			c.give()
		default:
			return v
		}
	}
}

// member is v.name, or v->name.
func (c *quickener) member(v quickValue, name string) quickValue {
	for range maxChain {
		t := v.typ.strip()
		if t == nil || t.Kind != KindPointer && t.Kind != KindReference {
			break
		}
		v = quickValue{typ: t.element(), addr: c.number1(v)}
	}
	out, ok := c.find(v, name)
	if !ok {
		c.give()
	}
	return out
}

// find finds a member by asking an object at address 0 for it: its place is the offset.
func (c *quickener) find(v quickValue, name string) (quickValue, bool) {
	t := v.typ.strip()
	if v.addr == nil || t == nil || t.Kind != KindStruct && t.Kind != KindUnion {
		return quickValue{}, false
	}
	nowhere := *c.x.env
	nowhere.Mem = nothing{}
	m, ok := Value{env: &nowhere, typ: v.typ, pieces: []piece{{place: inMemory}}}.find(name)
	if !ok || m.err != nil || m.bits != 0 || len(m.pieces) != 1 || m.pieces[0].addr != 0 {
		return quickValue{}, false
	}
	return quickValue{typ: m.typ, addr: plus(v.addr, m.off)}, true
}

// primary is a name, number, character or parenthesis.
func (c *quickener) primary() quickValue {
	x := c.x
	if x.take("(") {
		v := c.conditional()
		x.need(")")
		return v
	}
	if x.at >= len(x.toks) {
		c.give()
	}
	switch t := x.toks[x.at]; t.kind {
	case 'n':
		x.at++
		return c.name(t.text)
	case '0', 'c':
		return c.constantOf(x.primary())
	}
	c.give()
	return quickValue{}
}

// name is a variable, a member of this, a register or an enumerator.
func (c *quickener) name(s string) quickValue {
	x := c.x
	if s[0] == '$' {
		n, ok := registerNumber(s[1:])
		if !ok || n > RIP {
			c.give()
		}
		return quickValue{typ: typeLong, num: registerNode(n)}
	}
	if slices.Contains([]string{"true", "false", "nullptr", "NULL"}, s) {
		return quickValue{typ: typeInt, num: constantNode(truth(s == "true"))}
	}
	m := x.env.Module
	if d := x.scope.entry(s); d != nil {
		return c.variable(d)
	}
	if d := x.scope.entry("this"); d != nil {
		this := c.variable(d)
		if t := this.typ.strip(); t != nil && t.Kind == KindPointer {
			if v, ok := c.find(quickValue{typ: t.element(), addr: c.number1(this)}, s); ok {
				return v
			}
		}
	}
	if d := m.globalEntry(x.env, s); d != nil && !m.isGo(d.Offset) {
		return c.variable(d)
	}
	if v, ok := x.enumerator(s); ok {
		return c.constantOf(v)
	}
	c.give()
	return quickValue{}
}
