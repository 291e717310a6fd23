package dwarf

import (
	"debug/dwarf"
	"slices"
	"strings"
)

// Which functions and variables there are at a place in the code. Their values are in
// variable.go, those of Go programs' variables in goscope.go.

// Scope is one function at a place in the code, the one the code belongs to or
// one that was inlined there, with the variables that can be seen in it.
type Scope struct {
	Function string
	Inlined  bool
	// CallFile and CallLine are where the call of an inlined function stands.
	CallFile string
	CallLine int

	env    *Env
	fn     *dwarf.Entry // the function whose frame it is
	die    dwarf.Offset // its own entry
	line   int          // the line that is executed in it
	golang *goScope     // of a Go function, once it was looked at
	args   []*dwarf.Entry
	locals []*dwarf.Entry // those of inner blocks before those of outer ones
}

// maxVariables bounds the variables of one scope.
const maxVariables = 1 << 14

// Scopes returns the functions at the frame's place, innermost first: those that
// were inlined there, and at last the one whose code it is. There is none when
// the module has no debugging information for the place.
func (e *Env) Scopes() (out []Scope) {
	m := e.Module
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	f := m.functionAt(e.pc())
	if f == nil {
		return nil
	}
	r := m.data.Reader()
	r.Seek(f.offset)
	fn, err := r.Next()
	if err != nil || fn == nil {
		return nil
	}
	w := &scopeWalk{m: m, r: r, pc: e.pc(), env: e, fn: fn, files: m.filesAt(e.pc())}
	top := Scope{Function: f.name, env: e, fn: fn, die: fn.Offset}
	if fn.Children {
		w.function(&top, fn, 0)
	}
	w.out = append(w.out, top)
	out = w.out
	line := m.lineAt(e.pc())
	for i := range out {
		out[i].line, line = line, out[i].CallLine
	}
	return out
}

// scopeWalk collects the scopes of one function.
type scopeWalk struct {
	m     *Module
	r     *entryReader
	pc    uint64
	env   *Env
	fn    *dwarf.Entry
	files []string
	out   []Scope // of inlined functions, innermost first
	n     int
	last  dwarf.Offset
}

// function reads what stands below a function's entry, or an inlined one's, and
// adds what only the abstract function has: its variables that are nowhere.
func (w *scopeWalk) function(s *Scope, e *dwarf.Entry, depth int) {
	seen := map[dwarf.Offset]bool{}
	w.block(s, depth, seen)
	origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
	if !ok {
		return
	}
	r := w.m.data.Reader()
	r.Seek(origin)
	if o, err := r.Next(); err != nil || o == nil || !o.Children {
		return
	}
	for range maxVariables {
		c, err := r.Next()
		if err != nil || c == nil || c.Tag == 0 {
			return
		}
		if !seen[c.Offset] {
			s.add(w.m, c)
		}
		r.SkipChildren()
	}
}

// add adds a variable or parameter.
func (s *Scope) add(m *Module, e *dwarf.Entry) {
	if name, _ := m.attr(e, dwarf.AttrName).(string); name == "" || len(s.args)+len(s.locals) > maxVariables {
		return
	}
	switch e.Tag { //nolint:exhaustive // the others are no variables
	case dwarf.TagFormalParameter:
		s.args = append(s.args, e)
	case dwarf.TagVariable:
		if declared, _ := e.Val(dwarf.AttrDeclaration).(bool); !declared {
			s.locals = append(s.locals, e)
		}
	}
}

// block reads the children of the entry that was read last.
func (w *scopeWalk) block(s *Scope, depth int, seen map[dwarf.Offset]bool) {
	outer := len(s.locals)
	for w.n < maxEntries && depth < maxDepth {
		w.n++
		e, err := w.r.Next()
		if err != nil || e == nil || e.Tag == 0 || e.Offset <= w.last {
			break
		}
		w.last = e.Offset
		if o, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok {
			seen[o] = true
		}
		switch e.Tag {
		case dwarf.TagFormalParameter, dwarf.TagVariable:
			s.add(w.m, e)
			w.r.SkipChildren()
		case dwarf.TagLexDwarfBlock:
			if !e.Children || !w.m.covers(e, w.pc) && hasRange(e) {
				w.r.SkipChildren()
				continue
			}
			inner := Scope{env: s.env, fn: s.fn}
			w.block(&inner, depth+1, seen)
			s.args = append(s.args, inner.args...)
			s.locals = slices.Insert(s.locals, outer, inner.locals...)
		case dwarf.TagInlinedSubroutine:
			if !w.m.covers(e, w.pc) {
				w.r.SkipChildren()
				continue
			}
			w.inlined(e, depth)
		default:
			w.r.SkipChildren()
		}
	}
}

