package dwarf

import "debug/dwarf"

// The value of a variable in a frame: from its entry to the place that holds at the pc.

// functionEntry returns the entry of the function at pc, or nil.
func (m *Module) functionEntry(pc uint64) *dwarf.Entry {
	if f := m.functionAt(pc); f != nil {
		return m.entryAt(f.offset)
	}
	return nil
}

// bound evaluates the bound of an array.
func (e *Env) bound(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case []byte:
		if e == nil || e.Module == nil {
			return 0, false
		}
		fn := e.Module.functionEntry(e.pc())
		if fn == nil {
			return 0, false
		}
		ps, err := e.locate(e.Module, fn, fn, v, 1)
		if err != nil || len(ps) != 1 || ps[0].place != inMemory {
			return 0, false
		}
		return int64(ps[0].addr), true // the value of the expression
	case dwarf.Offset:
		if e == nil || e.Module == nil {
			return 0, false
		}
		n, ok := e.integerOf(e.Module, v, 1)
		return int64(n), ok
	}
	return 0, false
}

// integerOf reads the integer variable of an entry.
func (e *Env) integerOf(m *Module, off dwarf.Offset, depth int) (uint64, bool) {
	d := m.entryAt(off)
	if d == nil || depth > maxNested {
		return 0, false
	}
	n, err := e.variable(d, m.functionEntry(e.pc()), depth).bitsOf()
	return n, err == nil
}

// variable returns the value of a variable's or parameter's entry; fn is the
// function's.
func (e *Env) variable(d, fn *dwarf.Entry, depth int) Value {
	m := e.Module
	v := Value{env: e, typ: m.typeOf(d)}
	v.Name, _ = m.attr(d, dwarf.AttrName).(string)
	if d.Val(dwarf.AttrLocation) == nil {
		if c := m.attr(d, dwarf.AttrConstValue); c != nil {
			v.pieces = []piece{{place: isBytes, bytes: constant(c)}}
			return v
		}
		if d = m.locationEntry(d); d == nil {
			v.err = errLost
			return v
		}
	}
	expr, ok := m.location(d, dwarf.AttrLocation, e.locationPC(d))
	if !ok {
		v.err = errLost
		return v
	}
	v.pieces, v.err = e.locate(m, d, fn, expr, depth)
	if v.err == nil && len(v.pieces) == 1 && v.pieces[0].place == isLost {
		v.err = errLost
	}
	return v
}

// locationPC is the address whose row of a location list says where a variable is.
// In the middle of a call that is the call's own: the list of a variable that the
// call loses ends behind it. Go's compiler writes at the address behind the call
// where a variable is meanwhile.
func (e *Env) locationPC(d *dwarf.Entry) uint64 {
	if e.Module.isGo(d.Offset) {
		return e.Regs.V[RIP] - e.Bias
	}
	return e.pc()
}

// locationEntry returns the entry that says where the variable d is: it, what it
// is an instance of, or for a declaration the definition; nil when none does.
func (m *Module) locationEntry(d *dwarf.Entry) *dwarf.Entry {
	for e, n := d, 0; e != nil && n < 8; n++ {
		if e.Val(dwarf.AttrLocation) != nil {
			return e
		}
		off, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if off, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				break
			}
		}
		e = m.entryAt(off)
	}
	if declared, _ := m.attr(d, dwarf.AttrDeclaration).(bool); !declared {
		return nil
	}
	name, _ := m.attr(d, dwarf.AttrName).(string)
	for _, off := range m.names().variables[name] {
		if e := m.entryAt(off); e != nil && e.Val(dwarf.AttrLocation) != nil {
			return e
		}
	}
	return nil
}

// constant returns the bytes of DW_AT_const_value.
func constant(c any) []byte {
	switch c := c.(type) {
	case int64:
		b := make([]byte, 16)
		for i := range b {
			b[i] = byte(c >> min(8*i, 63))
		}
		return b
	case []byte:
		return c
	case string:
		return append([]byte(c), 0)
	}
	return nil
}
