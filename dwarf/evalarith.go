package dwarf

import (
	"errors"
	"math"
	"strconv"
)

// What operators compute, with the conversions that C makes for their operands (C17,
// 6.3.1).

func (x *evalState) boolean(b bool) Value {
	if b {
		return x.integer(1, typeInt)
	}
	return x.integer(0, typeInt)
}

// The types that expressions make.
var (
	typeInt    = &Type{Kind: KindBase, name: "int", size: 4, enc: encSigned}
	typeUInt   = &Type{Kind: KindBase, name: "unsigned int", size: 4, enc: encUnsigned}
	typeLong   = &Type{Kind: KindBase, name: "long", size: 8, enc: encSigned}
	typeULong  = &Type{Kind: KindBase, name: "unsigned long", size: 8, enc: encUnsigned}
	typeDouble = &Type{Kind: KindBase, name: "double", size: 8, enc: encFloat}
	typeChar   = &Type{Kind: KindBase, name: "char", size: 1, enc: encSignedChar}
	typeCode   = &Type{Kind: KindFunction, read: true, further: true, made: typeInt}
)

// integer makes a value of an integer or pointer type.
func (x *evalState) integer(n uint64, t *Type) Value {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return Value{env: x.env, typ: t, pieces: []piece{{place: isBytes, bytes: b}}}
}

func (x *evalState) double(f float64) Value { return x.integer(math.Float64bits(f), typeDouble) }

// rvalue turns references into what they refer to, and arrays and functions into
// pointers.
func (x *evalState) rvalue(v Value) Value {
	t := v.typ.strip()
	if t == nil {
		x.fail("%s is void", v.Name)
	}
	switch t.Kind {
	case KindReference:
		return x.rvalue(v.target())
	case KindArray:
		return x.pointerTo(v, t.element())
	case KindFunction:
		return x.pointerTo(v, t)
	default:
		x.check(v.err)
		return v
	}
}

// pointerTo is the address of v as a pointer to t.
func (x *evalState) pointerTo(v Value, t *Type) Value {
	x.check(v.err)
	addr, ok := v.Address()
	if !ok {
		x.fail("%s is not in memory", v.Name)
	}
	return x.integer(addr, x.pointerType(t))
}

func (x *evalState) pointerType(t *Type) *Type {
	p := &Type{Kind: KindPointer, word: "*", size: 8, made: t, m: x.env.Module}
	if t == nil {
		p.made = nil
	}
	return p
}

// isFloat reports whether a value is a floating-point number, and what it is.
func (x *evalState) isFloat(v Value) (float64, bool) {
	t := v.typ.strip()
	if t == nil || t.Kind != KindBase || t.enc != encFloat {
		return 0, false
	}
	b, err := v.whole(min(t.size, 10))
	x.check(err)
	f, err := strconv.ParseFloat(floatText(b), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		f = math.NaN()
	}
	return f, true
}

// number returns a value's integer.
func (x *evalState) number(v Value) uint64 {
	if f, ok := x.isFloat(v); ok {
		return uint64(int64(f))
	}
	switch t := v.typ.strip(); t.Kind {
	case KindBase, KindPointer, KindEnum, KindMember:
	default:
		x.fail("%s is no number", v.Name)
	}
	n, err := v.bitsOf()
	x.check(err)
	return n
}

func (x *evalState) truth(v Value) bool {
	v = x.rvalue(v)
	if f, ok := x.isFloat(v); ok {
		return f != 0
	}
	return x.number(v) != 0
}

// promoted returns the type that arithmetic on a and b is done in (C17 6.3.1.8).
func promoted(a, b *Type) *Type {
	size, unsigned := int64(4), false
	for _, t := range []*Type{a, b} {
		if t = t.strip(); t != nil && t.size > size {
			size, unsigned = t.size, false
		}
	}
	for _, t := range []*Type{a, b} {
		if t = t.strip(); t != nil && t.size == size && !t.isSigned() && t.Kind != KindEnum {
			unsigned = true
		}
	}
	switch {
	case size == 4 && !unsigned:
		return typeInt
	case size == 4:
		return typeUInt
	case !unsigned:
		return typeLong
	}
	return typeULong
}

