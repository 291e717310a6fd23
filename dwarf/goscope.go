package dwarf

import (
	"debug/dwarf"
	"errors"
	"slices"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
	"github.com/go-delve/delve/pkg/dwarf/reader"
)

// Variables of Go functions are found by delve's package reader: it knows that a
// variable is visible from the line behind its declaration on, and captured ones
// from there. Names that the compiler makes (type dictionaries, closure pointers)
// are left out; a variable that escaped to the heap has the name &x, and is a
// pointer there.

// goEntry is a variable that can be seen in a scope.
type goEntry struct {
	name     string // without the &
	tree     *godwarf.Tree
	depth    int
	line     int64 // of its declaration
	isArg    bool
	escaped  bool
	shadowed bool // by another of an inner block
}

// Names that the Go compiler makes (cmd/compile, and delve's pkg/proc/eval.go).
const (
	goDictionary = ".dict"
	goClosurePtr = ".closureptr"
	goYield      = "#yield"
	goRangeBody  = "-range"
)

// goEntries lists the variables that can be seen in the scope, outermost block
// first, in the order of their declarations.
func (s *Scope) goEntries() []goEntry {
	if s.golang != nil {
		return s.golang.entries
	}
	s.golang = &goScope{}
	p := s.env.Module.goProgram()
	tree, err := p.tree(s.die)
	if err != nil {
		return nil
	}
	flags := reader.VariablesOnlyVisible | reader.VariablesSkipInlinedSubroutines | reader.VariablesTrustDeclLine
	isBody := isRangeBody(s.Function)
	for _, v := range reader.Variables(tree, s.env.pc(), s.line, flags) {
		name, _ := v.Val(dwarf.AttrName).(string)
		e := goEntry{name: strings.TrimPrefix(name, "&"), tree: v.Tree, depth: v.Depth, escaped: len(name) > 1 && name[0] == '&'}
		e.line, _ = v.Val(dwarf.AttrDeclLine).(int64)
		switch {
		case v.Tag != dwarf.TagFormalParameter && v.Tag != dwarf.TagVariable || name == "":
			continue
		case e.name == goDictionary || e.name == goClosurePtr || strings.HasPrefix(e.name, goYield):
			continue
		case isBody && strings.HasPrefix(name, "~"): // whether the loop goes on
			continue
		}
		if v.Tag == dwarf.TagFormalParameter && !isBody {
			e.isArg = true
			if e.depth <= 1 {
				e.depth = 0
			}
		}
		if len(s.golang.entries) < maxVariables {
			s.golang.entries = append(s.golang.entries, e)
		}
	}
	slices.SortStableFunc(s.golang.entries, func(a, b goEntry) int {
		if a.depth != b.depth {
			return a.depth - b.depth
		}
		return int(a.line - b.line)
	})
	last := map[string]int{}
	for i := range s.golang.entries {
		e := &s.golang.entries[i]
		if j, ok := last[e.name]; ok {
			s.golang.entries[j].shadowed = true
		}
		last[e.name] = i
	}
	return s.golang.entries
}

// goScope is what is known of a scope of a Go function.
type goScope struct {
	entries    []goEntry
	dictionary *uint64 // with the type arguments of a generic function
}

// prepare looks for the variables of the scope ahead of their use.
func (s *Scope) prepare() {
	m := s.env.Module
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if m.isGo(s.die) {
		s.goEntries()
	}
}

// in is the scope in another frame at the same place.
func (s *Scope) in(e *Env) Scope {
	out := *s
	if out.env = e; s.golang != nil {
		out.golang = &goScope{entries: s.golang.entries} // type arguments are each frame's own
	}
	return out
}

// isRangeBody reports whether a function is the body of a loop over an iterator,
// which the compiler makes a function of its own: f-range1.
func isRangeBody(name string) bool {
	i := strings.LastIndex(name, goRangeBody)
	return i > 0 && strings.Trim(name[i+len(goRangeBody):], "0123456789") == ""
}

// goDict returns the address of the function's dictionary, 0 when there is none.
func (s *Scope) goDict() uint64 {
	if s.golang.dictionary != nil {
		return *s.golang.dictionary
	}
	s.golang.dictionary = new(uint64)
	tree, err := s.env.Module.goProgram().tree(s.die)
	if err != nil {
		return 0
	}
	for _, c := range tree.Children {
		if name, _ := c.Val(dwarf.AttrName).(string); name == goDictionary {
			if e := s.env.Module.entryAt(c.Offset); e != nil {
				*s.golang.dictionary, _ = s.goEnv().variable(e, s.fn, 0).bitsOf()
			}
		}
	}
	return *s.golang.dictionary
}

// goEnv is the frame with the registers that Go code has in it. A call keeps none but
// the stack's (Go's internal ABI, "Architecture specifics", amd64).
func (s *Scope) goEnv() *Env {
	if s.env.PC == s.env.Regs.V[RIP] {
		return s.env
	}
	e := *s.env
	e.Regs.Known &= 1<<RSP | 1<<RBP | 1<<RIP
	e.Vector = nil
	return &e
}

var errEscaped = errors.New("no address for escaped variable")

// goValue returns the value of a variable of the scope. A damaged file makes it
// panic at most.
func (s *Scope) goValue(g *goEntry) (v Value) {
	defer func() {
		if recover() != nil {
			v = Value{Name: g.name, env: s.env, err: errExpr}
		}
	}()
	m, env := s.env.Module, s.goEnv()
	e := m.entryAt(g.tree.Offset)
	if e == nil {
		return Value{Name: g.name, env: env, err: errExpr}
	}
	v = env.variable(e, s.fn, 0)
	v.Name = g.name
	t, err := m.goProgram().goTypeOf(g.tree)
	if err != nil {
		v.err = err
		return v
	}
	if p, ok := t.(*godwarf.ParametricType); ok {
		t = env.typeArgument(p, s.goDict())
		v.typ = m.typeAt(t.Common().Offset)
	}
	v.golang = t
	if !g.escaped {
		return v
	}
	p := v.goVar()
	out := p.deref()
	switch {
	case p.err != nil:
		v.err = p.err
		return v
	case out.addr == 0:
		v.err = errEscaped
		return v
	}
	out.name = g.name
	return out.value()
}

// goValues returns the scope's arguments or its other variables.
func (s *Scope) goValues(args bool) (out []Value) {
	s.env.Module.mu.Lock()
	defer s.env.Module.mu.Unlock()
	defer guard()
	list := s.goEntries()
	for i := range list {
		if list[i].isArg == args {
			out = append(out, s.goValue(&list[i]))
		}
	}
	return out
}

// goLookup returns the variable that a name means in the scope.
func (s *Scope) goLookup(name string) (Value, bool) {
	list := s.goEntries()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].name == name {
			return s.goValue(&list[i]), true
		}
	}
	return Value{}, false
}
