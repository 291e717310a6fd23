package debugcode

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/mem"
)

// What names mean in the recorded program, and where regions are in it.

// symbol is something of the program that debug code names, as its linker knows it.
type symbol struct {
	name     string // in the object file
	program  string // in the program
	typ      *dwarf.Type
	function *functionAt // nil for variables
	absent   string      // a local: the place at which the compiler has it nowhere
	isLocal  bool
	isThread bool      // a variable of each thread
	module   moduleKey // a global variable: the file that has it
	unit     uint64    // an address of the unit whose variable it is, 0 for any
	place    uint64    // file virtual address, of one that is in memory

	sites   []site // the places of its address, in debug code
	data    []site // those that are in data, and are set once
	value   uint64 // what is there
	isSet   bool
	scratch uint64 // a local: where it is put that is not in memory
}

// site is a place that has a symbol's address, with a number added.
type site struct{ at, addend uint64 }

// functionAt is a function of a module.
type functionAt struct {
	module moduleKey
	entry  uint64 // file virtual address; 0: by name, of any module
	isBare bool   // nothing is known of it but its name
}

// moduleKey tells the files of a program apart.
type moduleKey struct{ path, id string }

func keyOf(mod *image.Module) moduleKey { return moduleKey{mod.Path, mod.BuildID} }

// moment is a memory map with what is known of it.
type moment struct {
	res *loader.Resolver
	mem debug.Memory
}

// moments returns the two at which names are looked up: the end of the process where the recording has that, for all that it
// loads is there, and the start of its last interval. done gives back their memory.
func moments(s *replay.Session, pid int32, last uint32, files *loader.ModuleFiles) (out []moment, done func(), err error) {
	var closers []func()
	done = func() {
		for _, c := range closers {
			c()
		}
	}
	add := func(space *mem.Space) {
		m := debug.Memory{Space: space}
		out = append(out, moment{loader.NewResolver(debug.Regions(s.Rec, space), m, files), m})
	}
	if f, err := s.FinalOf(pid); err == nil {
		closers = append(closers, f.Mem.Close)
		add(f.Mem)
	}
	k, err := s.Start(last)
	if err != nil {
		done()
		return nil, nil, err
	}
	v := s.Viewer(k)
	k.Release()
	closers = append(closers, v.Close)
	add(v.Mem)
	return out, done, nil
}

// zeroes is memory that reads as zero, for variables whose type alone is asked for.
type zeroes struct{}

func (zeroes) ReadMemory(_ uint64, b []byte) int {
	clear(b)
	return len(b)
}

// spot is a place of a region in a module.
type spot struct {
	r     *region
	addr  uint64 // file virtual address
	entry uint64 // of the function, for calls
}

// spotsIn returns where a region is in a module whose file is d.
func (r *region) spotsIn(d *dwarf.Module) (out []spot) {
	switch r.kind {
	case atLine:
		if !d.HasLines() {
			return nil
		}
		for _, p := range d.Places(r.file, r.line) {
			if p.Line == r.line { // else the line has no code, and that is the next one that has
				out = append(out, spot{r: r, addr: p.Addr})
			}
		}
	case onCall:
		for _, entry := range d.Functions(r.arg) {
			out = append(out, spot{r, d.Body(entry), entry})
		}
	default:
	}
	return out
}

// env returns a frame at a place of a file, in which variables have types but no values.
func env(d *dwarf.Module, addr uint64) *dwarf.Env {
	e := &dwarf.Env{Frame: dwarf.Frame{PC: addr, Module: d}, Mem: zeroes{}}
	for n := range e.Regs.V {
		e.Regs.Set(n, 0)
	}
	e.Regs.Set(dwarf.RIP, addr)
	e.TLS = func(*dwarf.Module, uint64) (uint64, bool) { return 0, true }
	return e
}

// frameAt is a frame at a place of a file.
type frameAt struct {
	*dwarf.Env
	file moduleKey
}

// lookup finds what names mean.
type lookup struct {
	moments []moment
	envs    map[*region][]frameAt // the places of each region
	symbols map[string]*symbol    // by the names that debug code has
	own     map[string]bool       // names that the file declares outside of functions
	decl    *declarer
	globals []string // in the order of use
}

