package replay

import (
	"slices"
	"sort"
)

// Whether a function was executed in a segment cannot be derived from the pages of
// code: a page has dozens of functions. So code is noted to the byte, as blocks of
// the processor are entered, and kept as ranges, which are few because what is
// executed lies together. A block holds what follows forward branches as well,
// taken or not, so that code behind one may be noted that was jumped over; never
// the reverse.

// codeRange is a range of addresses, to excluded.
type codeRange struct{ from, to uint64 }

// codeSet collects what is executed.
type codeSet struct {
	ranges []codeRange
	full   int // how many there may be before they are put in order
}

// add notes [from, to).
func (s *codeSet) add(from, to uint64) {
	if to <= from { // at the end of the address space
		to = ^uint64(0)
	}
	s.ranges = append(s.ranges, codeRange{from, to})
	if len(s.ranges) > max(s.full, 1<<12) {
		s.ranges = merged(s.ranges)
		s.full = 2 * len(s.ranges)
	}
}

// merged sorts ranges and joins those that touch, in place.
func merged(rs []codeRange) []codeRange {
	slices.SortFunc(rs, func(a, b codeRange) int {
		if a.from < b.from {
			return -1
		}
		return 1
	})
	out := rs[:0]
	for _, r := range rs {
		if n := len(out); n > 0 && r.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, r.to)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// code is a codeSet put in order.
type code []codeRange

func (s *codeSet) code() code { return slices.Clone(merged(s.ranges)) }

// has reports whether the instruction at a may have been executed.
func (c code) has(a uint64) bool {
	i := sort.Search(len(c), func(i int) bool { return c[i].to > a })
	return i < len(c) && c[i].from <= a
}

func (c code) equal(d code) bool { return slices.Equal(c, d) }

func (c code) bytes() int64 { return 16 * int64(len(c)) }

func (c code) union(d code) code {
	if c.equal(d) {
		return c
	}
	return slices.Clip(merged(slices.Concat(c, d)))
}

// pages returns the addresses of the pages that hold executed code, sorted.
func (c code) pages() []uint64 {
	var out []uint64
	for _, r := range c {
		for p := r.from &^ 4095; p < r.to; p += 4096 {
			if n := len(out); n == 0 || out[n-1] != p {
				out = append(out, p)
			}
		}
	}
	return out
}
