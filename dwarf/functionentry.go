package dwarf

import (
	"debug/dwarf"
	"slices"
	"strings"
)

// Where the functions of a name begin, for breakpoints. Breakpoints on lines are in places.go;
// which function an address is in is said by lines.go.

// Functions returns the addresses of the first instructions of the functions of
// that name, also of those in namespaces and classes by their full name, and of all versions of a symbol.
func (m *Module) Functions(name string) (out []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if m.data != nil {
		for _, off := range m.names().functions[name] {
			if e := m.entryAt(off); e != nil {
				if rs, err := m.data.Ranges(e); err == nil && len(rs) > 0 {
					out = append(out, entryPC(e, rs))
				}
			}
		}
	}
	if len(out) == 0 { // a library may have several versions of a symbol
		for i := range m.symbols {
			if m.symbols[i].name == name {
				out = append(out, m.symbols[i].addr)
			}
		}
	}
	if len(out) == 0 {
		if addr, ok := m.Lookup(name); ok {
			out = append(out, addr)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Entries returns the addresses of the first instructions of the functions that the unwind
// tables and debugging information know, sorted, most at most. A part of a function that the
// compiler has moved away (NAME.cold) is none.
func (m *Module) Entries(most int) (out []uint64) {
	for _, s := range m.frames {
		s.once.Do(s.parse)
		for i := range s.fdes {
			low := s.fdes[i].low
			if len(out) >= most || m.meter.spend(1) != nil {
				break
			}
			if name, entry, ok := m.Function(low); ok && (entry != low || strings.HasSuffix(name, ".cold")) {
				continue
			}
			out = append(out, low)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// entryPC is where a function is entered: DW_AT_entry_pc, or the start of its
// first range.
func entryPC(e *dwarf.Entry, ranges [][2]uint64) uint64 {
	switch pc := e.Val(dwarf.AttrEntrypc).(type) {
	case uint64:
		return pc
	case int64: // from the start of the function (DWARF 5, 2.18)
		return ranges[0][0] + uint64(pc)
	}
	return ranges[0][0]
}