// hasRange reports whether a block says where its code is. One that does not
// only groups what is in it.
func hasRange(e *dwarf.Entry) bool {
	return e.Val(dwarf.AttrLowpc) != nil || e.Val(dwarf.AttrRanges) != nil
}

// inlined adds the scope of a function that was inlined around pc.
func (w *scopeWalk) inlined(e *dwarf.Entry, depth int) {
	in := Scope{Function: w.m.nameOf(e, 0), Inlined: true, env: w.env, fn: w.fn, die: e.Offset}
	if n, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
		in.CallLine = int(n)
	}
	if n, ok := e.Val(dwarf.AttrCallFile).(int64); ok && n >= 0 && int(n) < len(w.files) {
		in.CallFile = w.files[n]
	}
	if e.Children {
		w.function(&in, e, depth+1)
	}
	w.out = append(w.out, in)
}

// Arguments returns the function's parameters.
func (s *Scope) Arguments() []Value {
	if s.isGo() {
		return s.goValues(true)
	}
	return s.values(s.args)
}

// Locals returns the variables of the blocks around the place, those of inner
// blocks first: the first of several of the same name is the one it means.
// In Go, the last one.
func (s *Scope) Locals() []Value {
	if s.isGo() {
		return s.goValues(false)
	}
	return s.values(s.locals)
}

// isGo reports whether the function was written in Go.
func (s *Scope) isGo() bool {
	m := s.env.Module
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	return m.isGo(s.die)
}

func (s *Scope) values(entries []*dwarf.Entry) (out []Value) {
	s.env.Module.mu.Lock()
	defer s.env.Module.mu.Unlock()
	for _, e := range entries {
		out = append(out, s.value(e))
	}
	return out
}

// value is Env.variable, which a damaged file makes panic at most.
func (s *Scope) value(e *dwarf.Entry) (v Value) {
	defer func() {
		if recover() != nil {
			v = Value{Name: v.Name, env: s.env, err: errExpr}
		}
	}()
	return s.env.variable(e, s.fn, 0)
}

// lookup returns the parameter or variable that a name means in the scope.
func (s *Scope) lookup(name string) (Value, bool) {
	m := s.env.Module
	if m.isGo(s.die) {
		return s.goLookup(name)
	}
	if e := s.entry(name); e != nil {
		return s.value(e), true
	}
	return Value{}, false
}

// entry returns the entry of the parameter or variable that a name means in the scope, nil
// when there is none.
func (s *Scope) entry(name string) *dwarf.Entry {
	for _, list := range [][]*dwarf.Entry{s.locals, s.args} {
		for _, e := range list {
			if n, _ := s.env.Module.attr(e, dwarf.AttrName).(string); n == name {
				return e
			}
		}
	}
	return nil
}

// nameIndex is where the names outside of functions are declared.
type nameIndex struct {
	variables, types, functions map[string][]dwarf.Offset
	abstract                    map[string][]dwarf.Offset // functions that were inlined
	sites                       map[dwarf.Offset][]uint64 // of abstract ones; nil before it is asked for
	enums                       []dwarf.Offset
	prefix                      map[dwarf.Offset]string // of types: the namespaces and classes around
}

// maxIndexed bounds the names in an index.
const maxIndexed = 4 << 20

// indexedBytes is what a name in an index takes in memory, without its letters.
const indexedBytes = 96

// names reads the index of the whole file, once.
func (m *Module) names() *nameIndex {
	if m.index != nil {
		return m.index
	}
	x := &nameIndex{variables: map[string][]dwarf.Offset{}, types: map[string][]dwarf.Offset{}, functions: map[string][]dwarf.Offset{}, abstract: map[string][]dwarf.Offset{}, prefix: map[dwarf.Offset]string{}}
	m.index = x
	if m.data == nil {
		return x
	}
	w := &indexWalk{m: m, x: x, r: m.data.Reader()}
	for range maxEntries {
		e, err := w.r.Next()
		if err != nil || e == nil || e.Tag != 0 && e.Offset <= w.last {
			break // a damaged file leads backwards
		}
		w.last = max(w.last, e.Offset)
		w.entry(e)
	}
	return x
}

// indexWalk reads the entries outside of functions.
type indexWalk struct {
	m      *Module
	x      *nameIndex
	r      *entryReader
	last   dwarf.Offset
	around []string // prefixes of the entries that are being read, outermost first
}

