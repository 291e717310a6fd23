package dwarf

import (
	"cmp"
	"slices"
	"sort"
)

// spans says which of many units, or functions, hold an address. Each may have several ranges, and they may overlap. A
// large program has 10^5 of them, and a backtrace asks hundreds of times.
type spans []span

// span is one range, [low, high), of the thing with number of.
type span struct {
	low, high uint64
	reach     uint64 // the highest of the ends up to this one
	of        int
}

// spanBytes is what a span takes in memory.
const spanBytes = 32

// order is called once, when all are there.
func (s spans) order() {
	slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	reach := uint64(0)
	for i := range s {
		reach = max(reach, s[i].high)
		s[i].reach = reach
	}
}

// at returns the numbers of what holds pc, in order, and how many spans were looked at.
func (s spans) at(pc uint64) (found []int, looked int) {
	end := sort.Search(len(s), func(i int) bool { return s[i].low > pc })
	i := end - 1
	for ; i >= 0 && s[i].reach > pc; i-- {
		if s[i].high > pc {
			found = append(found, s[i].of)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), end - i
}
