package record

import (
	"slices"
	"sort"

	"vplay/checkpoint"
)

// Sets of pages, and what is done with sets: union, difference, intersection. They know
// nothing of memory or of processes.

// pageRange is a run of pages: the half-open interval [lo,hi) of page numbers.
type pageRange struct{ lo, hi uint64 }

// ranges is a set of page numbers: sorted, disjoint, non-adjacent.
// Programs touch memory in runs, so this is far smaller than a bitmap.
type ranges []pageRange

// add appends pages [lo,hi), which must not lie before what is there.
func (r *ranges) add(lo, hi uint64) {
	if n := len(*r); n > 0 && (*r)[n-1].hi >= lo {
		(*r)[n-1].hi = max((*r)[n-1].hi, hi)
		return
	}
	*r = append(*r, pageRange{lo, hi})
}

// rangesOf returns the set of the given page numbers, which it sorts.
func rangesOf(pages []uint64) (r ranges) {
	slices.Sort(pages)
	for _, p := range pages {
		r.add(p, p+1)
	}
	return r
}

// pagesOf returns the set of the pages at the addresses that are keys of m.
func pagesOf(m map[uint64][]byte) ranges {
	pages := make([]uint64, 0, len(m))
	for a := range m {
		pages = append(pages, a/checkpoint.PageSize)
	}
	return rangesOf(pages)
}

// count returns the number of pages.
func (r ranges) count() (n uint64) {
	for _, s := range r {
		n += s.hi - s.lo
	}
	return n
}

// has reports whether page p is in the set.
func (r ranges) has(p uint64) bool {
	i := sort.Search(len(r), func(i int) bool { return r[i].hi > p })
	return i < len(r) && r[i].lo <= p
}

// from returns the run of pages that page p is in, or else the first behind it.
func (r ranges) from(p uint64) (s pageRange, ok bool) {
	i := sort.Search(len(r), func(i int) bool { return r[i].hi > p })
	if i == len(r) {
		return s, false
	}
	return r[i], true
}

// union returns the pages of either set.
func (r ranges) union(o ranges) ranges {
	if len(o) == 0 {
		return r
	}
	if len(r) == 0 {
		return o
	}
	out := make(ranges, 0, len(r)+len(o))
	for i, j := 0, 0; i < len(r) || j < len(o); {
		if j == len(o) || i < len(r) && r[i].lo <= o[j].lo {
			out.add(r[i].lo, r[i].hi)
			i++
		} else {
			out.add(o[j].lo, o[j].hi)
			j++
		}
	}
	return out
}

// minus returns the pages of r that are not in o.
func (r ranges) minus(o ranges) ranges {
	var out ranges
	j := 0
	for _, s := range r {
		for j < len(o) && o[j].hi <= s.lo {
			j++
		}
		lo := s.lo
		for k := j; k < len(o) && o[k].lo < s.hi; k++ {
			if o[k].lo > lo {
				out.add(lo, o[k].lo)
			}
			lo = max(lo, o[k].hi)
		}
		if lo < s.hi {
			out.add(lo, s.hi)
		}
	}
	return out
}

// intersect returns the pages in both sets.
func (r ranges) intersect(o ranges) ranges {
	var out ranges
	for i, j := 0, 0; i < len(r) && j < len(o); {
		lo, hi := max(r[i].lo, o[j].lo), min(r[i].hi, o[j].hi)
		if lo < hi {
			out.add(lo, hi)
		}
		if r[i].hi < o[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// within calls f for the runs of pages of the set that are in [lo,hi), which is not empty, in order.
func (r ranges) within(lo, hi uint64, f func(lo, hi uint64)) {
	i := sort.Search(len(r), func(i int) bool { return r[i].hi > lo })
	for ; i < len(r) && r[i].lo < hi; i++ {
		f(max(r[i].lo, lo), min(r[i].hi, hi))
	}
}

// each calls f for every page number, in order, until f fails.
func (r ranges) each(f func(page uint64) error) error {
	for _, s := range r {
		for p := s.lo; p < s.hi; p++ {
			if err := f(p); err != nil {
				return err
			}
		}
	}
	return nil
}
