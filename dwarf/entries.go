package dwarf

import (
	"bytes"
	"debug/dwarf"
	"errors"
)

// info is the debugging information of a file, read when it is asked for.
type info struct {
	m       *Module
	abbrevs map[uint64]*abbrevs // by offset
}

var (
	errEntry  = errors.New("dwarf: bad debugging information")
	errAbbrev = errors.New("dwarf: bad abbreviations")
)

// abbrev is what all entries of one kind have in common: a tag and attributes.
type abbrev struct {
	code     uint64
	tag      dwarf.Tag
	children bool
	fields   []abbrevField
}

type abbrevField struct {
	attr  dwarf.Attr
	form  form
	value int64 // of formImplicit
}

// abbrevs is one table of abbreviations, as far as it was read: by code - 1 those whose codes are counted
// up, as compilers do it, and the others. Of most units no more than the first entry is looked
// at, and that has one of the first codes.
type abbrevs struct {
	list  []abbrev
	other map[uint64]*abbrev

	d     *info
	rest  cursor // what is not read yet
	whole bool   // there is nothing more
	err   error  // the rest is damaged, or the budget does not allow to read it
}

// maxAttributes bounds the attributes of an entry. DWARF 5 has 140 in all, each at
// most once.
const maxAttributes = 256

// What an abbreviation, and each attribute of it, takes in memory.
const (
	abbrevBytes      = 160
	abbrevFieldBytes = 32
)

// find returns the abbreviation with a code, reading on until it is there; nil is none.
func (t *abbrevs) find(code uint64) (*abbrev, error) {
	for {
		if code-1 < uint64(len(t.list)) {
			return &t.list[code-1], nil
		}
		if a := t.other[code]; a != nil {
			return a, nil
		}
		if t.whole || t.err != nil {
			return nil, t.err
		}
		t.readOne()
	}
}

// readAll reads the rest of the table.
func (t *abbrevs) readAll() error {
	for !t.whole && t.err == nil {
		t.readOne()
	}
	return t.err
}

// table returns the abbreviations of a unit. Units may share a table, or have tables
// that overlap: each that is read is charged.
func (d *info) table(h *header) (*abbrevs, error) {
	if t, ok := d.abbrevs[h.abbrev]; ok {
		return t, nil
	}
	if h.abbrev > uint64(len(d.m.sec.abbrev)) {
		return nil, errAbbrev
	}
	t := &abbrevs{other: map[uint64]*abbrev{}, d: d, rest: cursor{b: d.m.sec.abbrev, at: int(h.abbrev)}}
	if d.m.meter.take(abbrevBytes) == nil {
		d.abbrevs[h.abbrev] = t
	}
	return t, nil
}

// readOne reads the next abbreviation of the table.
func (t *abbrevs) readOne() {
	c := &t.rest
	start := c.at
	a := abbrev{code: c.uleb()}
	if a.code == 0 && !c.bad {
		t.whole = true
		return
	}
	a.tag, a.children = dwarf.Tag(c.uleb()), c.u8() != 0
	for !c.bad {
		f := abbrevField{attr: dwarf.Attr(c.uleb()), form: form(c.uleb())}
		if f.form == formImplicit {
			f.value = c.sleb()
		}
		if f.attr == 0 && f.form == 0 {
			break
		}
		if a.fields = append(a.fields, f); len(a.fields) > maxAttributes {
			c.bad = true
		}
	}
	if c.bad {
		t.err = errAbbrev
		return
	}
	meter := t.d.m.meter
	if t.err = meter.spend(8 * (c.at - start)); t.err == nil {
		t.err = meter.take(abbrevBytes + 2*abbrevFieldBytes*len(a.fields))
	}
	if t.err != nil {
		return
	}
	if a.code == uint64(len(t.list))+1 {
		t.list = append(t.list, a)
	} else if t.other[a.code] == nil { // the first of that code, however much was read by then
		t.other[a.code] = &a
	}
}

// entryReader reads entries one after the other, over all units.
type entryReader struct {
	d     *info
	h     *header // nil: at the end
	table *abbrevs
	c     cursor
	last  *dwarf.Entry // nil after Seek
	err   error

	isPlain bool // nothing is looked up in other sections
}

// Reader returns a reader of all entries, at the first one.
func (d *info) Reader() *entryReader {
	r := &entryReader{d: d}
	if hs := d.m.unitHeaders(); len(hs) > 0 {
		r.enter(&hs[0], hs[0].first)
	}
	return r
}

func (r *entryReader) enter(h *header, at dwarf.Offset) {
	r.h, r.last = h, nil
	r.c = cursor{b: r.d.m.sec.info[:h.end], at: int(at)}
	r.table, r.err = r.d.table(h)
}

// Seek goes to the entry at an offset.
func (r *entryReader) Seek(off dwarf.Offset) {
	h := r.d.m.headerOf(off)
	if h == nil || off < h.first {
		r.err = errEntry
		return
	}
	if h != r.h || r.err != nil {
		r.enter(h, off)
		return
	}
	r.last, r.c.at, r.c.bad = nil, int(off), false
}

// What an entry takes to be read, in bytes of work, without its attributes, and
// each of these.
const (
	entryWork = 128
	fieldWork = 48
)

