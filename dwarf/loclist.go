package dwarf

import (
	"debug/dwarf"
)

// Location lists say where a variable is while pc is in a range. DWARF 2 to 4
// have them in .debug_loc (DWARF 4, 2.6.2), DWARF 5 in .debug_loclists (7.7.3).

// maxLocations bounds the entries of a list that are looked at.
const maxLocations = 1 << 16

// Kinds of entries in .debug_loclists (DWARF 5, table 7.10).
const (
	lleEnd = iota
	lleBaseAddressX
	lleStartXEndX
	lleStartXLength
	lleOffsetPair
	lleDefault
	lleBaseAddress
	lleStartEnd
	lleStartLength
	lleViewPair // GNU: two numbers about the entry that follows
)

// location returns the expression that says where the variable e is at pc. ok is
// false when it is nowhere: optimized out.
func (m *Module) location(e *dwarf.Entry, a dwarf.Attr, pc uint64) (expr []byte, ok bool) {
	f := e.AttrField(a)
	if f == nil {
		return nil, false
	}
	h := m.headerOf(e.Offset)
	switch v := f.Val.(type) {
	case []byte:
		return v, true
	case int64:
		if h == nil || f.Class != dwarf.ClassLocListPtr {
			return nil, false
		}
		if h.version >= 5 {
			return m.inLocLists(h, uint64(v), pc)
		}
		return m.inLoc(h, uint64(v), pc)
	case uint64: // DW_FORM_loclistx: an index into a table of offsets
		if h == nil || f.Class != dwarf.ClassLocList {
			return nil, false
		}
		size := uint64(4)
		if h.dwarf64 {
			size = 8
		}
		base := m.base(h, dwarf.AttrLoclistsBase)
		_, lists := m.sec.lists()
		if n := uint64(len(lists)); base > n || v >= (n-base)/size {
			return nil, false
		}
		c := cursor{b: lists, at: int(base + v*size)}
		return m.inLocLists(h, base+c.uint(size), pc)
	}
	return nil, false
}

// lowPC is where a unit's code begins, the base of its location lists.
func (m *Module) lowPC(h *header) uint64 {
	if root := m.rootOf(h); root != nil {
		if low, ok := root.Val(dwarf.AttrLowpc).(uint64); ok {
			return low
		}
	}
	return 0
}

// inLoc looks for pc in a list of .debug_loc.
func (m *Module) inLoc(h *header, off, pc uint64) ([]byte, bool) {
	loc, _ := m.sec.lists()
	if off > uint64(len(loc)) {
		return nil, false
	}
	c := cursor{b: loc, at: int(off)}
	base := m.lowPC(h)
	for range maxLocations {
		if m.meter.spend(rangeWork) != nil {
			return nil, false
		}
		low, high := c.uint(8), c.uint(8)
		switch {
		case c.bad || low == 0 && high == 0:
			return nil, false
		case low == ^uint64(0):
			base = high
			continue
		}
		expr := c.bytes(c.uint(2))
		if !c.bad && pc >= base+low && pc < base+high {
			return expr, true
		}
	}
	return nil, false
}

// inLocLists looks for pc in a list of .debug_loclists.
func (m *Module) inLocLists(h *header, off, pc uint64) (found []byte, ok bool) {
	_, lists := m.sec.lists()
	if off > uint64(len(lists)) {
		return nil, false
	}
	c := cursor{b: lists, at: int(off)}
	base := m.lowPC(h)
	address := func() uint64 {
		v, ok := m.indexed(h, c.uleb())
		c.bad = c.bad || !ok
		return v
	}
	for range maxLocations {
		if m.meter.spend(rangeWork) != nil {
			return nil, false
		}
		var low, high uint64
		switch kind := c.u8(); kind {
		case lleBaseAddressX:
			base = address()
			continue
		case lleBaseAddress:
			base = c.uint(8)
			continue
		case lleViewPair:
			c.uleb()
			c.uleb()
			continue
		case lleStartXEndX:
			low, high = address(), address()
		case lleStartXLength:
			low = address()
			high = low + c.uleb()
		case lleOffsetPair:
			low, high = base+c.uleb(), base+c.uleb()
		case lleDefault: // where no other entry says better
			found, ok = c.bytes(c.uleb()), true
			continue
		case lleStartEnd:
			low, high = c.uint(8), c.uint(8)
		case lleStartLength:
			low = c.uint(8)
			high = low + c.uleb()
		default: // the end, or not understood
			return found, ok
		}
		expr := c.bytes(c.uleb())
		if c.bad {
			return nil, false
		}
		if pc >= low && pc < high {
			return expr, true
		}
	}
	return nil, false
}
