package dwarf

import (
	"cmp"
	"debug/dwarf"
	"path"
	"slices"
	"sort"
	"strings"
)

// Places to stop at: what a debugger needs to set breakpoints on lines and to
// step over them.

// Stretch is the code of one source line around an address: rows of the line
// table that follow each other.
type Stretch struct {
	File       string
	Line       int
	Start, End uint64 // of the rows
	IsStart    bool   // the address is the start of a row that is a place to stop at
}

// Stretch returns the source line at pc with the code around pc that belongs to it.
func (m *Module) Stretch(pc uint64) (s Stretch, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	for _, u := range m.unitsAt(pc) {
		m.readUnit(u)
		i := sort.Search(len(u.lines), func(i int) bool { return u.lines[i].addr > pc }) - 1
		if i < 0 || u.lines[i].end || u.lines[i].num == 0 {
			continue
		}
		l := &u.lines[i]
		from, to := i, i+1
		for from > 0 && u.lines[from-1].same(l) {
			from--
		}
		for to < len(u.lines) && u.lines[to].same(l) {
			to++
		}
		s = Stretch{File: l.file, Line: l.num, Start: u.lines[from].addr, End: l.addr + 1}
		if to < len(u.lines) {
			s.End = u.lines[to].addr
		}
		if f := m.functionAt(pc); f != nil { // a line does not go beyond its function
			s.Start, s.End = max(s.Start, f.low), min(s.End, f.high)
		}
		s.IsStart = l.addr == pc && l.stmt
		return s, true
	}
	return s, false
}

// same reports whether two rows are of one source line.
func (l *line) same(o *line) bool { return !l.end && l.num == o.num && l.file == o.file }

// Place is where a breakpoint goes.
type Place struct {
	Addr uint64
	File string
	Line int
}

// maxPlaces bounds the places of one line or name.
const maxPlaces = 256

// Places returns where the code of a source line begins: once in each function
// that has code of it. A line without code stands for the next one that has
// some. file matches by its last elements, as many as there are that fit.
func (m *Module) Places(file string, num int) (out []Place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	names := m.matching(file)
	if len(names) == 0 {
		return nil
	}
	var rows []*line
	best := 0
	for _, u := range m.allUnits() {
		if !m.mentions(u, names) {
			continue
		}
		m.readUnit(u)
		for i := range u.stops {
			l := &u.stops[i]
			if l.num < num || !names[l.file] || best != 0 && l.num > best {
				continue
			}
			if l.num < best || best == 0 {
				rows, best = rows[:0], l.num
			}
			rows = append(rows, l)
		}
	}
	return m.firsts(rows)
}

// firsts picks the lowest row of each block of the program, as gdb does: a line of
// optimized code has rows all over its function, and more in functions that it was
// inlined into. A row in a prologue stands for what is behind it.
func (m *Module) firsts(rows []*line) (out []Place) {
	slices.SortFunc(rows, func(a, b *line) int { return cmp.Compare(a.addr, b.addr) })
	blocks, places := map[dwarf.Offset]bool{}, map[uint64]bool{}
	for _, l := range rows {
		f := m.functionAt(l.addr)
		block := m.innermost(f, l.addr)
		if blocks[block] || len(out) == maxPlaces {
			continue
		}
		blocks[block] = true
		p := Place{Addr: l.addr, File: l.file, Line: l.num}
		if f != nil && f.low != f.entry { // in a part that was split off, as main.cold
			f = m.functionAt(f.entry)
		}
		if f != nil {
			p.Addr = max(p.Addr, m.body(f))
		}
		if !places[p.Addr] {
			places[p.Addr] = true
			out = append(out, p)
		}
	}
	return out
}

// innermost returns the entry of the innermost block at pc in a function: an inlined
// function, or a block with names of its own; else the function's.
func (m *Module) innermost(f *function, pc uint64) dwarf.Offset {
	if f == nil {
		return 0
	}
	block := f.offset
	m.eachBlock(f.offset, pc, func(e *dwarf.Entry) {
		if e.Tag == dwarf.TagInlinedSubroutine || m.hasNames(e, 0) {
			block = e.Offset
		}
	})
	return block
}

