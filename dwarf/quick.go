package dwarf

import (
	"debug/dwarf"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"vplay/dwarf/agentexpr"
)

// Conditions of breakpoints are evaluated millions of times. An expression of integers and
// pointers is therefore made an agent expression (package agentexpr) once, for the one address where it is asked:
// where each variable is there, from the frame's registers, is found beforehand, and types are
// gone. What is not made so (floating-point numbers, Go's values, bit fields, locations that
// are computed) has no quick form and is evaluated as any other expression; both give the
// same. Operators are in quickop.go.

// quickNode appends what leaves a number on the stack.
type quickNode func(b *agentexpr.Builder)

// quickValue is a value in the making: an object at an address, or a number.
type quickValue struct {
	typ  *Type
	addr quickNode // of an object; nil for a number
	num  quickNode
}

// quickener makes a quick expression. What it cannot do panics with notQuick{}.
type quickener struct {
	x *evalState
}

type notQuick struct{}

func (c *quickener) give() { panic(notQuick{}) }

// Quick returns an agent expression that computes the expression at the place of a frame that it was
// prepared for; nil when there is none. It cannot be evaluated where memory cannot be read, and for a division by zero.
func (p *Expression) Quick(e *Env) (code []byte) {
	if e.Module == nil || p.scope == nil {
		return nil
	}
	s := p.scope.in(e)
	e.Module.mu.Lock()
	defer e.Module.mu.Unlock()
	defer func() {
		if recover() != nil { // also for what the parser does not understand
			code = nil
		}
	}()
	if e.Module.isGo(s.die) {
		return nil
	}
	c := &quickener{&evalState{env: e, toks: p.toks, scope: &s}}
	v := c.conditional()
	if c.x.at < len(c.x.toks) {
		return nil
	}
	var b agentexpr.Builder
	c.number(v)(&b)
	if b.Op(agentexpr.End); len(b.Code) > agentexpr.MaxLen {
		return nil
	}
	return b.Code
}

// variable is a variable's or parameter's value, from its location at the place.
func (c *quickener) variable(d *dwarf.Entry) quickValue {
	m := c.x.env.Module
	t := m.typeOf(d)
	if d.Val(dwarf.AttrLocation) == nil {
		if n, ok := m.attr(d, dwarf.AttrConstValue).(int64); ok {
			return c.constant(uint64(n), t)
		}
		if d = m.locationEntry(d); d == nil {
			c.give()
		}
	}
	expr, ok := m.location(d, dwarf.AttrLocation, c.x.env.locationPC(d))
	if !ok || len(expr) == 0 {
		c.give()
	}
	loc := cursor{b: expr}
	code := op.Opcode(loc.u8())
	var at quickNode
	switch {
	case code == op.DW_OP_addr:
		addr := loc.uint(8) + c.x.env.Bias
		at = constantNode(addr)
	case code == op.DW_OP_fbreg:
		at = plus(c.frameBase(), loc.sleb())
	case code >= op.DW_OP_breg0 && code <= op.DW_OP_breg15:
		at = plus(registerNode(int(code-op.DW_OP_breg0)), loc.sleb())
	case code >= op.DW_OP_reg0 && code <= op.DW_OP_reg15 && loc.left() == 0:
		return quickValue{typ: t, num: c.fit(registerNode(int(code-op.DW_OP_reg0)), t)}
	case code >= op.DW_OP_lit0 && code <= op.DW_OP_lit31:
		at = constantNode(uint64(code - op.DW_OP_lit0))
	default:
		c.give()
	}
	switch {
	case loc.bad:
		c.give()
	case loc.left() == 1 && op.Opcode(loc.u8()) == op.DW_OP_stack_value:
		return quickValue{typ: t, num: c.fit(at, t)}
	case loc.left() > 0:
		c.give()
	}
	if code >= op.DW_OP_lit0 && code <= op.DW_OP_lit31 {
		c.give()
	}
	return quickValue{typ: t, addr: at}
}

