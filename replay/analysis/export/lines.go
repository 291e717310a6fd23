package export

import (
	"slices"
	"sort"
	"strconv"

	"vplay/checkpoint"
	"vplay/dwarf"
)

// Source lines and inlined functions of places.

// line is a function at a place, its source file and the line there; file is "" where it is not known.
type line struct {
	fn     int32 // -1: it was inlined
	name   string
	file   string
	number int
}

// spot is all that is known of a place: several have the same one, that of their source line.
type spot struct {
	at    place  // the first that was asked for
	lines []line // the function, in front of it those inlined there, innermost first
	id    uint64 // for who numbers spots
}

// spotKey is what tells spots apart; chain is the inlined functions and where they were called.
type spotKey struct {
	fn     int32
	number int
	file   string
	chain  string
}

// lines looks places up, those of a function all at once.
type lines struct {
	code   *code
	budget *checkpoint.Budget
	same   map[spotKey]*spot
	wholes map[int32][]whole // by module, sorted
	last   whole
}

// whole is the code of a function in one range, and what is known of its pieces where that was asked for.
type whole struct {
	low, high place
	pieces    []dwarf.Piece
	spots     []*spot
}

func newLines(w *walk) *lines {
	return &lines{code: w.code, budget: w.s.Rec.Budget(), same: map[spotKey]*spot{}, wholes: map[int32][]whole{}}
}

// at returns what is known of a place in a function.
func (l *lines) at(p place, fn int32) *spot {
	w := l.whole(p)
	if len(w.pieces) == 0 {
		return l.spot(p, fn, dwarf.Piece{})
	}
	i := sort.Search(len(w.pieces), func(i int) bool { return w.pieces[i].Low > p.addr() }) - 1
	s := w.spots[max(i, 0)]
	if s == nil || s.lines[len(s.lines)-1].fn != fn {
		s = l.spot(p, fn, w.pieces[max(i, 0)])
		w.spots[max(i, 0)] = s
	}
	return s
}

// whole returns the code around a place; it has no pieces where nothing is known of that.
func (l *lines) whole(p place) *whole {
	if p >= l.last.low && p < l.last.high {
		return &l.last
	}
	list := l.wholes[p.module()]
	i := sort.Search(len(list), func(i int) bool { return list[i].low > p })
	if i > 0 && p < list[i-1].high {
		l.last = list[i-1]
		return &l.last
	}
	l.budget.Renew()
	w := whole{low: p, high: p + 1}
	if d := l.code.modules[p.module()].file; d != nil {
		if x, ok := d.Whole(p.addr()); ok {
			w = whole{placeOf(p.module(), x.Low), placeOf(p.module(), x.High), x.Pieces, make([]*spot, len(x.Pieces))}
		} else if file, number, ok := d.Line(p.addr()); ok {
			w.pieces, w.spots = []dwarf.Piece{{Low: p.addr(), File: file, Line: number}}, make([]*spot, 1)
		}
	}
	if len(w.pieces) > 0 || w.high > p+1 {
		l.wholes[p.module()] = slices.Insert(list, i, w)
	}
	l.last = w
	return &l.last
}

// spot returns what a piece says.
func (l *lines) spot(p place, fn int32, piece dwarf.Piece) *spot {
	outer := line{fn: fn, name: l.code.functions[fn].name, file: piece.File, number: piece.Line}
	key := spotKey{fn: fn, number: outer.number, file: outer.file}
	var list []line
	for _, in := range piece.Inlined {
		list = append(list, line{-1, in.Name, outer.file, outer.number})
		key.chain += in.Name + "\x00" + in.CallFile + "\x00" + strconv.Itoa(in.CallLine) + "\x00"
		outer.file, outer.number = in.CallFile, in.CallLine
	}
	s := l.same[key]
	if s == nil {
		s = &spot{at: p, lines: append(list, outer)}
		l.same[key] = s
	}
	return s
}
