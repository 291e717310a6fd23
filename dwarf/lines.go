package dwarf

import (
	"debug/dwarf"
	"slices"
	"sort"
)

// From a pc to function, file and line. From a line to places is in places.go, the line number
// program is run by lineprogram.go.

// unit is a compilation unit, read in steps.
type unit struct {
	entry *dwarf.Entry

	lines     []line // sorted by address, one for each; nil before it was read
	stops     []line // rows of the table that are places to stop at, sorted by address
	functions []function
	spans     spans // of functions
	read      bool
	files     []string // by number, nil before they were asked for; see filesOf
	names     []string // those that have one, likewise; see fileNames
	tracked   *bool    // see isTracked
}

// line is a row of the line table: from addr to the next row.
type line struct {
	addr uint64
	file string
	num  int
	end  bool // nothing here: the end of a sequence
	stmt bool // a place to stop at
}

// function is a subprogram with code.
type function struct {
	low, high uint64 // one of its ranges
	entry     uint64 // where the first range begins
	name      string
	offset    dwarf.Offset
}

// Bounds on what one file is believed to hold.
const (
	maxUnits = 1 << 17
	maxRows  = 16 << 20
	maxDepth = 256
	// maxEntries bounds one walk over entries: a damaged file can make the
	// next one lie before the last.
	maxEntries = 8 << 20
)

// guard turns a panic of debug/dwarf over a damaged file into "not found".
func guard() { _ = recover() }

// Line returns the source file, as the compiler was given it, and the line
// number of the code at pc.
func (m *Module) Line(pc uint64) (file string, num int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if l := m.rowAt(pc); l != nil {
		return l.file, l.num, true
	}
	return "", 0, false
}

// rowAt returns the row of the line table that pc lies in; nil where there is none.
func (m *Module) rowAt(pc uint64) *line {
	for _, u := range m.unitsAt(pc) {
		m.readUnit(u)
		i := sort.Search(len(u.lines), func(i int) bool { return u.lines[i].addr > pc })
		if i > 0 && !u.lines[i-1].end && u.lines[i-1].num > 0 {
			return &u.lines[i-1]
		}
	}
	return nil
}

// lineAt returns the number of the line at pc, 0 where there is none.
func (m *Module) lineAt(pc uint64) int {
	if l := m.rowAt(pc); l != nil {
		return l.num
	}
	return 0
}

// Function returns the name of the function that the code at pc belongs to,
// and the address of its first instruction. Without debugging information it
// is that of the symbol.
func (m *Module) Function(pc uint64) (name string, entry uint64, ok bool) {
	if name, entry, ok = m.subprogram(pc); ok {
		return name, entry, true
	}
	name, off, ok := m.Symbol(pc)
	return name, pc - off, ok
}

// IsDescribed reports whether debugging information describes the function at pc.
func (m *Module) IsDescribed(pc uint64) bool {
	_, _, ok := m.subprogram(pc)
	return ok
}

func (m *Module) subprogram(pc uint64) (name string, entry uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if f := m.functionAt(pc); f != nil {
		return f.name, f.low, true
	}
	return "", 0, false
}

func (m *Module) functionAt(pc uint64) *function {
	for _, u := range m.unitsAt(pc) {
		m.readUnit(u)
		found, looked := u.spans.at(pc)
		if m.meter.spend(looked) != nil {
			return nil
		}
		if len(found) > 0 {
			return &u.functions[found[0]]
		}
	}
	return nil
}

// Inlined is a function inlined at an address, and where its call stands.
type Inlined struct {
	Name     string
	CallFile string
	CallLine int
}

// Inlined returns the functions that were inlined around pc, innermost first;
// the function they ended up in is not among them.
func (m *Module) Inlined(pc uint64) (out []Inlined) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	f := m.functionAt(pc)
	if f == nil {
		return nil
	}
	m.blocksAround(f.offset, pc, func(b *block) {
		if in := m.inlinedIn(b, pc); in != nil {
			out = append(out, *in)
		}
	})
	slices.Reverse(out)
	return out
}

// eachBlock calls visit for the inlined subroutines and lexical blocks around pc in the function
// whose entry is at an offset, outermost first.
func (m *Module) eachBlock(function dwarf.Offset, pc uint64, visit func(e *dwarf.Entry)) {
	r := m.data.Reader()
	m.blocksAround(function, pc, func(b *block) {
		r.Seek(b.entry)
		if e, err := r.Next(); err == nil && e != nil {
			visit(e)
		}
	})
}

func (m *Module) covers(e *dwarf.Entry, pc uint64) bool {
	rs, err := m.data.Ranges(e)
	if err != nil {
		return false
	}
	for _, r := range rs {
		if pc >= r[0] && pc < r[1] {
			return true
		}
	}
	return false
}