// hasNames reports whether a lexical block declares something, itself or in the block
// that it is an instance of.
func (m *Module) hasNames(e *dwarf.Entry, depth int) bool {
	if depth > 8 {
		return false
	}
	if e.Children {
		r := m.data.Reader()
		r.Seek(e.Offset)
		_, _ = r.Next() // e again
		for n := 0; n < maxEntries; n++ {
			c, err := r.Next()
			if err != nil || c == nil || c.Tag == 0 {
				break
			}
			switch c.Tag {
			case dwarf.TagLexDwarfBlock, dwarf.TagInlinedSubroutine, dwarf.TagSubprogram, dwarf.TagCallSite, tagGNUCallSite:
				r.SkipChildren()
			default:
				return true
			}
		}
	}
	if off, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok {
		if o := m.entryAt(off); o != nil {
			return m.hasNames(o, depth+1)
		}
	}
	return false
}

// matching returns the names that source files have in the line tables and that
// fit best what is asked for.
func (m *Module) matching(file string) map[string]bool {
	want := elements(file)
	best, out := 0, map[string]bool{}
	for _, u := range m.allUnits() {
		for _, name := range m.fileNames(u) {
			n := common(want, elements(name))
			if n == 0 || n < best {
				continue
			}
			if n > best {
				best, out = n, map[string]bool{}
			}
			out[name] = true
		}
	}
	return out
}

// elements splits a path, of this system or of any other, the last element first.
func elements(file string) []string {
	parts := strings.Split(path.Clean(strings.ReplaceAll(file, `\`, "/")), "/")
	slices.Reverse(parts)
	return parts
}

// common counts the elements that are the same from the last one on.
func common(a, b []string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] && a[n] != "" {
		n++
	}
	return n
}

// fileNames returns the source files of a unit.
func (m *Module) fileNames(u *unit) []string {
	if u.names == nil {
		u.names = []string{}
		for _, f := range m.filesOf(u) {
			if f != "" && len(u.names) < maxFields {
				u.names = append(u.names, f)
			}
		}
	}
	return u.names
}

func (m *Module) mentions(u *unit, names map[string]bool) bool {
	return slices.ContainsFunc(m.fileNames(u), func(n string) bool { return names[n] })
}

// Body returns the address behind the prologue of the function that begins at
// entry, where its variables have their places: that of the second line, as gdb
// has it. Without lines it is entry, and where GCC optimized, for there the places
// of variables are known from the first instruction on.
func (m *Module) Body(entry uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if f := m.functionAt(entry); f != nil && f.low == entry {
		return m.body(f)
	}
	return entry
}

func (m *Module) body(f *function) uint64 {
	for _, u := range m.unitsAt(f.low) {
		m.readUnit(u)
		if m.isTracked(u) {
			return f.low
		}
		i := sort.Search(len(u.lines), func(i int) bool { return u.lines[i].addr > f.low })
		for ; i < len(u.lines) && u.lines[i].addr < f.high; i++ {
			if l := &u.lines[i]; !l.end && l.num > 0 && l.stmt {
				return l.addr
			}
		}
	}
	return f.low
}

// isTracked reports whether GCC made location lists for a unit's variables, which
// hold from a function's first instruction on (gdb, symtab.c, skip_prologue_sal:
// locations_valid).
func (m *Module) isTracked(u *unit) bool {
	if u.tracked != nil {
		return *u.tracked
	}
	found := false
	u.tracked = &found
	if producer, _ := u.entry.Val(dwarf.AttrProducer).(string); !strings.HasPrefix(producer, "GNU ") {
		return false
	}
	r := m.data.Reader()
	r.Seek(u.entry.Offset)
	_, _ = r.Next() // the unit itself
	for n := 0; n < maxEntries; n++ {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == dwarf.TagCompileUnit {
			break
		}
		if e.Tag != dwarf.TagVariable && e.Tag != dwarf.TagFormalParameter {
			continue
		}
		if f := e.AttrField(dwarf.AttrLocation); f != nil && (f.Class == dwarf.ClassLocListPtr || f.Class == dwarf.ClassLocList) {
			found = true
			break
		}
	}
	return found
}

// Extent returns where the function at pc begins and ends.
func (m *Module) Extent(pc uint64) (low, high uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if f := m.functionAt(pc); f != nil {
		return f.low, f.high, true
	}
	if s := m.sized(pc); s != nil {
		return s.addr, s.addr + s.size, true
	}
	f, err := m.find(pc)
	if err != nil {
		return 0, 0, false
	}
	return f.low, f.high, true
}