// Next returns the next entry, nil at the end of the last unit. The end of a list of
// children is an entry whose tag is 0. Errors: the information is damaged, or the
// budget does not allow to go on.
func (r *entryReader) Next() (*dwarf.Entry, error) {
	for r.err == nil && r.h != nil && r.c.left() == 0 {
		r.nextUnit()
	}
	if r.err != nil || r.h == nil {
		return nil, r.err
	}
	e, err := r.entry()
	if err == nil && r.c.bad {
		err = errEntry
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	r.last = e
	return e, nil
}

func (r *entryReader) nextUnit() {
	hs := r.d.m.unitHeaders()
	if next := r.h.number + 1; next < len(hs) {
		r.enter(&hs[next], hs[next].first)
		return
	}
	r.h = nil
}

func (r *entryReader) entry() (*dwarf.Entry, error) {
	off := dwarf.Offset(r.c.at)
	code := r.c.uleb()
	if code == 0 {
		return &dwarf.Entry{}, r.d.m.meter.spend(entryWork)
	}
	a, err := r.table.find(code)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, errEntry
	}
	if err := r.d.m.meter.spend(entryWork + fieldWork*len(a.fields)); err != nil {
		return nil, err
	}
	e := &dwarf.Entry{Offset: off, Tag: a.tag, Children: a.children, Field: make([]dwarf.Field, len(a.fields))}
	for i := range a.fields {
		f := &a.fields[i]
		format := f.form
		if format == formIndirect {
			format = form(r.c.uleb())
		}
		v, ok := r.value(format, f)
		if !ok || r.c.bad {
			return nil, errEntry
		}
		e.Field[i] = dwarf.Field{Attr: f.attr, Val: v, Class: classOf(format, f.attr, r.h.version)}
	}
	return e, nil
}

// SkipChildren goes behind the children of the last entry.
func (r *entryReader) SkipChildren() {
	e := r.last
	if r.err != nil || e == nil || !e.Children {
		return
	}
	if e.Offset == r.h.first {
		r.c.at = int(r.h.end)
		return
	}
	for depth := 1; ; {
		if s, ok := e.Val(dwarf.AttrSibling).(dwarf.Offset); ok && s >= dwarf.Offset(r.c.at) && s <= r.h.end && e.Children {
			r.c.at = int(s)
			depth--
		}
		if depth == 0 {
			return
		}
		next, err := r.Next()
		if err != nil || next == nil {
			return
		}
		switch e = next; {
		case e.Tag == 0:
			depth--
		case e.Children:
			depth++
		}
	}
}

// isLookedUp are the kinds of values that stand in another section.
var isLookedUp = map[formKind]bool{kindAddressIndex: true, kindStrp: true, kindLineStrp: true, kindStringIndex: true, kindRangeList: true}

// number reads the number of a form.
func (r *entryReader) number(size encoding) uint64 {
	switch size {
	case asULEB:
		return r.c.uleb()
	case asSLEB:
		return uint64(r.c.sleb())
	case asOffset:
		return r.c.uint(r.h.offsetSize())
	}
	return r.c.uint(uint64(size))
}

// value reads one attribute's value, of the type that dwarf.Field has for its class.
func (r *entryReader) value(format form, f *abbrevField) (v any, ok bool) {
	k, m := formOf[format], r.d.m
	switch k.kind {
	case 0:
		return nil, false
	case kindBytes:
		return r.c.bytes(16), true
	case kindImplicit:
		return f.value, true
	case kindPresent:
		return true, true
	case kindInline:
		s, ok := m.meter.stringAt(r.c.b, uint64(r.c.at))
		n := bytes.IndexByte(r.c.b[r.c.at:], 0)
		r.c.bytes(uint64(n) + 1)
		return s, ok && n >= 0 && m.meter.spend(n/8) == nil
	case kindRefAddr:
		if r.h.version == 2 {
			return dwarf.Offset(min(r.c.uint(8), 1<<32-1)), true
		}
	default:
	}
	n := r.number(k.size)
	if r.isPlain && isLookedUp[k.kind] {
		return nil, true
	}
	switch k.kind { //nolint:exhaustive // the others are read above
	case kindAddress, kindSignature:
		return n, true
	case kindAddressIndex:
		return m.indexed(r.h, n)
	case kindBlock:
		return r.c.bytes(n), true
	case kindConst, kindOffset, kindElsewhere:
		return int64(n), true
	case kindFlag:
		return n == 1, true
	case kindRef:
		return offset(n, r.h.start), true
	case kindRefAddr:
		return offset(n, 0), true
	case kindStrp:
		return m.meter.stringAt(m.sec.str, n)
	case kindLineStrp:
		return m.meter.stringAt(m.sec.lineStr, n)
	case kindStringIndex:
		at, ok := r.entryOf(m.sec.strOffsets, m.bases(r.h).strings, n)
		if !ok {
			return nil, false
		}
		return m.meter.stringAt(m.sec.str, at)
	case kindLocList:
		return n, true
	case kindRangeList:
		base := m.bases(r.h).ranges
		at, ok := r.entryOf(m.sec.rnglists, base, n)
		return base + at, ok
	}
	return nil, false
}

// offset adds the start of a unit; what lies behind all sections stays there.
func offset(n uint64, start dwarf.Offset) dwarf.Offset {
	return dwarf.Offset(min(n, 1<<32-1-uint64(start))) + start
}

// entryOf returns number i of a table of offsets.
func (r *entryReader) entryOf(table []byte, base, i uint64) (uint64, bool) {
	size := r.h.offsetSize()
	if n := uint64(len(table)); base > n || i >= (n-base)/size {
		return 0, false
	}
	c := cursor{b: table, at: int(base + i*size)}
	return c.uint(size), true
}