// filesAt returns the file table of the unit at pc.
func (m *Module) filesAt(pc uint64) []string {
	for _, u := range m.unitsAt(pc) {
		if list := m.filesOf(u); list != nil {
			return list
		}
	}
	return nil
}

// filesOf returns the source files of a unit by their numbers; nil when it has no line table. Those that have no name are "".
func (m *Module) filesOf(u *unit) []string {
	if u.files == nil {
		p, err := m.lineProgram(u)
		if err != nil || p == nil {
			return nil
		}
		u.files = p.files
	}
	return u.files
}

// unitsAt returns the units whose ranges hold pc.
func (m *Module) unitsAt(pc uint64) []*unit {
	units := m.allUnits()
	found, looked := m.unitSpans.at(pc)
	if m.meter.spend(looked) != nil {
		return nil
	}
	out := make([]*unit, len(found))
	for i, k := range found {
		out[i] = units[k]
	}
	return out
}

// readUnits lists the compilation units with code.
func (m *Module) readUnits() {
	defer func() { m.unitSpans.order() }() // of a damaged file, those in front of the damage
	for i := range m.unitHeaders() {
		e := m.rootOf(&m.headers[i])
		if e == nil || e.Tag != dwarf.TagCompileUnit && e.Tag != dwarf.TagSkeletonUnit {
			continue
		}
		rs, err := m.data.Ranges(e)
		if err != nil || len(rs) == 0 {
			continue
		}
		if m.meter.take(unitBytes+spanBytes*len(rs)) != nil {
			return
		}
		for _, r := range rs {
			m.unitSpans = append(m.unitSpans, span{low: r[0], high: r[1], of: len(m.units)})
		}
		m.units = append(m.units, &unit{entry: e})
	}
}

// What a unit and a function take in memory.
const (
	unitBytes     = 256
	functionBytes = 224 + spanBytes
)

// readUnit reads the line table and the functions of a unit.
func (m *Module) readUnit(u *unit) {
	if u.read {
		return
	}
	u.read = true
	defer func() { u.spans.order() }() // of a damaged file, those in front of the damage
	m.readLines(u)
	m.readFunctions(u)
}

// readFunctions reads the functions of a unit.
func (m *Module) readFunctions(u *unit) {
	r := m.data.Reader()
	r.Seek(u.entry.Offset)
	if _, err := r.Next(); err != nil {
		return
	}
	depth := 1 // namespaces are entered, functions are not
	for n := 0; depth > 0 && len(u.functions) < maxRows && n < maxEntries; n++ {
		e, err := r.Next()
		if err != nil || e == nil {
			return
		}
		switch e.Tag {
		case 0:
			depth--
		case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType:
			if e.Children {
				depth++
			}
		case dwarf.TagSubprogram:
			m.addFunction(u, e)
			r.SkipChildren()
		default:
			r.SkipChildren()
		}
	}
}

func (m *Module) addFunction(u *unit, e *dwarf.Entry) {
	rs, err := m.data.Ranges(e)
	if err != nil || len(rs) == 0 {
		return
	}
	name := m.nameOf(e, 0)
	if name == "" {
		return
	}
	if m.meter.take(len(rs)*functionBytes+len(name)) != nil {
		return
	}
	for _, r := range rs {
		u.spans = append(u.spans, span{low: r[0], high: r[1], of: len(u.functions)})
		u.functions = append(u.functions, function{r[0], r[1], rs[0][0], name, e.Offset})
	}
}

// nameOf returns the name of an entry, its own or of what it is an instance
// of, with its scope where the linkage name tells.
func (m *Module) nameOf(e *dwarf.Entry, depth int) string {
	if link, ok := e.Val(dwarf.AttrLinkageName).(string); ok {
		if m.meter.spend(demangleWork*len(link)) != nil {
			return ""
		}
		if d := Demangle(link); d != link {
			return d
		}
	}
	for _, a := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		if off, ok := e.Val(a).(dwarf.Offset); ok && depth < 8 {
			r := m.data.Reader()
			r.Seek(off)
			if o, err := r.Next(); err == nil && o != nil {
				if name := m.nameOf(o, depth+1); name != "" {
					return name
				}
			}
		}
	}
	name, _ := e.Val(dwarf.AttrName).(string)
	return name
}

// readLines reads a unit's line table.
func (m *Module) readLines(u *unit) {
	p, err := m.lineProgram(u)
	if err != nil || p == nil {
		return
	}
	t := lineTables{index: map[string]*fileTable{}}
	t.read(p, maxRows)
	u.lines, u.stops = t.join(), t.stops()
}
