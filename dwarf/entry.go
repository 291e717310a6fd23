package dwarf

import "debug/dwarf"

// What is asked of a single entry, or of a unit's own one. Going through many entries is
// in entries.go, the values of attributes in forms.go.

// rootOf returns the entry of a unit itself; nil when it cannot be read.
func (m *Module) rootOf(h *header) *dwarf.Entry {
	if h.root == nil {
		h.root = m.entryAt(h.first)
	}
	return h.root
}

// entryAt reads one entry; nil when there is none.
func (m *Module) entryAt(off dwarf.Offset) *dwarf.Entry {
	r := m.data.Reader()
	r.Seek(off)
	e, err := r.Next()
	if err != nil || e == nil || e.Tag == 0 {
		return nil
	}
	return e
}

// attr returns an attribute of an entry, its own or of what it is an instance
// or a definition of.
func (m *Module) attr(e *dwarf.Entry, a dwarf.Attr) any {
	for range 8 {
		if v := e.Val(a); v != nil {
			return v
		}
		off, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if off, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				return nil
			}
		}
		if e = m.entryAt(off); e == nil {
			return nil
		}
	}
	return nil
}

// language returns the language of a unit (DW_AT_language), 0 where it does not say; ok
// is false where there is no unit to ask. h may be nil.
func (m *Module) language(h *header) (lang int64, ok bool) {
	if h == nil {
		return 0, false
	}
	root := m.rootOf(h)
	if root == nil {
		return 0, false
	}
	lang, _ = root.Val(dwarf.AttrLanguage).(int64)
	return lang, true
}

// isC reports whether a unit is written in C, where "struct" is part of a
// type's name (DWARF 5, 7.12).
func (m *Module) isC(h *header) bool {
	lang, ok := m.language(h)
	if !ok {
		return true
	}
	switch lang {
	case 0x01, 0x02, 0x0c, 0x1d, 0x2c:
		return true
	}
	return false
}
