package dap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// The requests scopes, variables and evaluate (Debug Adapter Protocol). Expressions are
// evaluated by the symbols; here values get the form that clients want. Commands that are
// typed into the client's console are in console.go.

// maxVariables bounds the variables of one answer.
const maxVariables = 4096

func scopes(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.ScopesArguments](raw)
	if err != nil {
		return nil, err
	}
	body := godap.ScopesResponseBody{Scopes: []godap.Scope{}}
	ref, err := s.frameRef(a.FrameId)
	if errors.Is(err, errStale) {
		return body, nil
	}
	var f *api.Frame
	if err == nil {
		f, err = s.frameAt(ref)
	}
	if err != nil {
		return nil, err
	}
	for i, sc := range s.symbols.Scopes(f) {
		id, err := s.newHandle(handle{in: ref, children: s.inScope(ref, i)})
		if err != nil {
			return nil, err
		}
		body.Scopes = append(body.Scopes, godap.Scope{Name: sc.Name, PresentationHint: sc.Hint, VariablesReference: id, Expensive: sc.Expensive})
	}
	return body, nil
}

// inScope makes children of a scope's variables, which are read once, and again when
// something was changed.
func (s *session) inScope(ref frameRef, scope int) func(start, count int) []api.Value {
	var got []api.Value
	at := -1
	return func(start, count int) []api.Value {
		if at != s.changes {
			got, at = nil, s.changes
			if f, err := s.frameAt(ref); err == nil {
				if list := s.symbols.Scopes(f); scope < len(list) {
					got = list[scope].Variables()
				}
			}
		}
		from := min(max(start, 0), len(got))
		to := len(got)
		if count > 0 {
			to = min(to, from+count)
		}
		return slices.Clone(got[from:to])
	}
}

func variables(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.VariablesArguments](raw)
	if err != nil {
		return nil, err
	}
	body := godap.VariablesResponseBody{Variables: []godap.Variable{}}
	h, err := s.handle(a.VariablesReference)
	switch {
	case errors.Is(err, errStale):
		return body, nil
	case err != nil:
		return nil, err
	case h.children == nil:
		return nil, fmt.Errorf("%d has no variables", a.VariablesReference)
	}
	count := a.Count
	if count <= 0 || count > maxVariables {
		count = maxVariables
	}
	radix := h.radix
	if a.Format != nil && a.Format.Hex {
		radix = 16
	}
	list := h.page(a.Filter, max(a.Start, 0), count)
	unique(list)
	for i := range list {
		v := &list[i]
		ref, err := s.reference(v, h.in, radix)
		if err != nil {
			return nil, err
		}
		out := godap.Variable{
			Name: v.Name, Value: inRadix(v, radix), Type: v.Type, EvaluateName: v.Expr, VariablesReference: ref,
			NamedVariables: v.Named, IndexedVariables: v.Indexed, MemoryReference: memoryReference(v),
		}
		body.Variables = append(body.Variables, out)
	}
	return body, nil
}

// valueOf returns the variable of a group that has a name, or, where the group is 0, what an
// expression is in a frame.
func (s *session) valueOf(group int, name string, frame int) (api.Value, error) {
	if group != 0 {
		h, err := s.handle(group)
		if err != nil {
			return api.Value{}, err
		}
		return h.child(name)
	}
	f, err := s.frame(frame)
	if err != nil {
		return api.Value{}, err
	}
	return s.symbols.Eval(f, name)
}

// reference returns the number by which a value's children are asked for, 0 when
// it has none; in is the frame that it was read in, radix how it is shown.
func (s *session) reference(v *api.Value, in frameRef, radix int) (int, error) {
	if v.Children == nil || v.Named+v.Indexed == 0 {
		return 0, nil
	}
	return s.newHandle(handle{in: in, radix: radix, children: v.Children, named: v.Named, indexed: v.Indexed})
}

// memoryReference is where a client shows memory from: what a pointer points to, or
// the value itself.
func memoryReference(v *api.Value) string {
	switch {
	case v.Pointer != 0:
		return hex(v.Pointer)
	case v.Size > 0:
		return hex(v.Addr)
	}
	return ""
}

// evaluate answers what an expression is. In the console a monitor command works,
// too, with or without the word monitor.
func evaluate(s *session, req *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.EvaluateArguments](raw)
	if err != nil {
		return nil, err
	}
	expr := strings.TrimSpace(a.Expression)
	if a.Context == "repl" || a.Context == "" {
		if topic, ok := strings.CutPrefix(expr, "help"); ok && (topic == "" || topic[0] == ' ') {
			return godap.EvaluateResponseBody{Result: s.help(strings.TrimSpace(topic))}, nil
		}
		if line, ok := s.command(expr); ok {
			return s.monitor(req, s.located(a.FrameId, line))
		}
	}
	ref, err := s.frameRef(a.FrameId)
	if errors.Is(err, errStale) && a.Context == "repl" { // typed since: what the user sees is here
		ref, err = s.innermost()
	}
	if err != nil {
		return nil, err
	}
	f, err := s.frameAt(ref)
	if err != nil {
		return nil, err
	}
	expr, radix := formatted(expr)
	if a.Format != nil && a.Format.Hex && radix == 0 {
		radix = 16
	}
	answer := func(v *api.Value) (any, error) {
		n, err := s.reference(v, ref, radix)
		return godap.EvaluateResponseBody{
			Result: inRadix(v, radix), Type: v.Type, VariablesReference: n, NamedVariables: v.Named, IndexedVariables: v.Indexed, MemoryReference: memoryReference(v),
		}, err
	}
	if a.Context == "repl" && mayChange(expr) {
		return s.change(req, ref, f, nil, expr, answer)
	}
	v, err := s.symbols.Eval(f, expr)
	if err != nil {
		return nil, err
	}
	return answer(&v)
}

// inRadix is a value's text with integers in a base; 0 is the usual one.
func inRadix(v *api.Value, radix int) string {
	if radix == 0 || v.Format == nil {
		return v.Text
	}
	return v.Format(radix)
}

// radixes are what may stand behind an expression and a comma, as in Visual Studio and lldb.
var radixes = map[string]int{"x": 16, "h": 16, "o": 8, "b": 2, "t": 2, "d": 0}

// formatted takes an expression and the format that it is wanted in apart: "flags,x".
func formatted(expr string) (rest string, radix int) {
	i := strings.LastIndexByte(expr, ',')
	if i < 0 {
		return expr, 0
	}
	radix, ok := radixes[strings.TrimSpace(expr[i+1:])]
	if !ok {
		return expr, 0
	}
	return strings.TrimSpace(expr[:i]), radix
}
