package replay

import (
	"maps"
	"slices"
	"sort"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// Segments: how they are collected, joined and asked. Where they are kept is in index.go, who
// makes them is in indexer.go and worker.go.

// segment is a stretch of execution and what it touched: pages by key, and events.
// A search looks only at segments that can hold what it is after.
type segment struct {
	from, to checkpoint.Position
	// first and last are the indexes of the events applied in it, last excluded.
	first, last int
	// regions is the map at from; remapped says that it changed before to and that
	// pages with several addresses were touched, so that addresses cannot be
	// turned into keys by it.
	regions  mem.AddressMap
	remapped bool

	read, written []uint64 // keys, sorted
	code          code     // executed
}

// collector collects what a segment has touched.
type collector struct {
	sets    *mem.Sets
	code    *codeSet
	from    checkpoint.Position
	first   int
	regions mem.AddressMap
}

// touchesShared reports whether sorted keys have one of a shared object.
func touchesShared(keys []uint64) bool { return len(keys) > 0 && keys[len(keys)-1] >= mem.MaxUser }

// sorted returns the keys of a set in order; nil when there are none, as an index that was
// read from a file has it.
func sorted(set map[uint64]struct{}) []uint64 { return slices.Sorted(maps.Keys(set)) }

// segmentOverhead is what a segment takes besides its keys, in bytes.
const segmentOverhead = 200

// addSegment appends s to the segments of its interval, unless somebody else was faster.
func (x *index) addSegment(s segment, atEnd bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.of(s.from.Interval)
	if atEnd {
		l.end = &s.to
	}
	if l.done || s.from != l.frontier(s.from.Interval) {
		return
	}
	if n := len(l.segments); n > 0 { // neighbours often touch the same
		last := &l.segments[n-1]
		x.segmentBytes += share(&s.read, last.read) + share(&s.written, last.written)
		if s.code.equal(last.code) {
			s.code = last.code
		} else {
			x.segmentBytes += s.code.bytes()
		}
	} else {
		x.segmentBytes += s.bytes()
	}
	x.segmentBytes += segmentOverhead
	l.segments = append(l.segments, s)
	l.done = atEnd
	for x.segmentBytes > x.budget/segmentShare && x.coarsen() {
	}
}

// bytes is what the sets of s take.
func (s *segment) bytes() int64 { return 8*int64(len(s.read)+len(s.written)) + s.code.bytes() }

// segmentShare is the part of the budget, as 1/segmentShare, that segments may have in
// addition to it.
const segmentShare = 8

// share makes a the slice b when they are equal, and returns the bytes that a
// takes of its own.
func share(a *[]uint64, b []uint64) int64 {
	if slices.Equal(*a, b) {
		*a = b
		return 0
	}
	return 8 * int64(len(*a))
}

// coarsen joins every two segments of an interval, everywhere, and reports whether
// that made their number smaller.
func (x *index) coarsen() bool {
	var bytes int64
	joined := false
	for _, l := range x.known {
		var out []segment
		for i := 0; i < len(l.segments); i += 2 {
			s := l.segments[i]
			if i+1 < len(l.segments) {
				s = join(&s, &l.segments[i+1])
				joined = true
			}
			bytes += segmentOverhead + s.bytes()
			out = append(out, s)
		}
		l.segments = out
	}
	x.segmentBytes = bytes
	return joined
}

func join(a, b *segment) segment {
	s := segment{
		from: a.from, to: b.to, first: a.first, last: b.last, regions: a.regions, remapped: a.remapped || b.remapped,
		read: union(a.read, b.read), written: union(a.written, b.written), code: a.code.union(b.code),
	}
	if a.regions != b.regions {
		s.remapped = s.remapped || touchesShared(s.read) || touchesShared(s.written)
	}
	return s
}

// union merges sorted lists.
func union(a, b []uint64) []uint64 {
	if slices.Equal(a, b) {
		return a
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Clip(slices.Compact(out))
}

// frontier is where the segments of interval id end.
func (l *intervalIndex) frontier(id uint32) checkpoint.Position {
	if n := len(l.segments); n > 0 {
		return l.segments[n-1].to
	}
	return checkpoint.Position{Interval: id}
}

// mayHold reports whether s can hold a stop of q; events are those of the
// interval, nil where q asks for none of them.
func (s *segment) mayHold(pool *mem.Pool, q *stops, events []checkpoint.Event) bool {
	for a := range q.breaks {
		if s.code.has(a) {
			return true
		}
	}
	for _, w := range q.watches {
		if s.touches(pool, w.Addr, w.Len, s.written) || w.Kind&mem.WatchRead != 0 && s.touches(pool, w.Addr, w.Len, s.read) {
			return true
		}
	}
	for i := s.first; i < s.last && events != nil; i++ {
		if q.mayStopAt(&events[i]) || remaps(&events[i], q.watches) {
			return true
		}
	}
	return false
}

// remaps reports whether an event changes what is mapped at a watched address.
func remaps(e *checkpoint.Event, watches []mem.Watch) bool {
	for i := range e.Maps {
		op := &e.Maps[i]
		for j := range watches {
			w := &watches[j]
			if w.Overlaps(op.Start, op.End) || op.Kind == checkpoint.MapOpMove && w.Overlaps(op.New, op.NewEnd) {
				return true
			}
		}
	}
	return false
}

// touches reports whether a page of the n bytes at a is among keys.
func (s *segment) touches(pool *mem.Pool, a, n uint64, keys []uint64) bool {
	if n == 0 {
		return false
	}
	if s.remapped || a+n-1 < a || a+n-1 >= mem.MaxUser {
		return true
	}
	for p := a &^ (mem.PageSize - 1); p <= a+n-1; p += mem.PageSize {
		key := pool.KeyIn(s.regions, p)
		if _, ok := slices.BinarySearch(keys, key); ok {
			return true
		}
		if key != p { // it may have been private memory before a later mapping
			if _, ok := slices.BinarySearch(keys, p); ok {
				return true
			}
		}
		if int(n/mem.PageSize) > len(keys) { // a range larger than all that was touched
			return s.touchesRange(pool, a, n, keys)
		}
	}
	return false
}

// touchesRange is touches for ranges of more pages than there are keys.
func (s *segment) touchesRange(pool *mem.Pool, a, n uint64, keys []uint64) bool {
	i := sort.Search(len(keys), func(i int) bool { return keys[i] >= a&^(mem.PageSize-1) })
	return i < len(keys) && keys[i] < a+n || touchesShared(keys)
}
