package dwarf

import (
	"debug/dwarf"
	"path"
	"slices"
	"sort"
	"strconv"
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
		for j := i; j >= 0 && u.lines[j].addr == pc; j-- {
			s.IsStart = s.IsStart || u.lines[j].stmt
		}
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
		for i := range u.lines {
			l := &u.lines[i]
			if l.end || !l.stmt || l.num < num || !names[l.file] || best != 0 && l.num > best {
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

// firsts picks the lowest row of each function, behind the prologue of those
// that begin there.
func (m *Module) firsts(rows []*line) (out []Place) {
	slices.SortFunc(rows, func(a, b *line) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return 0
	})
	seen := map[string]bool{}
	for _, l := range rows {
		key := m.instance(l.addr)
		if seen[key] || len(out) == maxPlaces {
			continue
		}
		seen[key] = true
		p := Place{Addr: l.addr, File: l.file, Line: l.num}
		if f := m.functionAt(l.addr); f != nil && f.low == l.addr {
			p.Addr = m.body(f)
		}
		out = append(out, p)
	}
	return out
}

// instance names the function, or the inlined one, that an address belongs to.
func (m *Module) instance(pc uint64) string {
	f := m.functionAt(pc)
	if f == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(f.name)
	m.eachInlined(f.offset, pc, func(e *dwarf.Entry) {
		b.WriteByte(' ')
		b.WriteString(m.nameOf(e, 0))
		b.WriteString(strconv.FormatUint(uint64(e.Offset), 16))
	})
	return b.String()
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
	if u.files == nil {
		u.files = []string{}
		if lr, err := m.data.LineReader(u.entry); err == nil && lr != nil {
			for _, f := range lr.Files() {
				if f != nil && len(u.files) < maxFields {
					u.files = append(u.files, f.Name)
				}
			}
		}
	}
	return u.files
}

func (m *Module) mentions(u *unit, names map[string]bool) bool {
	return slices.ContainsFunc(m.fileNames(u), func(n string) bool { return names[n] })
}

// Body returns the address behind the prologue of the function that begins at
// entry, where its variables have their places: that of the second line, as gdb
// has it. Without lines it is entry.
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
		i := sort.Search(len(u.lines), func(i int) bool { return u.lines[i].addr > f.low })
		for ; i < len(u.lines) && u.lines[i].addr < f.high; i++ {
			if l := &u.lines[i]; !l.end && l.num > 0 && l.stmt {
				return l.addr
			}
		}
	}
	return f.low
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
