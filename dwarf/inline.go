package dwarf

import (
	"debug/dwarf"
	"slices"
)

// Where functions were inlined. An inlined function has no symbol and no entry in
// the list of functions with code: each place where it was inlined is an entry
// inside of another function that refers to the abstract one (DWARF 5, 3.3.8).

// InlineSites returns the addresses at which the functions of that name are entered
// where they were inlined, sorted. A name is as for Functions.
func (m *Module) InlineSites(name string) (out []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if m.data == nil {
		return nil
	}
	sites := m.inlineSites()
	for _, off := range m.names().abstract[name] {
		out = append(out, sites[off]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsInlined reports whether there are functions of that name that were inlined somewhere.
func (m *Module) IsInlined(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	return m.data != nil && len(m.names().abstract[name]) > 0
}

// inlineSites returns where each abstract function was inlined, by its offset. The
// whole file is read for it, once.
func (m *Module) inlineSites() map[dwarf.Offset][]uint64 {
	x := m.names()
	if x.sites != nil {
		return x.sites
	}
	x.sites = map[dwarf.Offset][]uint64{}
	r := m.data.Reader()
	last := dwarf.Offset(0)
	for range maxEntries {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag != 0 && e.Offset <= last {
			break // a damaged file leads backwards
		}
		last = max(last, e.Offset)
		if e.Tag != dwarf.TagInlinedSubroutine {
			continue
		}
		origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			continue
		}
		if rs, err := m.data.Ranges(e); err == nil && len(rs) > 0 && len(x.sites[origin]) < maxPlaces && m.meter.take(indexedBytes) == nil {
			x.sites[origin] = append(x.sites[origin], siteOf(e, rs))
		}
	}
	return x.sites
}

// siteOf is where an inlined function is entered. GCC's DW_AT_entry_pc may lie
// outside of the function's ranges, between two of its statements that were moved:
// nothing would show there that it was entered, so the first range counts, as with
// gdb.
func siteOf(e *dwarf.Entry, ranges [][2]uint64) uint64 {
	pc := entryPC(e, ranges)
	for _, r := range ranges {
		if pc >= r[0] && pc < r[1] {
			return pc
		}
	}
	return ranges[0][0]
}
