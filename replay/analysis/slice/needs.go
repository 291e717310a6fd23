package slice

import (
	"fmt"
	"slices"
)

// Sets of vertices, by number: each live location has one, and there are millions of
// locations but few sets.

// needSets makes each set once.
type needSets struct {
	lists  [][]uint32 // sorted
	index  map[string]uint32
	unions map[[2]uint32]uint32
	single map[uint32]uint32
	recent [recentUnions]union // by the numbers of what was joined
}

// union is a set and the two that it joins.
type union struct{ a, b, of uint32 }

// recentUnions is how many unions are found without the map; a power of two.
const recentUnions = 1 << 12

// maxNeeds bounds a set. What a location is needed by beyond that has no edge of its own;
// it is in the slice all the same.
const maxNeeds = 12

// maxSets bounds the sets that are made by joining; beyond it edges are left out.
const maxSets = 1 << 20

func newNeedSets() *needSets {
	return &needSets{index: map[string]uint32{}, unions: map[[2]uint32]uint32{}, single: map[uint32]uint32{}}
}

// of returns the set of vertex v alone.
func (s *needSets) of(v uint32) uint32 {
	n, ok := s.single[v]
	if !ok {
		n = s.make([]uint32{v})
		s.single[v] = n
	}
	return n
}

func (s *needSets) make(list []uint32) uint32 {
	k := fmt.Sprint(list)
	n, ok := s.index[k]
	if !ok {
		n = uint32(len(s.lists))
		s.index[k], s.lists = n, append(s.lists, list)
	}
	return n
}

// union returns the set of what is in a or b.
func (s *needSets) union(a, b uint32) uint32 {
	if a == b {
		return a
	}
	u := &s.recent[(a*31+b)%recentUnions]
	if u.a != a || u.b != b || a == 0 && b == 0 {
		*u = union{a, b, s.join(a, b)}
	}
	return u.of
}

// join is union without the recent ones.
func (s *needSets) join(a, b uint32) uint32 {
	k := [2]uint32{min(a, b), max(a, b)}
	n, ok := s.unions[k]
	if !ok && len(s.lists) >= maxSets {
		return a
	}
	if !ok {
		all := slices.Concat(s.lists[a], s.lists[b])
		slices.Sort(all)
		all = slices.Compact(all)
		n = s.make(all[:min(len(all), maxNeeds)])
		if len(s.unions) >= maxSets {
			clear(s.unions)
		}
		s.unions[k] = n
	}
	return n
}