// frameBase is the function's DW_AT_frame_base at the place.
func (c *quickener) frameBase() quickNode {
	m, e := c.x.env.Module, c.x.env
	fn := m.functionEntry(e.pc())
	if fn == nil {
		c.give()
	}
	expr, ok := m.location(fn, dwarf.AttrFrameBase, e.pc())
	if !ok || len(expr) == 0 {
		c.give()
	}
	loc := cursor{b: expr}
	switch code := op.Opcode(loc.u8()); {
	case code == op.DW_OP_call_frame_cfa && loc.left() == 0:
		f, err := m.find(e.pc())
		if err != nil {
			c.give()
		}
		r, err := f.rowAt(e.pc())
		if err != nil || r.cfaExpr != nil || r.cfaReg >= numRegs {
			c.give()
		}
		return plus(registerNode(int(r.cfaReg)), r.cfaOff)
	case code >= op.DW_OP_reg0 && code <= op.DW_OP_reg15 && loc.left() == 0:
		return registerNode(int(code - op.DW_OP_reg0))
	case code >= op.DW_OP_breg0 && code <= op.DW_OP_breg15:
		off := loc.sleb()
		if loc.left() > 0 || loc.bad {
			c.give()
		}
		return plus(registerNode(int(code-op.DW_OP_breg0)), off)
	}
	c.give()
	return nil
}

// registerNode is a general register or the program counter, by its DWARF number.
func registerNode(n int) quickNode {
	number := agentexpr.RIP
	if n < len(agentNumbers) {
		number = agentNumbers[n]
	}
	return func(b *agentexpr.Builder) { b.Register(number) }
}

// agentNumbers are the numbers in agent expressions of the general registers, by their DWARF numbers.
var agentNumbers = [...]int{0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func constantNode(n uint64) quickNode { return func(b *agentexpr.Builder) { b.Number(n) } }

// plus adds an offset.
func plus(a quickNode, off int64) quickNode {
	if off == 0 {
		return a
	}
	return quickOperator(agentexpr.Add, a, constantNode(uint64(off)))
}

// quickOperator is an operator of two numbers.
func quickOperator(op byte, x, y quickNode) quickNode {
	return func(b *agentexpr.Builder) {
		x(b)
		y(b)
		b.Op(op)
	}
}

// extended is a number that is extended from so many bits.
func extended(a quickNode, bits int, signed bool) quickNode {
	if bits >= 64 {
		return a
	}
	return func(b *agentexpr.Builder) {
		a(b)
		b.Extend(bits, signed)
	}
}

func (c *quickener) constant(n uint64, t *Type) quickValue {
	return quickValue{typ: t, num: c.fit(constantNode(n), t)}
}

// constantOf is a constant value.
func (c *quickener) constantOf(v Value) quickValue {
	n, err := v.bitsOf()
	if err != nil {
		c.give()
	}
	return c.constant(n, v.typ)
}

// width returns how many bytes a number of a type has, and whether it is signed.
func (c *quickener) width(t *Type) (n int, signed bool) {
	s := t.strip()
	if s == nil {
		c.give()
	}
	switch {
	case s.golang:
		c.give()
	case s.Kind == KindBase && (s.enc == encSigned || s.enc == encUnsigned || s.enc == encSignedChar || s.enc == encUnsignedChar || s.enc == encBoolean || s.enc == encUTF):
	case s.Kind == KindPointer, s.Kind == KindEnum, s.Kind == KindReference:
	default:
		c.give()
	}
	size := s.byteSize(c.x.env)
	if size < 1 || size > 8 {
		c.give()
	}
	return int(size), s.isSigned()
}

// fit extends a number as its type does.
func (c *quickener) fit(a quickNode, t *Type) quickNode {
	n, signed := c.width(t)
	return extended(a, 8*n, signed)
}

// load reads an object.
func (c *quickener) load(v quickValue) quickNode {
	n, signed := c.width(v.typ)
	if n&(n-1) != 0 {
		c.give()
	}
	at := v.addr
	read := func(b *agentexpr.Builder) {
		at(b)
		b.Load(n)
	}
	if !signed {
		return read
	}
	return extended(read, 8*n, true)
}

// rvalue turns objects into numbers, references into what they refer to, and arrays into
// pointers.
func (c *quickener) rvalue(v quickValue) quickValue {
	t := v.typ.strip()
	switch {
	case t == nil:
		c.give()
	case t.Kind == KindReference:
		return c.rvalue(quickValue{typ: t.element(), addr: c.number1(v)})
	case t.Kind == KindArray && v.addr != nil:
		return quickValue{typ: c.x.pointerType(t.element()), num: v.addr}
	}
	return quickValue{typ: v.typ, num: c.number1(v)}
}

// number1 is the number of a value as it stands.
func (c *quickener) number1(v quickValue) quickNode {
	if v.num != nil {
		return v.num
	}
	return c.load(v)
}

// number is the number of a value.
func (c *quickener) number(v quickValue) quickNode { return c.number1(c.rvalue(v)) }
