package dwarf

import "debug/dwarf"

// What a file declares, part by part, for who writes declarations of it: functions, types by
// name, and what types are made of.

// Function is a function that has code.
type Function struct {
	Entry uint64 // file virtual address of its first instruction
	Type  *Type  // of kind KindFunction
}

// DeclaredFunctions returns the functions of that name that have code and a type.
func (m *Module) DeclaredFunctions(name string) (out []Function) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	for _, off := range m.names().functions[name] {
		e := m.entryAt(off)
		if e == nil {
			continue
		}
		low, ok := m.lowOf(e)
		if !ok {
			continue
		}
		for range maxChain { // a copy of an inlined one has its type there
			o, isCopy := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
			if !isCopy {
				if o, isCopy = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !isCopy {
					break
				}
			}
			d := m.entryAt(o)
			if d == nil {
				break
			}
			off, e = o, d
		}
		if t := m.typeAt(off); t != nil && t.Kind == KindFunction {
			out = append(out, Function{low, t})
		}
	}
	return out
}

// lowOf returns where the code of a function begins.
func (m *Module) lowOf(e *dwarf.Entry) (uint64, bool) {
	if low, ok := e.Val(dwarf.AttrLowpc).(uint64); ok {
		return low, true
	}
	rs, err := m.data.Ranges(e)
	if err != nil || len(rs) == 0 {
		return 0, false
	}
	return rs[0][0], true
}

// DeclaredTypes returns the types that are called so and are complete: what typedefs name, and structs, unions and
// enumerations by their tags.
func (m *Module) DeclaredTypes(name string) (out []*Type) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	for _, off := range m.names().types[name] {
		if t := m.typeAt(off); t != nil && t.Kind != KindBase && t.Kind != KindUnknown {
			out = append(out, t)
		}
	}
	return out
}

// Enumeration returns the first enumeration that has an enumerator of that name, nil when none has.
func (m *Module) Enumeration(enumerator string) (found *Type) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	for _, off := range m.names().enums {
		t := m.typeAt(off)
		if t == nil {
			continue
		}
		t.load()
		for i := range t.enums {
			if t.enums[i].name == enumerator {
				return t
			}
		}
	}
	return nil
}

// Global returns the variable outside of functions that a name means in the frame.
func (e *Env) Global(name string) (v Value, ok bool) {
	if e.Module == nil {
		return Value{}, false
	}
	e.Module.mu.Lock()
	defer e.Module.mu.Unlock()
	defer func() {
		if recover() != nil {
			v, ok = Value{}, false
		}
	}()
	return e.global(name)
}

// Variable returns the parameter or variable that a name means in the scope. absent says that the compiler
// has it nowhere at this place, in any frame.
func (s *Scope) Variable(name string) (v Value, absent, ok bool) {
	m := s.env.Module
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if recover() != nil {
			v, absent, ok = Value{}, false, false
		}
	}()
	d := s.entry(name)
	if d == nil {
		return Value{}, false, false
	}
	v = s.value(d)
	if d.Val(dwarf.AttrLocation) == nil {
		if m.attr(d, dwarf.AttrConstValue) != nil {
			return v, false, true
		}
		if d = m.locationEntry(d); d == nil {
			return v, true, true
		}
	}
	expr, has := m.location(d, dwarf.AttrLocation, s.env.locationPC(d))
	return v, !has || len(expr) == 0, true
}

// Bytes returns the bytes of the value, wherever they are. The error says why one is missing.
func (v Value) Bytes() (b []byte, err error) {
	defer v.lock()()
	b, err = nil, errLost // unless a damaged file makes it panic
	b, err = v.whole(v.typ.byteSize(v.env))
	return b, err
}

// locked calls f with the type's module locked; nothing where a damaged file makes it panic.
func (t *Type) locked(f func()) {
	if t == nil || t.m == nil {
		return
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	defer guard()
	f()
}

// Element returns what a pointer or reference points to, the element of an array, the type behind a typedef or qualifier, the type that an
// enumeration is stored as, the result of a function; nil for void.
func (t *Type) Element() (e *Type) {
	t.locked(func() { e = t.element() })
	return e
}

// Count returns the number of elements of an array, -1 when the type does not say.
func (t *Type) Count() (n int64) {
	n = -1
	t.locked(func() { n = t.length(nil) })
	return n
}

// Size returns the bytes of the type, -1 when they are not known.
func (t *Type) Size() (n int64) {
	n = -1
	t.locked(func() { n = t.byteSize(nil) })
	return n
}

// Alignment returns what the type is aligned to, in bytes, 1 when it is not known.
func (t *Type) Alignment() (n int64) {
	n = 1
	t.locked(func() { n = max(t.alignment(), t.align) })
	return n
}

// Parameters returns the types of a function's parameters. variadic says that more may follow, known that the function
// was declared with them.
func (t *Type) Parameters() (list []*Type, variadic, known bool) {
	t.locked(func() {
		t.load()
		for _, off := range t.params {
			list = append(list, t.m.typeAt(off))
		}
		variadic = t.further
		if e := t.m.entryAt(t.off); e != nil {
			known, _ = e.Val(dwarf.AttrPrototyped).(bool)
		}
	})
	return list, variadic, known
}

// Name returns the type's name as it is declared: a typedef's, a base type's, or a tag; "" when it has none.
func (t *Type) Name() string { return t.name }

// Word returns the word that C has before a tag, or for a qualifier: struct, union, class, enum, const, volatile.
func (t *Type) Word() string { return t.word }

// TypeID tells a type from all others.
type TypeID struct {
	m   *Module
	off dwarf.Offset
}

// ID returns the type's. A struct that is declared in one unit and defined in another has one; so have the
// arrays that the dimensions of one are.
func (t *Type) ID() TypeID { return TypeID{t.m, t.off} }

// IsDeclaration reports whether the file says no more of the type than that there is one.
func (t *Type) IsDeclaration() bool { return t.isDecl }

// IsSigned, IsFloat, IsBoolean and IsComplex say what a base type holds.
func (t *Type) IsSigned() bool  { return t.enc == encSigned || t.enc == encSignedChar }
func (t *Type) IsFloat() bool   { return t.enc == encFloat }   // IsFloat: see IsSigned.
func (t *Type) IsBoolean() bool { return t.enc == encBoolean } // IsBoolean: see IsSigned.
func (t *Type) IsComplex() bool { return t.enc == encComplex } // IsComplex: see IsSigned.

// Member is a member of a struct or union.
type Member struct {
	Name   string // "" of what has none, and of a base class
	Type   *Type
	Offset int64 // in bits from the start, -1 when it depends on the object
	Bits   int64 // of a bit field, 0 for others
}

// Members returns the members of a struct or union that are in each object, in the order of declaration.
func (t *Type) Members() (out []Member) {
	t.locked(func() {
		t.load()
		for i := range t.fields {
			f := &t.fields[i]
			if f.isStatic {
				continue
			}
			m := Member{Name: f.name, Type: t.m.typeAt(f.typ), Offset: f.off * 8, Bits: f.bits}
			switch {
			case f.expr != nil:
				m.Offset = -1
			case f.bits != 0:
				m.Offset = f.bitOff
			}
			out = append(out, m)
		}
	})
	return out
}

// Enumerator is one value of an enumeration.
type Enumerator struct {
	Name  string
	Value int64
}

// Enumerators returns the values of an enumeration.
func (t *Type) Enumerators() (out []Enumerator) {
	t.locked(func() {
		t.load()
		for _, e := range t.enums {
			out = append(out, Enumerator{e.name, e.value})
		}
	})
	return out
}
