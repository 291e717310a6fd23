package dwarf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Expressions are C's, as far as they change and call nothing: variables,
// registers ($rip), members, indices, pointers, casts, sizeof, arithmetic,
// comparisons, && || ! and ?:. They are computed while they are parsed; length
// and nesting are bounded.

// Bounds on an expression.
const (
	maxExprLen   = 4096
	maxExprDepth = 100
)

// Eval evaluates an expression in the frame. scope is the index of the function
// among Scopes whose variables are meant. Errors say what was not understood,
// which name is not known, or why a value is not there.
func (e *Env) Eval(expr string, scope int) (Value, error) {
	x, err := e.Prepare(expr, scope)
	if err != nil {
		return Value{}, err
	}
	return x.Eval(e)
}

// Expression is one that is evaluated at the same place of the code again and again.
// It is safe for concurrent use.
type Expression struct {
	text  string
	toks  []token
	scope *Scope
}

// Prepare reads an expression for the place of the frame; scope is that of Eval.
func (e *Env) Prepare(expr string, scope int) (*Expression, error) {
	if len(expr) > maxExprLen {
		return nil, errors.New("the expression is too long")
	}
	toks, err := tokens(expr)
	if err != nil {
		return nil, err
	}
	x := &Expression{text: expr, toks: toks}
	if scopes := e.Scopes(); scope >= 0 && scope < len(scopes) {
		x.scope = &scopes[scope]
		x.scope.prepare()
	}
	return x, nil
}

// Eval evaluates the expression in a frame at the place it was prepared for.
func (p *Expression) Eval(e *Env) (v Value, err error) {
	x := &evalState{env: e, toks: p.toks}
	if p.scope != nil {
		s := p.scope.in(e)
		x.scope = &s
	}
	if e.Module != nil {
		e.Module.mu.Lock()
		defer e.Module.mu.Unlock()
	}
	defer func() {
		if p := recover(); p != nil {
			thrown, ok := p.(evalError)
			if !ok {
				thrown = evalError{errExpr}
			}
			v, err = Value{}, thrown.error
		}
	}()
	v = x.conditional()
	if x.at < len(x.toks) {
		x.fail("%q is not understood", x.toks[x.at].text)
	}
	if v.Name == "" || len(x.toks) > 1 {
		v.Name = p.text
	}
	return v, nil
}

// evalError is thrown by the parser and caught in Eval.
type evalError struct{ error }

type evalState struct {
	env   *Env
	scope *Scope
	toks  []token
	at    int
	depth int
}

func (x *evalState) fail(format string, args ...any) {
	panic(evalError{fmt.Errorf(format, args...)})
}

func (x *evalState) check(err error) {
	if err != nil {
		panic(evalError{err})
	}
}

// token is a word, number, character or operator.
type token struct {
	kind byte // 'n' name, '0' number, 'c' character, 's' string, 'o' operator
	text string
	char byte
}

// operators are those of more than one character, the longest first.
var operators = []string{"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->"}

func tokens(s string) (out []token, err error) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case isLetter(c):
			j := i + 1
			for j < len(s) && (isLetter(s[j]) || isDigit(s[j]) || strings.HasPrefix(s[j:], "::") || s[j] == ':' && s[j-1] == ':') {
				j++
			}
			out, i = append(out, token{kind: 'n', text: s[i:j]}), j
		case isDigit(c) || c == '.' && i+1 < len(s) && isDigit(s[i+1]):
			j := i + 1
			for j < len(s) && (isLetter(s[j]) || isDigit(s[j]) || s[j] == '.' || (s[j] == '+' || s[j] == '-') && isExponent(s[i:j])) {
				j++
			}
			out, i = append(out, token{kind: '0', text: s[i:j]}), j
		case c == '\'':
			r, _, rest, err := strconv.UnquoteChar(s[i+1:], '\'')
			if err != nil || !strings.HasPrefix(rest, "'") || r > 255 {
				return nil, errors.New("a character constant is not understood")
			}
			out, i = append(out, token{kind: 'c', text: s[i : len(s)-len(rest)+1], char: byte(r)}), len(s)-len(rest)+1
		case c == '"': // a key of a map
			text, err := strconv.QuotedPrefix(s[i:])
			if err != nil {
				return nil, errors.New("a string constant is not understood")
			}
			out, i = append(out, token{kind: 's', text: text}), i+len(text)
		default:
			op := s[i : i+1]
			for _, o := range operators {
				if strings.HasPrefix(s[i:], o) {
					op = o
				}
			}
			if !strings.Contains("<<>><=>===!=&&||->+-*/%&|^~!()[].?:<>,", op) { //nolint:gocritic // all operators are the text
				return nil, fmt.Errorf("%q is not understood", op)
			}
			out, i = append(out, token{kind: 'o', text: op}), i+len(op)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no expression")
	}
	return out, nil
}

