package dwarf

import (
	"debug/dwarf"
	"sort"
	"strings"
	"sync"
)

// The sections of the debugging information, the headers of its units, and where a
// unit's parts of other sections begin (DWARF 5, 7.5.1 and 7.26 to 7.29). What is asked of
// a single entry is in entry.go.

// sections are those of the debugging information.
type sections struct {
	info, abbrev, line, str, lineStr, strOffsets, addr []byte

	ranges, rnglists []byte

	readLists     func() // reads the next two, which are large, and of use for variables alone
	loc, loclists []byte
}

// lists returns .debug_loc and .debug_loclists.
func (s *sections) lists() (loc, loclists []byte) {
	if s.readLists != nil {
		s.readLists()
	}
	return s.loc, s.loclists
}

// readDWARF opens the debugging information of f. What it cannot read is as if
// it were not there.
func (m *Module) readDWARF(f *file) {
	to := map[string]*[]byte{
		"info": &m.sec.info, "abbrev": &m.sec.abbrev, "line": &m.sec.line, "str": &m.sec.str, "line_str": &m.sec.lineStr,
		"str_offsets": &m.sec.strOffsets, "addr": &m.sec.addr, "ranges": &m.sec.ranges, "rnglists": &m.sec.rnglists,
	}
	m.readSections(f, to)
	m.sec.readLists = sync.OnceFunc(func() {
		m.readSections(f, map[string]*[]byte{"loc": &m.sec.loc, "loclists": &m.sec.loclists})
	})
	if len(m.sec.info) > 0 && len(m.sec.abbrev) > 0 {
		m.data = &info{m: m, abbrevs: map[uint64]*abbrevs{}}
	}
}

// readSections reads sections of f by their names, without the prefix, of which there are not any yet.
func (m *Module) readSections(f *file, to map[string]*[]byte) {
	for _, s := range f.Sections {
		name, ok := strings.CutPrefix(s.Name, ".debug_")
		if !ok {
			if name, ok = strings.CutPrefix(s.Name, ".zdebug_"); !ok {
				continue
			}
		}
		if b := to[name]; b != nil && *b == nil {
			*b = f.section(s)
		}
	}
}

// header is where a unit begins (DWARF 5, 7.5.1).
type header struct {
	number     int
	start, end dwarf.Offset
	first      dwarf.Offset // of the unit's own entry
	version    int
	dwarf64    bool
	abbrev     uint64 // offset of its abbreviations
	root       *dwarf.Entry
	bases      *bases // nil before they were asked for
}

// bases are where a unit's parts of other sections begin.
type bases struct{ addr, strings, ranges uint64 }

// headerBytes is what a unit's header takes in memory, with its root.
const headerBytes = 400

func (h *header) offsetSize() uint64 {
	if h.dwarf64 {
		return 8
	}
	return 4
}

// headerOf returns the header of the unit that an entry belongs to.
func (m *Module) headerOf(off dwarf.Offset) *header {
	hs := m.unitHeaders()
	i := sort.Search(len(hs), func(i int) bool { return hs[i].start > off })
	if i == 0 || off >= hs[i-1].end {
		return nil
	}
	return &hs[i-1]
}

// unitHeaders returns the headers of all units, in their order.
func (m *Module) unitHeaders() []header {
	if m.headers == nil {
		m.readHeaders()
	}
	return m.headers
}

// Kinds of units with more in their headers (DWARF 5, table 7.2).
const (
	unitType      = 2
	unitSkeleton  = 4
	unitSplit     = 5
	unitSplitType = 6
)

func (m *Module) readHeaders() {
	m.headers = []header{}
	c := cursor{b: m.sec.info}
	for c.left() > 0 && len(m.headers) < maxUnits {
		h := header{number: len(m.headers), start: dwarf.Offset(c.at)}
		n := c.uint(4)
		if n == 0xffffffff {
			h.dwarf64 = true
			n = c.uint(8)
		}
		body := cursor{at: c.at}
		c.bytes(n)
		if c.bad || m.meter.spend(entryWork) != nil || m.meter.take(headerBytes) != nil {
			return
		}
		h.end = dwarf.Offset(c.at)
		if body.b = m.sec.info[:c.at]; h.read(&body) {
			m.headers = append(m.headers, h)
		}
	}
}

// read reads what stands behind the length of a unit.
func (h *header) read(c *cursor) bool {
	kind, size := byte(0), uint64(8)
	if h.version = int(c.uint(2)); h.version >= 5 {
		kind, size = c.u8(), c.uint(1)
	}
	if h.abbrev = c.uint(h.offsetSize()); h.version < 5 {
		size = c.uint(1)
	}
	switch kind {
	case unitSkeleton, unitSplit:
		c.uint(8) // its id
	case unitType, unitSplitType:
		c.uint(8) // its signature
		c.uint(h.offsetSize())
	}
	h.first = dwarf.Offset(c.at)
	return !c.bad && c.left() > 0 && size == 8 && h.version >= 2 && h.version <= 5
}

// bases returns where a unit's parts of other sections begin. The unit's own entry says
// it, and has names and addresses that need it.
func (m *Module) bases(h *header) bases {
	if h.bases != nil {
		return *h.bases
	}
	h.bases = &bases{}
	if h.version < 5 {
		return *h.bases
	}
	r := &entryReader{d: m.data, isPlain: true}
	r.enter(h, h.first)
	e, err := r.Next()
	if err != nil || e == nil {
		return *h.bases
	}
	for a, p := range map[dwarf.Attr]*uint64{
		dwarf.AttrAddrBase: &h.bases.addr, dwarf.AttrStrOffsetsBase: &h.bases.strings, dwarf.AttrRnglistsBase: &h.bases.ranges,
	} {
		n, _ := e.Val(a).(int64)
		*p = uint64(n)
	}
	return *h.bases
}

// base returns an attribute of the unit that says where its part of a section
// begins.
func (m *Module) base(h *header, a dwarf.Attr) uint64 {
	root := m.rootOf(h)
	if root == nil {
		return 0
	}
	n, _ := root.Val(a).(int64)
	return uint64(n)
}

// indexed returns the entry at index i of .debug_addr for a unit.
func (m *Module) indexed(h *header, i uint64) (uint64, bool) {
	at := m.bases(h).addr
	if n := uint64(len(m.sec.addr)); at > n || i >= (n-at)/8 {
		return 0, false
	}
	c := cursor{b: m.sec.addr, at: int(at + 8*i)}
	return c.uint(8), true
}
