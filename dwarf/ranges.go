package dwarf

import "debug/dwarf"

// The code ranges of an entry: DW_AT_low_pc with DW_AT_high_pc, or a list in
// .debug_ranges (DWARF 4, 2.17.3) or .debug_rnglists (DWARF 5, 2.17.3 and 7.25). Lists
// of locations, which look much alike, are in loclist.go.

// maxRanges bounds the ranges of one entry.
const maxRanges = 1 << 20

// rangeWork is what a range takes, in bytes of work.
const rangeWork = 16

// Ranges returns the code of an entry, [low, high) for each part: none when it has no
// code, or does not say where (DWARF 5, 2.17).
func (d *info) Ranges(e *dwarf.Entry) (out [][2]uint64, err error) {
	low, hasLow := e.Val(dwarf.AttrLowpc).(uint64)
	if f := e.AttrField(dwarf.AttrHighpc); f != nil && hasLow {
		switch v := f.Val.(type) {
		case uint64:
			out = append(out, [2]uint64{low, v})
		case int64: // behind the low one
			if f.Class == dwarf.ClassConstant {
				out = append(out, [2]uint64{low, low + uint64(v)})
			}
		}
	}
	f := e.AttrField(dwarf.AttrRanges)
	h := d.m.headerOf(e.Offset)
	if f == nil || h == nil {
		return out, nil
	}
	at, ok := uint64(0), false
	switch v := f.Val.(type) {
	case int64:
		at, ok = uint64(v), f.Class == dwarf.ClassRangeListPtr
	case uint64:
		at, ok = v, f.Class == dwarf.ClassRngList
	}
	l := &rangeList{d: d, h: h, base: d.baseAddress(h), out: out}
	switch {
	case !ok:
		return out, nil
	case h.version >= 5 && d.m.sec.rnglists != nil:
		return l.read(d.m.sec.rnglists, at, l.entry5)
	case h.version < 5 && d.m.sec.ranges != nil:
		return l.read(d.m.sec.ranges, at, l.entry)
	}
	return out, nil
}

// baseAddress is what a unit's ranges count from. Some versions of GCC give it as the
// entry's address (gdb, dwarf2/read.c).
func (d *info) baseAddress(h *header) uint64 {
	root := d.m.rootOf(h)
	if root == nil {
		return 0
	}
	for _, a := range []dwarf.Attr{dwarf.AttrEntrypc, dwarf.AttrLowpc} {
		if v, ok := root.Val(a).(uint64); ok {
			return v
		}
	}
	return 0
}

// rangeList reads one list.
type rangeList struct {
	d    *info
	h    *header
	c    cursor
	base uint64
	out  [][2]uint64
}

func (l *rangeList) read(section []byte, at uint64, entry func() bool) ([][2]uint64, error) {
	if at > uint64(len(section)) {
		return nil, errEntry
	}
	l.c = cursor{b: section, at: int(at)}
	for l.c.left() > 0 && len(l.out) < maxRanges && entry() {
		if err := l.d.m.meter.spend(rangeWork); err != nil {
			return nil, err
		}
	}
	if l.c.bad {
		return nil, errEntry
	}
	return l.out, nil
}

func (l *rangeList) add(low, high uint64) { l.out = append(l.out, [2]uint64{low, high}) }

// entry reads one of .debug_ranges (DWARF 4, 2.17.3). It reports false at the end.
func (l *rangeList) entry() bool {
	low, high := l.c.uint(8), l.c.uint(8)
	switch {
	case low == 0 && high == 0, l.c.bad:
		return false
	case low == ^uint64(0):
		l.base = high
	default:
		l.add(l.base+low, l.base+high)
	}
	return true
}

// Kinds of entries in .debug_rnglists (DWARF 5, table 7.30).
const (
	rleEnd = iota
	rleBaseAddressX
	rleStartXEndX
	rleStartXLength
	rleOffsetPair
	rleBaseAddress
	rleStartEnd
	rleStartLength
)

// entry5 reads one of .debug_rnglists. It reports false at the end.
func (l *rangeList) entry5() bool {
	c := &l.c
	address := func() uint64 {
		v, ok := l.d.m.indexed(l.h, c.uleb())
		c.bad = c.bad || !ok
		return v
	}
	switch c.u8() {
	case rleEnd:
		return false
	case rleBaseAddressX:
		l.base = address()
	case rleStartXEndX:
		low := address()
		l.add(low, address())
	case rleStartXLength:
		low := address()
		l.add(low, low+c.uleb())
	case rleOffsetPair:
		low := l.base + c.uleb()
		l.add(low, l.base+c.uleb())
	case rleBaseAddress:
		l.base = c.uint(8)
	case rleStartEnd:
		low := c.uint(8)
		l.add(low, c.uint(8))
	case rleStartLength:
		low := c.uint(8)
		l.add(low, low+c.uleb())
	default:
		c.bad = true
	}
	return !c.bad
}