// entry enters one entry in the index and goes into it if it has names in it.
func (w *indexWalk) entry(e *dwarf.Entry) {
	x, m := w.x, w.m
	name, _ := e.Val(dwarf.AttrName).(string)
	into := false
	switch e.Tag { //nolint:exhaustive // the others have no names to find
	case 0:
		if n := len(w.around); n > 0 {
			w.around = w.around[:n-1]
		}
		return
	case dwarf.TagCompileUnit, dwarf.TagPartialUnit:
		w.around, name, into = w.around[:0], "", true
	case dwarf.TagNamespace:
		if into = true; name == "" {
			name = "(anonymous namespace)"
		}
	case dwarf.TagModule:
		into = true
	case dwarf.TagVariable:
		x.put(x.variables, m, e, w.prefix())
	case dwarf.TagSubprogram:
		if hasRange(e) {
			x.put(x.functions, m, e, "")
		}
		if e.Val(dwarf.AttrInline) != nil {
			x.put(x.abstract, m, e, w.prefix())
		}
	case dwarf.TagBaseType, dwarf.TagTypedef, dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagEnumerationType:
		if p := w.prefix(); p != "" && len(x.prefix) < maxIndexed {
			x.prefix[e.Offset] = p
		}
		if declared, _ := e.Val(dwarf.AttrDeclaration).(bool); !declared {
			x.put(x.types, m, e, w.prefix())
		}
		if e.Tag == dwarf.TagEnumerationType && len(x.enums) < maxIndexed {
			x.enums = append(x.enums, e.Offset)
		}
		into = e.Tag == dwarf.TagStructType || e.Tag == dwarf.TagClassType // types and functions are declared in it
	}
	if !into || len(w.around) > maxDepth {
		w.r.SkipChildren()
		return
	}
	if e.Children {
		prefix := w.prefix()
		if name != "" {
			prefix += name + "::"
		}
		w.around = append(w.around, prefix)
	}
}

// prefix is what stands before the names where the walk is.
func (w *indexWalk) prefix() string {
	if len(w.around) == 0 {
		return ""
	}
	return w.around[len(w.around)-1]
}

// put enters a declaration under its name, and under the demangled one.
func (x *nameIndex) put(to map[string][]dwarf.Offset, m *Module, e *dwarf.Entry, prefix string) {
	name, _ := m.attr(e, dwarf.AttrName).(string)
	for _, n := range []string{name, m.nameOf(e, 0), prefix + name} {
		l := to[n]
		if n == "" || len(to) >= maxIndexed || len(l) > 0 && l[len(l)-1] == e.Offset {
			continue
		}
		if m.meter.take(indexedBytes+len(n)) != nil {
			return
		}
		to[n] = append(l, e.Offset)
	}
}

// Globals returns the variables outside of functions that are declared in the
// unit of the frame's code.
func (e *Env) Globals() (out []Value) {
	m := e.Module
	if m == nil || m.data == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	us := m.unitsAt(e.pc())
	if len(us) == 0 {
		return nil
	}
	h := m.headerOf(us[0].entry.Offset)
	for name, offs := range m.names().variables {
		for _, off := range offs {
			if h == nil || off < h.start || off >= h.end || len(out) > maxVariables {
				continue
			}
			d := m.entryAt(off)
			if d == nil || d.Val(dwarf.AttrLocation) == nil && d.Val(dwarf.AttrConstValue) == nil {
				continue
			}
			if n, _ := m.attr(d, dwarf.AttrName).(string); n != name && m.nameOf(d, 0) != name {
				continue
			}
			out = append(out, e.globalValue(d, name))
		}
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b Value) bool { return a.Name == b.Name })
}

// global returns the variable outside of functions that a name means: one of the
// frame's unit before those of others.
func (e *Env) global(name string) (Value, bool) {
	m := e.Module
	if m == nil || m.data == nil {
		return Value{}, false
	}
	if found := m.globalEntry(e, name); found != nil {
		return e.globalValue(found, name), true
	}
	return Value{}, false
}

// globalEntry returns its entry, nil when there is none.
func (m *Module) globalEntry(e *Env, name string) *dwarf.Entry {
	var h *header
	if us := m.unitsAt(e.pc()); len(us) > 0 {
		h = m.headerOf(us[0].entry.Offset)
	}
	var found *dwarf.Entry
	for _, off := range m.names().variables[name] {
		d := m.entryAt(off)
		if d == nil || d.Val(dwarf.AttrLocation) == nil && d.Val(dwarf.AttrConstValue) == nil {
			continue
		}
		if found == nil || h != nil && off >= h.start && off < h.end {
			found = d
		}
	}
	return found
}

// globalValue returns the value of a variable outside of functions.
func (e *Env) globalValue(d *dwarf.Entry, name string) Value {
	v := e.variable(d, nil, 0)
	v.Name = name
	if m := e.Module; m.isGo(d.Offset) {
		if t, err := m.goProgram().goTypeOf(d); err == nil {
			v.golang = t
		} else {
			v.err = err
		}
	}
	return v
}
