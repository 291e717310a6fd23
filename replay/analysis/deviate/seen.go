package deviate

import (
	"cmp"
	"path"
	"slices"
)

// What good runs did, by places that all runs have: what the bad run is held to. A way that no good run
// went is new. Where good runs went it, but not from these callers, it is less so.

// edge is a way from one place to another.
type edge struct{ from, to place }

// called is an edge with the callers it was taken from.
type called struct {
	edge
	site, outer place
}

// seen is what all good runs did together.
type seen struct {
	bad    *run
	shifts []*shift // of the good runs
	edges  map[edge]bool
	called map[called]bool
	places map[place]bool   // executed
	loops  map[edge]uint64  // turns at most
	heads  map[place]uint64 // turns at most, by where the loop begins
	depths map[place]uint64
	pairs  map[[2]edge]bool // the second was taken behind the first in one activation
}

// newSeen joins what good runs did. Places are the bad run's.
func newSeen(good []*run, bad *run) *seen {
	s := &seen{bad: bad, edges: map[edge]bool{}, called: map[called]bool{}, places: map[place]bool{}, loops: map[edge]uint64{}, heads: map[place]uint64{}, depths: map[place]uint64{}, pairs: map[[2]edge]bool{}}
	for _, g := range good {
		shift := newShift(g, bad)
		s.shifts = append(s.shifts, shift)
		for w := range g.t.ways {
			c := g.t.byCtx[w.ctx]
			for _, from := range shift.of(w.from) {
				for _, to := range shift.of(w.to) {
					e := edge{from, to}
					s.edges[e], s.places[to] = true, true
					s.called[called{e, g.names.place(c.site), g.names.place(c.outer)}] = true
				}
			}
		}
		for first, last := range g.t.blocks {
			if !g.names.isOther(first) {
				s.places[g.names.place(first)] = true
				continue
			}
			for _, p := range g.names.lines(first, last, g.code) {
				for _, p := range shift.move(p) {
					s.places[p] = true
				}
			}
		}
		for w, l := range g.t.loops {
			for _, to := range shift.of(w.to) {
				s.heads[to] = max(s.heads[to], l.most)
				for _, from := range shift.of(w.from) {
					s.loops[edge{from, to}] = max(s.loops[edge{from, to}], l.most)
				}
			}
		}
		for e, d := range g.t.depths {
			for _, p := range shift.of(e) {
				s.depths[p] = max(s.depths[p], d.most)
			}
		}
		g.pairs(func(a, b way, _ *times) { s.pairs[[2]edge{g.edge(a), g.edge(b)}] = true })
	}
	return s
}

// edge returns a way by places.
func (r *run) edge(w way) edge { return edge{r.names.place(w.from), r.names.place(w.to)} }

// pairs calls f for what was taken in an activation of a function, a before b.
func (r *run) pairs(f func(a, b way, of *times)) {
	byBit := map[*depth]map[uint64]way{}
	of := map[way]*depth{}
	for _, d := range r.t.depths {
		byBit[d] = map[uint64]way{}
		for w, b := range d.pairs {
			byBit[d][b], of[w] = w, d
		}
	}
	for w, x := range r.t.ways {
		b := way{from: w.from, to: w.to}
		if r.names.isOther(w.from) || !r.names.isOwn(w.from) {
			continue
		}
		for bit, a := range byBit[of[b]] {
			if x.with&bit != 0 {
				f(a, b, x)
			}
		}
	}
}

// How new a way is, in quarters.
const (
	isKnown   = 0
	newCaller = 1
	isNew     = 4
)

// novelty implements judge.
func (s *seen) novelty(w way, c callers) uint8 {
	n := s.bad.names
	e := edge{n.place(w.from), n.place(w.to)}
	if n.isOther(w.from) { // the lines of another build follow each other in another order
		if s.places[e.to] || !s.mayDo(e.to) {
			return isKnown
		}
		return isNew
	}
	switch {
	case !s.edges[e]:
		return isNew
	case !s.called[called{e, n.place(c.site), n.place(c.outer)}]:
		return newCaller
	}
	return isKnown
}

// mayDo reports whether a good run's build has code of a line at all: optimization leaves lines out.
func (s *seen) mayDo(p place) bool {
	for _, h := range s.shifts {
		for _, q := range h.back(p) {
			if h.names.hasCode(q) {
				return true
			}
		}
	}
	return false
}

// turns implements judge.
func (s *seen) turns(from, to uint64) (uint64, bool) {
	n := s.bad.names
	if n.isOther(from) {
		most, ok := s.heads[n.place(to)]
		return most + 1, ok // optimization moves a loop's test from its beginning to its end
	}
	most, ok := s.loops[edge{n.place(from), n.place(to)}]
	return most, ok || s.places[n.place(to)]
}

// depth implements judge.
func (s *seen) depth(entry uint64) (uint64, bool) {
	d, ok := s.depths[s.bad.names.place(entry)]
	return d, ok
}

// shift says how the lines of a good run's source differ from the bad run's: by the functions that
// the good run called and both have.
type shift struct {
	names *names
	lines map[string][]moved // by source file, by line
}

// moved says by how much the lines of a function are further down in the bad run's source: at its
// beginning, and at its end, which differ where the function was changed.
type moved struct {
	first, last int
	by          [2]int
}

// newShift finds how lines have moved between a good run and the bad one.
func newShift(g, bad *run) *shift {
	s := &shift{names: g.names, lines: map[string][]moved{}}
	for e := range g.t.depths {
		l := g.names.at(e)
		if !g.names.isOther(e) || l.Line <= 0 || l.Function == "" {
			continue
		}
		a, mod := bad.names.res.Lookup(l.Function)
		if mod == nil || path.Base(mod.Path) != path.Base(l.Module) {
			continue
		}
		if b := bad.names.at(a); b.Line > 0 && path.Base(b.File) == path.Base(l.File) {
			m := moved{first: l.Line, last: g.names.lastLine(e), by: [2]int{b.Line - l.Line, b.Line - l.Line}}
			if end := bad.names.lastLine(a); end > 0 && m.last > 0 {
				m.by[1] = end - m.last
			}
			s.lines[path.Base(l.File)] = append(s.lines[path.Base(l.File)], m)
		}
	}
	for _, list := range s.lines {
		slices.SortFunc(list, func(a, b moved) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last)) })
	}
	return s
}

// of returns the places that an address of the good run may be in the bad one.
func (s *shift) of(pc uint64) []place { return s.move(s.names.place(pc)) }

// move is of for a place.
func (s *shift) move(p place) []place {
	list := s.lines[p.in]
	i := 0
	for i < len(list) && list[i].first <= int(p.n) {
		i++
	}
	if i == 0 {
		return []place{p}
	}
	m := &list[i-1]
	out := []place{{p.in, p.n + uint64(m.by[0])}}
	if m.by[0] != m.by[1] {
		out = append(out, place{p.in, p.n + uint64(m.by[1])})
	}
	return out
}

// back returns the places of the good run that may be p in the bad one.
func (s *shift) back(p place) (out []place) {
	by := map[int]bool{}
	for _, m := range s.lines[p.in] {
		by[m.by[0]], by[m.by[1]] = true, true
	}
	by[0] = by[0] || len(by) == 0
	for b := range by {
		if q := (place{p.in, p.n - uint64(b)}); slices.Contains(s.move(q), p) {
			out = append(out, q)
		}
	}
	return out
}
