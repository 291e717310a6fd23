package dwarf

import (
	"errors"
	"fmt"
	"strings"
)

// Expressions are C's, as far as they change nothing: variables,
// registers ($rip), members, indices, pointers, casts, sizeof, arithmetic,
// comparisons, && || ! and ?:, and where somebody can make them, calls
// (evalcall.go). They are computed while they are parsed; length
// and nesting are bounded. Here is the parser of operators between operands; words are cut
// in evaltoken.go, what operators compute is in evalarith.go, and what binds closer than any
// of them in evalunary.go.

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
	defer caught(&err)
	out := x.conditional()
	if x.at < len(x.toks) {
		x.fail("%q is not understood", x.toks[x.at].text)
	}
	if out.Name == "" || len(x.toks) > 1 {
		out.Name = p.text
	}
	return out, nil
}

// evalError is thrown by the parser and by what computes, and caught by caught.
type evalError struct{ error }

// caught is deferred where an evaluation begins: what was thrown becomes its error.
func caught(err *error) {
	if p := recover(); p != nil {
		thrown, ok := p.(evalError)
		if !ok {
			thrown = evalError{errExpr}
		}
		*err = thrown.error
	}
}

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
