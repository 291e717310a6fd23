package dwarf

import (
	"cmp"
	"debug/dwarf"
	"slices"
	"sort"
)

// The code of a function in pieces, for who asks for many of its addresses: Line and Inlined read the function's
// entries again each time.

// Piece is code of one source line in which the same functions are inlined.
type Piece struct {
	Low, High uint64
	File      string // as of Line; "" when it is not known
	Line      int
	Inlined   []Inlined // as of Inlined
}

// Whole is code of a function that is in one range.
type Whole struct {
	Low, High uint64
	Entry     uint64  // of the function, which may be in another range
	Pieces    []Piece // sorted; without gaps from Low to High
}

// inlinedRange is one range of an inlined function.
type inlinedRange struct {
	low, high uint64
	depth     int
	of        *Inlined
}

// Whole returns the code around pc of the function that pc is in; ok is false where debugging information knows none.
func (m *Module) Whole(pc uint64) (w Whole, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	f := m.functionAt(pc)
	if f == nil {
		return w, false
	}
	w = Whole{Low: f.low, High: f.high, Entry: f.entry}
	inlined := m.inlinedRanges(f)
	cuts := []uint64{f.low}
	add := func(a uint64) {
		if a > f.low && a < f.high {
			cuts = append(cuts, a)
		}
	}
	for i := range inlined {
		add(inlined[i].low)
		add(inlined[i].high)
	}
	for _, u := range m.unitsAt(pc) {
		for i := sort.Search(len(u.lines), func(i int) bool { return u.lines[i].addr > f.low }); i < len(u.lines) && u.lines[i].addr < f.high; i++ {
			add(u.lines[i].addr)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	if m.meter.spend(len(cuts)*(1+len(inlined))) != nil {
		return w, false
	}
	for i, low := range cuts {
		p := Piece{Low: low, High: f.high}
		if i+1 < len(cuts) {
			p.High = cuts[i+1]
		}
		if l := m.rowAt(low); l != nil {
			p.File, p.Line = l.file, l.num
		}
		for k := range inlined {
			if r := &inlined[k]; low >= r.low && low < r.high {
				p.Inlined = append(p.Inlined, *r.of)
			}
		}
		w.Pieces = append(w.Pieces, p)
	}
	return w, true
}

// inlinedRanges returns the ranges of all functions inlined in f, the innermost first.
func (m *Module) inlinedRanges(f *function) (out []inlinedRange) {
	t := m.blocksOf(f.offset)
	if t == nil {
		return nil
	}
	depths := make([]int, len(t.blocks))
	for i := range t.blocks {
		b := &t.blocks[i]
		if b.parent >= 0 {
			depths[i] = depths[b.parent] + 1
		}
		in := m.inlinedIn(b, f.low)
		for _, r := range t.rangesOf(i) {
			if in == nil || m.meter.spend(indexedBytes) != nil {
				break
			}
			out = append(out, inlinedRange{r[0], r[1], depths[i], in})
		}
	}
	slices.SortStableFunc(out, func(a, b inlinedRange) int { return cmp.Compare(b.depth, a.depth) })
	return out
}

// inlinedBy is what the entry of an inlined function says.
func (m *Module) inlinedBy(e *dwarf.Entry, files []string) Inlined {
	in := Inlined{Name: m.nameOf(e, 0)}
	if n, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
		in.CallLine = int(n)
	}
	if n, ok := e.Val(dwarf.AttrCallFile).(int64); ok && n >= 0 && int(n) < len(files) {
		in.CallFile = files[n]
	}
	return in
}

// Part returns the name of the function that pc is in, the range of its code that is around pc, and the entry of the function, which may be
// in another range. ok is false where debugging information knows none.
func (m *Module) Part(pc uint64) (name string, low, high, entry uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	if f := m.functionAt(pc); f != nil {
		return f.name, f.low, f.high, f.entry, true
	}
	return "", 0, 0, 0, false
}

// Code calls f for each row of the line tables that is in a function, of the units that the code at some addresses is of, and for the
// first row of each function with isEntry; until f returns false.
func (m *Module) Code(at []uint64, f func(name, file string, line int, isEntry bool) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer guard()
	seen := map[*unit]bool{}
	for _, pc := range at {
		for _, u := range m.unitsAt(pc) {
			if seen[u] {
				continue
			}
			seen[u] = true
			m.readUnit(u)
			for i := range u.functions {
				if !m.rows(u, &u.functions[i], f) {
					return
				}
			}
		}
	}
}

// rows is Code for one function.
func (m *Module) rows(u *unit, fn *function, f func(name, file string, line int, isEntry bool) bool) bool {
	k := sort.Search(len(u.lines), func(i int) bool { return u.lines[i].addr > fn.low })
	for k = max(k-1, 0); k < len(u.lines) && u.lines[k].addr < fn.high; k++ {
		l := &u.lines[k]
		if m.meter.spend(1) != nil || !l.end && !f(fn.name, l.file, l.num, fn.low == fn.entry && l.addr <= fn.low) {
			return false
		}
	}
	return true
}
