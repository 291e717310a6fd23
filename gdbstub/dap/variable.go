package dap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	godap "github.com/google/go-dap"

	"vplay/replay/debug/api"
)

// The requests scopes, variables and evaluate (Debug Adapter Protocol), and the monitor
// commands that are typed into the client's console. Expressions are evaluated by the
// symbols; here values get the form that clients want.

// maxVariables bounds the variables of one answer.
const maxVariables = 4096

func scopes(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.ScopesArguments](raw)
	if err != nil {
		return nil, err
	}
	f, err := s.frame(a.FrameId)
	if err != nil {
		return nil, err
	}
	body := godap.ScopesResponseBody{Scopes: []godap.Scope{}}
	for _, sc := range s.symbols.Scopes(f) {
		id, err := s.newHandle(handle{children: all(sc.Variables)})
		if err != nil {
			return nil, err
		}
		body.Scopes = append(body.Scopes, godap.Scope{Name: sc.Name, PresentationHint: sc.Hint, VariablesReference: id, Expensive: sc.Expensive})
	}
	return body, nil
}

// all makes children of a list that is read once.
func all(list func() []api.Value) func(start, count int) []api.Value {
	var got []api.Value
	read := false
	return func(start, count int) []api.Value {
		if !read {
			got, read = list(), true
		}
		from := min(max(start, 0), len(got))
		to := len(got)
		if count > 0 {
			to = min(to, from+count)
		}
		return got[from:to]
	}
}

func variables(s *session, _ *godap.Request, raw []byte) (any, error) {
	a, err := arguments[godap.VariablesArguments](raw)
	if err != nil {
		return nil, err
	}
	h, err := s.handle(a.VariablesReference)
	if err != nil {
		return nil, err
	}
	if h.children == nil {
		return nil, fmt.Errorf("%d has no variables", a.VariablesReference)
	}
	count := a.Count
	if count <= 0 || count > maxVariables {
		count = maxVariables
	}
	body := godap.VariablesResponseBody{Variables: []godap.Variable{}}
	seen := map[string]int{}
	for _, v := range h.children(max(a.Start, 0), count) {
		ref, err := s.reference(&v)
		if err != nil {
			return nil, err
		}
		name := v.Name
		if seen[name]++; seen[name] > 1 && name != "" { // names are unique for clients
			name = fmt.Sprintf("%s (outer %d)", name, seen[name]-1)
		}
		out := godap.Variable{
			Name: name, Value: v.Text, Type: v.Type, EvaluateName: v.Expr, VariablesReference: ref,
			NamedVariables: v.Named, IndexedVariables: v.Indexed, MemoryReference: memoryReference(&v),
		}
		body.Variables = append(body.Variables, out)
	}
	return body, nil
}

// reference returns the number by which a value's children are asked for, 0 when
// it has none.
func (s *session) reference(v *api.Value) (int, error) {
	if v.Children == nil || v.Named+v.Indexed == 0 {
		return 0, nil
	}
	return s.newHandle(handle{children: v.Children})
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
		if line, ok := s.command(expr); ok {
			return s.monitor(req, s.located(a.FrameId, line))
		}
	}
	f, err := s.frame(a.FrameId)
	if err != nil {
		return nil, err
	}
	v, err := s.symbols.Eval(f, expr)
	if err != nil {
		return nil, err
	}
	ref, err := s.reference(&v)
	if err != nil {
		return nil, err
	}
	return godap.EvaluateResponseBody{
		Result: v.Text, Type: v.Type, VariablesReference: ref, NamedVariables: v.Named, IndexedVariables: v.Indexed, MemoryReference: memoryReference(&v),
	}, nil
}

// command returns the monitor command in a line of the console, if it is one.
func (s *session) command(line string) (string, bool) {
	line = strings.TrimPrefix(line, "-exec ")
	if rest, ok := strings.CutPrefix(line, "monitor "); ok {
		return strings.TrimSpace(rest), true
	}
	word, _, _ := strings.Cut(line, " ")
	for _, c := range s.srv.opt.Commands {
		if c == word {
			return line, true
		}
	}
	return "", false
}

// located puts an address in the place of the expression of a command about memory,
// with the number of bytes that the expression has unless the line says how many: so
// a variable is meant as a whole, and locals are found. Other lines, and expressions
// that are not in memory, stay as they are.
func (s *session) located(frame int, line string) string {
	word, expr, _ := strings.Cut(line, " ")
	expr = strings.TrimSpace(expr)
	if !slices.Contains(s.srv.opt.Accesses, word) || expr == "" {
		return line
	}
	f, err := s.frame(frame)
	if err != nil {
		return line
	}
	numbers := ""
	for range 3 { // EXPR [LENGTH [N]]
		if v, err := s.symbols.Eval(f, expr); err == nil && v.Size > 0 {
			if numbers == "" {
				numbers = fmt.Sprintf(" %d", v.Size)
			}
			return fmt.Sprintf("%s %#x%s", word, v.Addr, numbers)
		}
		i := strings.LastIndexByte(expr, ' ')
		if i < 0 {
			break
		}
		expr, numbers = strings.TrimSpace(expr[:i]), expr[i:]+numbers
	}
	return line
}

// errAnswered says that a request has been, or will be, answered elsewhere.
var errAnswered = errors.New("answered elsewhere")

// maxCommand bounds a monitor command, in bytes.
const maxCommand = 4096

// monitor runs a command as a movement: it may take long, and it may move the
// target, of which the client is told then.
func (s *session) monitor(req *godap.Request, line string) (any, error) {
	if len(line) > maxCommand {
		return nil, errors.New("the command is too long")
	}
	before := s.where()
	out := &writer{}
	run := func(ctx context.Context, m *movement) (api.Stop, error) {
		if where, ok := seekTarget(line); ok {
			return api.Stop{}, m.seek(where, out)
		}
		return api.Stop{}, s.target.Monitor(ctx, line, out)
	}
	s.begin(run, func(_ api.Stop, err error) {
		switch {
		case errors.Is(err, api.ErrExit):
			s.exit, s.over = true, true
		case err != nil:
			s.fail(req, err)
			return
		}
		s.respond(req, godap.EvaluateResponseBody{Result: strings.TrimRight(string(out.b), "\n")})
		if s.where() != before {
			s.stop = s.target.Stop()
			s.tellProgram()
			body := godap.StoppedEventBody{Reason: "goto", Description: "Paused after a command", ThreadId: s.stop.TID, AllThreadsStopped: true}
			s.event("stopped", body)
		}
	})
	return nil, errAnswered
}

// where tells one position from another, as far as registers do.
func (s *session) where() api.Registers {
	tid, err := s.thread(0)
	if err != nil {
		return api.Registers{}
	}
	r, err := s.target.Registers(tid)
	if err != nil || r == nil {
		return api.Registers{}
	}
	return *r
}