func isLetter(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isExponent reports whether a decimal number's exponent has just begun.
func isExponent(s string) bool {
	last := s[len(s)-1]
	return (last == 'e' || last == 'E') && !strings.HasPrefix(s, "0x") && !strings.HasPrefix(s, "0X")
}

// peek returns the next token's text, "" at the end.
func (x *evalState) peek() string {
	if x.at < len(x.toks) && x.toks[x.at].kind == 'o' {
		return x.toks[x.at].text
	}
	return ""
}

// take takes the operator if it is next.
func (x *evalState) take(op string) bool {
	if x.peek() == op {
		x.at++
		return true
	}
	return false
}

func (x *evalState) need(op string) {
	if !x.take(op) {
		x.fail("%q is missing", op)
	}
}

// enter bounds nesting; whoever calls it lowers depth again.
func (x *evalState) enter() {
	if x.depth++; x.depth > maxExprDepth {
		x.fail("the expression is too deep")
	}
}

// conditional parses c ? a : b. Both sides are evaluated: nothing has effects.
func (x *evalState) conditional() Value {
	x.enter()
	c := x.binary(0)
	if !x.take("?") {
		x.depth--
		return c
	}
	a := x.conditional()
	x.need(":")
	b := x.conditional()
	x.depth--
	if x.truth(c) {
		return a
	}
	return b
}

// levels are the binary operators by rising precedence.
var levels = []string{"||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"}

func (x *evalState) binary(level int) Value {
	if level == len(levels) {
		return x.unary()
	}
	a := x.binary(level + 1)
	for {
		op := x.peek()
		if op == "" || !isOneOf(op, levels[level]) {
			return a
		}
		x.at++
		switch op {
		case "||", "&&": // the right side may be one that only the left makes valid
			a = x.logic(op, a, level)
		default:
			a = x.apply(op, a, x.binary(level+1))
		}
	}
}

func isOneOf(op, list string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == op {
			return true
		}
	}
	return false
}

// logic evaluates && and ||; an error of the right side counts only when its
// value does.
func (x *evalState) logic(op string, a Value, level int) Value {
	left := x.truth(a)
	if left == (op == "||") {
		x.ignore(level + 1)
		return x.boolean(left)
	}
	return x.boolean(x.truth(x.binary(level + 1)))
}

// ignore parses an operand whose value is not wanted.
func (x *evalState) ignore(level int) {
	depth := 0
	for ; x.at < len(x.toks); x.at++ {
		switch t := x.toks[x.at]; {
		case t.kind != 'o':
		case t.text == "(" || t.text == "[":
			depth++
		case t.text == ")" || t.text == "]":
			if depth--; depth < 0 {
				return
			}
		case depth == 0 && (t.text == "?" || t.text == ":" || t.text == ","):
			return
		case depth == 0:
			for _, l := range levels[:level] {
				if isOneOf(t.text, l) && (t.text == "||" || t.text == "&&") {
					return
				}
			}
		}
	}
}

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
	if r, ok := compared(op, na, nb, t.isSigned()); ok {
		return x.boolean(r)
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

// compared computes a comparison.
func compared(op string, a, b uint64, signed bool) (r, ok bool) {
	less := a < b
	if signed {
		less = int64(a) < int64(b)
	}
	switch op {
	case "==":
		return a == b, true
	case "!=":
		return a != b, true
	case "<":
		return less, true
	case ">":
		return !less && a != b, true
	case "<=":
		return less || a == b, true
	case ">=":
		return !less, true
	}
	return false, false
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
