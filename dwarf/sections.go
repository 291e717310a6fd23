package dwarf

import (
	"debug/dwarf"
	"debug/elf"
	"sort"
	"strings"
)

// sections are those of the debugging information that the standard library does
// not look into: it reads entries and leaves locations to its callers.
type sections struct {
	info, loc, loclists, addr []byte
}

// readDWARF opens the debugging information of f. What it cannot read is as if
// it were not there.
func (m *Module) readDWARF(f *elf.File) {
	dat := map[string][]byte{}
	for _, s := range f.Sections {
		name, ok := strings.CutPrefix(s.Name, ".debug_")
		if !ok {
			if name, ok = strings.CutPrefix(s.Name, ".zdebug_"); !ok {
				continue
			}
		}
		if s.Type == elf.SHT_NOBITS || dat[name] != nil {
			continue
		}
		if b, err := s.Data(); err == nil {
			dat[name] = b
		}
	}
	d, err := dwarf.New(dat["abbrev"], nil, nil, dat["info"], dat["line"], nil, dat["ranges"], dat["str"])
	if err != nil {
		return
	}
	for _, name := range []string{"addr", "line_str", "str_offsets", "rnglists"} {
		if b, ok := dat[name]; ok && d.AddSection(".debug_"+name, b) != nil {
			return
		}
	}
	if b, ok := dat["types"]; ok && d.AddTypes("types-0", b) != nil {
		return
	}
	m.data = d
	m.sec = sections{info: dat["info"], loc: dat["loc"], loclists: dat["loclists"], addr: dat["addr"]}
}

// header is where a compilation unit begins (DWARF 5, 7.5.1).
type header struct {
	start, end dwarf.Offset
	version    int
	dwarf64    bool
	root       *dwarf.Entry
}

// headerOf returns the header of the unit that an entry belongs to.
func (m *Module) headerOf(off dwarf.Offset) *header {
	if m.headers == nil {
		m.readHeaders()
	}
	i := sort.Search(len(m.headers), func(i int) bool { return m.headers[i].start > off })
	if i == 0 || off >= m.headers[i-1].end {
		return nil
	}
	return &m.headers[i-1]
}

func (m *Module) readHeaders() {
	m.headers = []header{}
	c := cursor{b: m.sec.info}
	for c.left() > 0 && len(m.headers) < maxUnits {
		h := header{start: dwarf.Offset(c.at)}
		n := c.uint(4)
		if n == 0xffffffff {
			h.dwarf64 = true
			n = c.uint(8)
		}
		body := cursor{b: c.bytes(n)}
		if c.bad {
			return
		}
		h.version, h.end = int(body.uint(2)), dwarf.Offset(c.at)
		m.headers = append(m.headers, h)
	}
}

// rootOf returns the entry of a unit itself; nil when it cannot be read.
func (m *Module) rootOf(h *header) *dwarf.Entry {
	if h.root != nil {
		return h.root
	}
	first := h.start + 11 // length 4, version 2, abbreviations 4, address size 1
	if h.dwarf64 {
		first = h.start + 23
	}
	if h.version >= 5 {
		first++ // unit type
	}
	r := m.data.Reader()
	r.Seek(first)
	if e, err := r.Next(); err == nil {
		h.root = e
	}
	return h.root
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
	at := m.base(h, dwarf.AttrAddrBase)
	if n := uint64(len(m.sec.addr)); at > n || i >= (n-at)/8 {
		return 0, false
	}
	c := cursor{b: m.sec.addr, at: int(at + 8*i)}
	return c.uint(8), true
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

// isC reports whether a unit is written in C, where "struct" is part of a
// type's name (DWARF 5, 7.12).
func (m *Module) isC(h *header) bool {
	if h == nil {
		return true
	}
	root := m.rootOf(h)
	if root == nil {
		return true
	}
	lang, _ := root.Val(dwarf.AttrLanguage).(int64)
	switch lang {
	case 0x01, 0x02, 0x0c, 0x1d, 0x2c:
		return true
	}
	return false
}