// place finds the places of a region.
func (l *lookup) place(r *region) error {
	if r.kind != atLine && r.kind != onCall {
		return nil
	}
	seen := map[moduleKey]bool{}
	next, known := 0, false
	for _, m := range l.moments {
		for _, mod := range m.res.Modules() {
			d := m.res.File(mod)
			if d == nil || seen[keyOf(mod)] {
				continue
			}
			seen[keyOf(mod)] = true
			for _, s := range r.spotsIn(d) {
				l.envs[r] = append(l.envs[r], frameAt{env(d, s.addr), keyOf(mod)})
			}
			if r.kind == atLine && d.HasLines() {
				for _, p := range d.Places(r.file, r.line) {
					next, known = p.Line, true
				}
			}
		}
	}
	switch {
	case len(l.envs[r]) > 0:
		return nil
	case known:
		return &Error{r.at, fmt.Sprintf("line %d of %s has no code; the next line that has some is %d", r.line, r.file, next)}
	case r.kind == atLine:
		return &Error{r.at, fmt.Sprintf("no source file %s is known in the recorded program (--symbols names folders with files that know more)", r.file)}
	}
	return &Error{r.at, fmt.Sprintf("no function %s has code of its own in the recorded program (--symbols names folders with files that know more)", r.arg)}
}

// local makes a symbol for a variable of the program at a region's place, where there is one of that name.
func (l *lookup) local(r *region, name string) {
	if r.locals[name] != nil {
		return
	}
	for _, e := range l.envs[r] {
		scopes := e.Scopes()
		if len(scopes) == 0 {
			continue
		}
		v, absent, ok := scopes[0].Variable(name)
		if !ok {
			continue
		}
		s := r.locals[name]
		if s == nil {
			s = &symbol{name: fmt.Sprintf("vplay_l%d_%s", r.number, name), program: name, typ: v.Type(), isLocal: true}
			r.locals[name] = s
			r.order = append(r.order, name)
			l.decl.use(s.typ, true, 0)
		}
		if absent {
			file, line, _ := e.Module.Line(e.PC)
			s.absent = fmt.Sprintf("%#x (%s:%d)", e.PC, filepath.Base(file), line)
		}
	}
}

// programPrefix stands before names that mean the program's, where debug code's C library has that name, too.
const programPrefix = "vplay_program_"

// global finds what a name means outside of functions, and declares it. r is the region that uses it, nil outside of them.
func (l *lookup) global(r *region, name string) error {
	if s := l.symbols[name]; s != nil {
		return l.agrees(r, name, s)
	}
	program, explicit := name, false
	if len(name) > len(programPrefix) && name[:len(programPrefix)] == programPrefix {
		program, explicit = name[len(programPrefix):], true
	}
	if !isIdentifier(program) || !explicit && l.decl.taken.names[name] {
		return nil
	}
	s := &symbol{name: fmt.Sprintf("vplay_g%d", len(l.globals)+1), program: program}
	for _, e := range l.envs[r] {
		if v, ok := e.Global(program); ok {
			s.typ, s.module, s.unit = v.Type(), e.file, e.PC
			s.place, _ = v.Address()
			l.add(name, s)
			return nil
		}
	}
	for _, m := range l.moments {
		for _, mod := range m.res.Modules() {
			d := m.res.File(mod)
			if d != nil && l.find(d, mod, name, s) {
				return nil
			}
		}
	}
	if explicit && l.bare(program) {
		s.function = &functionAt{isBare: true}
		l.add(name, s)
	}
	return nil
}

// agrees refuses a name that means one static variable in the file of one region and another in that of r.
func (l *lookup) agrees(r *region, name string, s *symbol) error {
	if s.function != nil {
		return nil
	}
	for _, e := range l.envs[r] {
		v, ok := e.Global(s.program)
		if a, inMemory := v.Address(); ok && inMemory && (e.file != s.module || a != s.place) {
			return &Error{r.at, fmt.Sprintf("%s is another variable in this file than in that of a region before; give each a debug code of its own", name)}
		}
	}
	return nil
}

// bare reports whether there is a symbol of that name.
func (l *lookup) bare(program string) bool {
	for _, m := range l.moments {
		if _, mod := m.res.Lookup(program); mod != nil {
			return true
		}
	}
	return false
}

