package dwarf

import (
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Calls of the program's functions in an expression, where somebody can run them: which
// registers the arguments go into, and where the result is (System V ABI, AMD64
// supplement, 3.2.3). Structs by value are not passed. Everything else that an expression
// does has no effects, and needs nobody.

// Runner runs functions of the program.
type Runner interface {
	// Call calls the function at entry with these integer and vector registers, and returns
	// rax and the low half of xmm0.
	Call(entry uint64, ints, vectors []uint64) (rax, xmm0 uint64, err error)
	// Place puts bytes where functions can read and write them.
	Place(b []byte) (addr uint64, err error)
}

// Arguments in registers.
const (
	maxInts    = 6
	maxVectors = 8
)

// arguments are those of a call.
type arguments struct{ ints, vectors []uint64 }

var errNotCalled = errors.New("functions are not called here")

// called parses the arguments behind a function, of which the parenthesis was taken, and
// calls it. this is the object that it is a method of, if any.
func (x *evalState) called(fn Value, this *Value) Value {
	run := x.env.Run
	if run == nil {
		x.check(errNotCalled)
	}
	if r := fn.referent(); r.typ.strip() != nil && r.typ.strip().Kind == KindPointer {
		fn = x.dereference(r)
	}
	t := fn.typ.strip()
	entry, ok := fn.Address()
	if t == nil || t.Kind != KindFunction || !ok {
		x.fail("%s is no function", fn.Name)
	}
	t.load()
	result := t.element()
	if e := t.m.declared(t); result == nil && e != nil {
		result = t.m.typeOf(e)
	}
	if s := result.strip(); s != nil && (s.Kind == KindStruct || s.Kind == KindUnion || s.Kind == KindArray || s.Kind == KindBase && s.size > 8) {
		x.fail("%s returns a %s: only functions that return a number or a pointer are called", fn.Name, result.declare("", 0))
	}
	a, n := &arguments{}, 0
	if this != nil {
		x.pass(a, *this, x.pointerType(this.typ))
		n++
	}
	for !x.take(")") {
		if len(a.ints)+len(a.vectors) > 0 && (this == nil || n > 1) {
			x.need(",")
		}
		v := x.conditional()
		var want *Type
		if n < len(t.params) {
			want = t.m.typeAt(t.params[n])
		}
		x.pass(a, v, want)
		n++
	}
	if n < len(t.params) || n > len(t.params) && !t.further {
		want := len(t.params)
		if this != nil { // users do not write it
			want--
		}
		x.fail("%s takes %d arguments", fn.Name, want)
	}
	return x.run(run, entry, a, result, fn.Name)
}

// declared returns the entry of a function, whose type may be at its declaration.
func (m *Module) declared(t *Type) *dwarf.Entry {
	if m == nil || t.off == 0 {
		return nil
	}
	return m.entryAt(t.off)
}

// run makes the call. The module is not locked meanwhile: breakpoints have conditions.
func (x *evalState) run(run Runner, entry uint64, a *arguments, result *Type, name string) Value {
	if m := x.env.Module; m != nil {
		m.mu.Unlock()
		defer m.mu.Lock()
	}
	rax, xmm0, err := run.Call(entry, a.ints, a.vectors)
	x.check(err)
	s := result.strip()
	if s != nil && s.Kind == KindBase && s.enc == encFloat {
		rax = xmm0
	}
	out := x.integer(rax, result)
	out.Name = name + "()"
	if s != nil && s.Kind == KindReference {
		out = out.target()
	}
	return out
}

// pass puts a value into the registers of a call; want is the parameter's type, nil where
// there is none.
func (x *evalState) pass(a *arguments, v Value, want *Type) {
	s := want.strip()
	if s != nil && s.Kind == KindReference {
		v = v.referent()
		addr, ok := v.Address()
		if !ok {
			x.fail("%s is not in memory", v.Name)
		}
		x.integerRegister(a, addr)
		return
	}
	if want == nil {
		v = x.rvalue(v)
		if s = v.typ.strip(); s.Kind == KindBase && s.enc == encFloat { // promoted (C17, 6.5.2.2)
			s, want = typeDouble, typeDouble
		} else {
			want = v.typ
		}
	}
	if s == nil || s.Kind == KindStruct || s.Kind == KindUnion || s.Kind == KindArray || s.byteSize(x.env) > 8 {
		x.fail("%s is passed by value, which is not done here", v.Name)
	}
	var w [8]byte
	copy(w[:], x.encode(want, v))
	n := binary.LittleEndian.Uint64(w[:])
	if s.Kind != KindBase || s.enc != encFloat {
		x.integerRegister(a, extend(n, uint64(s.byteSize(x.env))*8, s.isSigned()))
		return
	}
	if len(a.vectors) == maxVectors {
		x.fail("there are more than %d floating-point arguments", maxVectors)
	}
	a.vectors = append(a.vectors, n)
}

func (x *evalState) integerRegister(a *arguments, n uint64) {
	if len(a.ints) == maxInts {
		x.fail("there are more than %d arguments", maxInts)
	}
	a.ints = append(a.ints, n)
}

// text is a string constant: an array of characters in the program's memory.
func (x *evalState) text(quoted string) Value {
	s, err := strconv.Unquote(quoted)
	x.check(err)
	if x.env.Run == nil {
		x.fail("%s is not understood", quoted)
	}
	addr, err := x.env.Run.Place(append([]byte(s), 0))
	x.check(err)
	return x.integer(addr, x.pointerType(typeChar))
}

// function is the function that is meant by a name before a parenthesis, wherever it is.
func (x *evalState) function(name string) (Value, bool) {
	if m := x.env.Module; m != nil && m.data != nil {
		offs := m.names().functions[name]
		for _, off := range offs {
			if low, ok := m.entryAt(off).Val(dwarf.AttrLowpc).(uint64); ok {
				return Value{Name: name, env: x.env, typ: m.typeAt(off), pieces: []piece{{place: inMemory, addr: low + x.env.Bias}}}, true
			}
		}
	}
	if x.env.Extern == nil {
		return Value{}, false
	}
	addr, ok := x.env.Extern(name)
	return Value{Name: name, env: x.env, typ: typeCode, pieces: []piece{{place: inMemory, addr: addr}}}, ok
}

// callMethod calls v.name(); the parenthesis was taken.
func (x *evalState) callMethod(v Value, name string) Value {
	t := v.typ.strip()
	if x.env.Run == nil || t == nil || t.Kind != KindStruct {
		x.check(errNotCalled)
	}
	fn, ok := x.function(t.bareName() + "::" + name)
	if !ok {
		x.fail("there is no code of %s::%s", t.bareName(), name)
	}
	addr, ok := v.Address()
	if !ok {
		x.fail("%s is not in memory", v.Name)
	}
	this := x.integer(addr, x.pointerType(v.typ))
	return x.called(fn, &this)
}

// encode returns a value as the bytes of an object of type t, which is converted as by
// assignment.
func (x *evalState) encode(t *Type, from Value) []byte {
	s := t.strip()
	n := t.byteSize(x.env)
	if s == nil || n <= 0 || n > maxValue {
		x.check(errSize)
	}
	switch {
	case s.Kind == KindStruct, s.Kind == KindUnion, s.Kind == KindArray, s.Kind == KindBase && s.enc == encComplex:
		from = from.referent()
		if f := from.typ.strip(); f == nil || f.Kind != s.Kind || from.typ.declare("", 0) != t.declare("", 0) || from.typ.byteSize(x.env) != n {
			x.fail("it is no %s", t.declare("", 0))
		}
		b, err := from.whole(n)
		x.check(err)
		return b
	case s.Kind == KindBase && s.enc == encFloat:
		from = x.rvalue(from)
		f, ok := x.isFloat(from)
		if !ok {
			f = x.toFloat(from)
		}
		return floatBytes(f, n)
	case s.Kind == KindBase && s.enc == encBoolean:
		b := make([]byte, n)
		if x.truth(from) {
			b[0] = 1
		}
		return b
	case s.Kind == KindBase, s.Kind == KindEnum, s.Kind == KindPointer:
	default:
		x.fail("a %s cannot be set", t.declare("", 0))
	}
	from = x.rvalue(from)
	bits, fill := x.number(from), byte(0)
	if from.typ.strip().isSigned() && int64(bits) < 0 {
		fill = 0xff
	}
	b := make([]byte, n)
	for i := range b {
		if b[i] = fill; i < 8 {
			b[i] = byte(bits >> (8 * i))
		}
	}
	return b
}

// floatBytes is a floating-point number of n bytes; those of more than 8 are the x87 unit's
// (SDM volume 1, 4.2.2).
func floatBytes(f float64, n int64) []byte {
	b := make([]byte, n)
	put := func(v uint64, size int) {
		for i := range min(size, len(b)) {
			b[i] = byte(v >> (8 * i))
		}
	}
	bits := math.Float64bits(f)
	switch {
	case n == 4:
		put(uint64(math.Float32bits(float32(f))), 4)
		return b
	case n <= 8:
		put(bits, 8)
		return b
	}
	exp, frac := bits>>52&0x7ff, bits<<12
	switch {
	case exp == 0x7ff:
		exp = 0x7fff
	case exp == 0 && frac == 0:
		put(0, 8)
		b[9] = byte(bits >> 63 << 7)
		return b
	case exp == 0: // not normal here, but there
		for exp = 1; frac>>63 == 0; exp-- {
			frac <<= 1
		}
		frac <<= 1
		exp += 16383 - 1023 - 1
	default:
		exp += 16383 - 1023
	}
	put(1<<63|frac>>1, 8)
	b[8], b[9] = byte(exp), byte(exp>>8)|byte(bits>>63<<7)
	return b
}

// isString reports whether an expression is one string constant.
func isString(expr string) (s string, ok bool) {
	expr = strings.TrimSpace(expr)
	if !strings.HasPrefix(expr, `"`) {
		return "", false
	}
	s, err := strconv.Unquote(expr)
	return s, err == nil
}
