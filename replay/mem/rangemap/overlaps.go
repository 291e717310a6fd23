package rangemap

import (
	"cmp"
	"slices"
)

// Ranges that may overlap, which a Map cannot hold, with a fast answer to which of them
// hold a number. There is nothing here that changes one.

// Overlaps finds, of ranges that may overlap, those that hold a number: the mappings
// that show a byte of a file, of which a program may have tens of thousands. It does
// not change.
//
// It is a balanced tree without pointers: the values are sorted by the start of their
// range, and the middle of each part is the root of the part.
type Overlaps[V any] struct {
	items []overlap[V]
}

type overlap[V any] struct {
	start, end uint64
	last       uint64 // where the last of the part's ranges ends
	value      V
}

// NewOverlaps returns the index of values by the ranges [start, end) that bounds gives
// them.
func NewOverlaps[V any](values []V, bounds func(V) (start, end uint64)) *Overlaps[V] {
	o := &Overlaps[V]{items: make([]overlap[V], len(values))}
	for i, v := range values {
		start, end := bounds(v)
		o.items[i] = overlap[V]{start: start, end: end, value: v}
	}
	slices.SortStableFunc(o.items, func(a, b overlap[V]) int { return cmp.Compare(a.start, b.start) })
	o.fill(0, len(values))
	return o
}

func (o *Overlaps[V]) fill(from, to int) uint64 {
	if from >= to {
		return 0
	}
	mid := (from + to) / 2
	x := &o.items[mid]
	x.last = max(x.end, o.fill(from, mid), o.fill(mid+1, to))
	return x.last
}

// At calls f for the values whose range holds n, by the start of the range, until it
// returns false. A nil Overlaps has none.
func (o *Overlaps[V]) At(n uint64, f func(V) bool) {
	if o != nil {
		o.at(0, len(o.items), n, f)
	}
}

// at is At for the part [from, to). It reports false when f did.
func (o *Overlaps[V]) at(from, to int, n uint64, f func(V) bool) bool {
	if from >= to {
		return true
	}
	mid := (from + to) / 2
	x := &o.items[mid]
	if x.last <= n {
		return true
	}
	if !o.at(from, mid, n, f) {
		return false
	}
	if n < x.start {
		return true
	}
	return (n >= x.end || f(x.value)) && o.at(mid+1, to, n, f)
}