// find finds a variable, a function, a type or an enumerator in a module.
func (l *lookup) find(d *dwarf.Module, mod *image.Module, name string, s *symbol) bool {
	e := env(d, 0)
	if v, ok := e.Global(s.program); ok {
		s.typ, s.module = v.Type(), keyOf(mod)
		s.place, _ = v.Address()
		l.add(name, s)
		return true
	}
	if list := d.DeclaredFunctions(s.program); len(list) > 0 {
		s.typ, s.function = list[0].Type, &functionAt{module: keyOf(mod), entry: list[0].Entry}
		l.add(name, s)
		return true
	}
	for _, t := range d.DeclaredTypes(name) {
		if t.Kind == dwarf.KindTypedef {
			l.decl.use(t, true, 0)
			return true
		}
	}
	if t := d.Enumeration(name); t != nil {
		l.decl.use(t, true, 0)
		return true
	}
	return false
}

// add declares a variable or function.
func (l *lookup) add(name string, s *symbol) {
	l.symbols[name] = s
	l.globals = append(l.globals, name)
	l.decl.taken.names[name] = true
	l.decl.use(s.typ, s.function == nil, 0)
	if s.function != nil {
		if !s.function.isBare {
			l.decl.use(s.typ.Element(), true, 0)
			list, _, _ := s.typ.Parameters()
			for _, p := range list {
				l.decl.use(p, true, 0)
			}
		}
		return
	}
	l.isThread(s)
}

// isThread finds out whether a variable is of each thread.
func (l *lookup) isThread(s *symbol) {
	check := func(e *dwarf.Env) bool {
		e.TLS = func(*dwarf.Module, uint64) (uint64, bool) {
			s.isThread = true
			return 0, true
		}
		_, ok := e.Global(s.program)
		return ok
	}
	for _, m := range l.moments {
		for _, mod := range m.res.Modules() {
			if d := m.res.File(mod); d != nil && check(env(d, 0)) {
				return
			}
		}
	}
}

// tag declares the struct, union or enumeration of a tag.
func (l *lookup) tag(name string) {
	if l.decl.taken.tags[name] {
		return
	}
	for _, m := range l.moments {
		for _, mod := range m.res.Modules() {
			d := m.res.File(mod)
			if d == nil {
				continue
			}
			for _, t := range d.DeclaredTypes(name) {
				if t.Kind != dwarf.KindTypedef && t.Name() == name {
					l.decl.use(t, true, 0)
					return
				}
			}
		}
	}
}

// declarations writes what was found.
func (l *lookup) declarations() string {
	l.decl.finish()
	for _, name := range l.globals {
		s := l.symbols[name]
		text := "long " + name + "()"
		if s.function == nil || !s.function.isBare {
			text = l.decl.declare(s.typ, name, 0)
		}
		fmt.Fprintf(&l.decl.out, "extern %s __asm__(\"%s\");\n", text, s.name)
	}
	return l.decl.out.String()
}

// declareLocals writes the declarations of what a region uses of its place, in one line.
func (l *lookup) declareLocals(r *region) (out string) {
	for _, name := range r.order {
		s := r.locals[name]
		out += "extern " + l.decl.declare(s.typ, s.name, 0) + "; "
	}
	return out
}

// window finds addresses that no interval of the process has anything at.
func window(rec *checkpoint.Recording, ids []uint32) (start uint64, err error) {
	var used []checkpoint.Mapping
	for _, id := range ids {
		iv, err := rec.Interval(id)
		if err != nil {
			return 0, err
		}
		used = append(used, iv.Maps...)
	}
	for a := uint64(firstWindow); a < lastWindow; a += windowSize {
		if !slices.ContainsFunc(used, func(m checkpoint.Mapping) bool { return m.Start < a+windowSize && m.End > a }) {
			return a, nil
		}
	}
	return 0, errNoWindow
}

// Debug code is put where Linux puts nothing by itself: programs are mapped around 0x555555554000, libraries and stacks
// below 0x7fff00000000.
const (
	firstWindow = 0x2000_0000_0000
	lastWindow  = 0x5000_0000_0000
	windowSize  = 0x10_0000_0000
)

var errNoWindow = errors.New("the recorded program has used all addresses at which debug code could be")

// modulesOf returns the modules of a moment by their keys.
func modulesOf(res *loader.Resolver) map[moduleKey]*image.Module {
	out := map[moduleKey]*image.Module{}
	for _, mod := range res.Modules() {
		out[keyOf(mod)] = mod
	}
	return out
}

// sortedSymbols returns symbols by name.
func sortedSymbols(m map[string]*symbol) (out []*symbol) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}