// apply computes a binary operator other than && and ||.
func (x *evalState) apply(op string, a, b Value) Value {
	a, b = x.rvalue(a), x.rvalue(b)
	fa, aFloat := x.isFloat(a)
	fb, bFloat := x.isFloat(b)
	if aFloat || bFloat {
		if !aFloat {
			fa = x.toFloat(a)
		}
		if !bFloat {
			fb = x.toFloat(b)
		}
		return x.floats(op, fa, fb)
	}
	pa, pb := a.typ.strip().Kind == KindPointer, b.typ.strip().Kind == KindPointer
	if (pa || pb) && (op == "+" || op == "-") {
		return x.pointers(op, a, b, pa, pb)
	}
	t := promoted(a.typ, b.typ)
	if op == "<<" || op == ">>" {
		t = promoted(a.typ, typeInt)
	}
	bits := uint64(t.size) * 8
	na, nb := extend(x.number(a), bits, t.isSigned()), extend(x.number(b), bits, t.isSigned())
	if test := comparison(op, t.isSigned()); test != nil {
		return x.boolean(test(na, nb))
	}
	return x.integer(extend(x.computed(op, na, nb, t.isSigned()), bits, t.isSigned()), t)
}

func (x *evalState) toFloat(v Value) float64 {
	if n := x.number(v); v.typ.strip().isSigned() {
		return float64(int64(n))
	} else {
		return float64(n)
	}
}

// comparison returns the function of a comparison, nil for other operators.
func comparison(op string, signed bool) func(a, b uint64) bool {
	less := func(a, b uint64) bool { return a < b }
	if signed {
		less = func(a, b uint64) bool { return int64(a) < int64(b) }
	}
	switch op {
	case "==":
		return func(a, b uint64) bool { return a == b }
	case "!=":
		return func(a, b uint64) bool { return a != b }
	case "<":
		return less
	case ">":
		return func(a, b uint64) bool { return less(b, a) }
	case "<=":
		return func(a, b uint64) bool { return !less(b, a) }
	case ">=":
		return func(a, b uint64) bool { return !less(a, b) }
	}
	return nil
}

// computed computes integer arithmetic.
func (x *evalState) computed(op string, a, b uint64, signed bool) uint64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "&":
		return a & b
	case "|":
		return a | b
	case "^":
		return a ^ b
	case "<<":
		return a << min(b, 64)
	case ">>":
		if signed {
			return uint64(int64(a) >> min(b, 63))
		}
		return a >> min(b, 64)
	case "/", "%":
		if b == 0 {
			x.fail("division by zero")
		}
		switch {
		case signed && int64(b) == -1 && op == "/":
			return -a
		case signed && int64(b) == -1:
			return 0
		case signed && op == "/":
			return uint64(int64(a) / int64(b))
		case signed:
			return uint64(int64(a) % int64(b))
		case op == "/":
			return a / b
		}
		return a % b
	}
	x.fail("%q is not understood", op)
	return 0
}

// floats computes with floating-point numbers.
func (x *evalState) floats(op string, a, b float64) Value {
	switch op {
	case "+":
		return x.double(a + b)
	case "-":
		return x.double(a - b)
	case "*":
		return x.double(a * b)
	case "/":
		return x.double(a / b)
	case "==":
		return x.boolean(a == b)
	case "!=":
		return x.boolean(a != b)
	case "<":
		return x.boolean(a < b)
	case ">":
		return x.boolean(a > b)
	case "<=":
		return x.boolean(a <= b)
	case ">=":
		return x.boolean(a >= b)
	}
	x.fail("%q is not for floating-point numbers", op)
	return Value{}
}

// pointers computes pointer arithmetic.
func (x *evalState) pointers(op string, a, b Value, pa, pb bool) Value {
	if pb && !pa {
		if op == "-" {
			x.fail("a number minus a pointer")
		}
		a, b, pa, pb = b, a, pb, pa
	}
	size := a.typ.strip().element().byteSize(x.env)
	if a.typ.strip().element().strip() == nil || size < 1 {
		size = 1
	}
	n, m := x.number(a), x.number(b)
	switch {
	case pa && pb && op == "-":
		return x.integer(uint64(int64(n-m)/size), typeLong)
	case pa && pb:
		x.fail("the sum of two pointers")
	case op == "-":
		return x.integer(n-m*uint64(size), a.typ)
	}
	return x.integer(n+m*uint64(size), a.typ)
}
