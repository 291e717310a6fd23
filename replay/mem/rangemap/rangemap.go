// Package rangemap is a map from disjoint ranges of addresses to values, for
// memory maps of any length: the emulated machine's and the recorder's.
//
// A program may have 65,530 mappings (vm.max_map_count) and more where the
// administrator says so, and change one with each call. A sorted slice costs
// a copy of all of them for each change, 30 s for those of a program that
// protects every other page of an array. Here a change costs the logarithm of
// their number.
//
// A [Map] is a value that never changes: a change makes a new one, which shares
// all but the path to the change with the old one. So a snapshot of a memory map
// is a copy of one pointer, and goroutines may read a Map while others change
// theirs.
//
// It is a randomised binary search tree (Martínez and Roura, "Randomized binary
// search trees", JACM 45(2), 1998): joining two trees takes the root of the one
// or of the other with the probability of their sizes, so that the shape does not
// depend on the order of the changes, and a file cannot be made that makes it deep.
package rangemap

import (
	"iter"
	"math/rand/v2"
)

// Value is what a Map holds. Values are copied; they must not be changed through
// the pointers that a Map gives out.
type Value[V any] interface {
	// Bounds returns the range of addresses [start, end); start < end.
	Bounds() (start, end uint64)
	// Cut returns the value of the part [start, end) of the range.
	Cut(start, end uint64) V
}

// Map holds values by range, sorted by address. The zero Map is empty. It may
// be copied and compared: equal Maps have the same content, but the reverse
// need not be so.
type Map[V Value[V]] struct {
	root *node[V]
}

type node[V Value[V]] struct {
	start, end  uint64
	left, right *node[V]
	size        int
	value       V
}

// Of returns a Map of values, which must be sorted and disjoint.
func Of[V Value[V]](values []V) Map[V] { return Map[V]{build(values)} }

func build[V Value[V]](values []V) *node[V] {
	if len(values) == 0 {
		return nil
	}
	mid := len(values) / 2
	n := &node[V]{value: values[mid]}
	n.start, n.end = n.value.Bounds()
	return n.set(build(values[:mid]), build(values[mid+1:]))
}

// Len returns the number of values.
func (m Map[V]) Len() int { return m.root.count() }

// Find returns the value whose range holds a, or nil.
func (m Map[V]) Find(a uint64) *V {
	for n := m.root; n != nil; {
		switch {
		case a < n.start:
			n = n.left
		case a >= n.end:
			n = n.right
		default:
			return &n.value
		}
	}
	return nil
}

// From returns the values whose ranges end above a, in order.
func (m Map[V]) From(a uint64) iter.Seq[*V] {
	return func(yield func(*V) bool) { m.root.up(a, yield) }
}

// Backward returns all values, the last first.
func (m Map[V]) Backward() iter.Seq[*V] {
	return func(yield func(*V) bool) { m.root.down(yield) }
}

// All returns all values in order, in a slice of the caller's own.
func (m Map[V]) All() []V {
	out := make([]V, 0, m.Len())
	for v := range m.From(0) {
		out = append(out, *v)
	}
	return out
}

// Inside returns the values in [start, end), those across a boundary cut at it,
// in a slice of the caller's own.
func (m Map[V]) Inside(start, end uint64) []V {
	var out []V
	for v := range m.From(start) {
		lo, hi := (*v).Bounds()
		if lo >= end {
			break
		}
		if lo < start || hi > end {
			out = append(out, (*v).Cut(max(lo, start), min(hi, end)))
			continue
		}
		out = append(out, *v)
	}
	return out
}

// Replace returns a Map that has values in the place of what m has in
// [start, end); values across a boundary are cut at it. values must be sorted,
// disjoint, and inside.
func (m Map[V]) Replace(start, end uint64, values ...V) Map[V] {
	if start >= end {
		return m
	}
	left, rest := cutAt(m.root, start)
	_, right := cutAt(rest, end)
	return Map[V]{join(join(left, build(values)), right)}
}

// Change returns a Map that has f(v) in the place of each value v of m in [start, end);
// values across a boundary are cut at it. f must not change their bounds. It is Replace of
// all that is Inside, without the lists of them.
func (m Map[V]) Change(start, end uint64, f func(V) V) Map[V] {
	if start >= end {
		return m
	}
	left, rest := cutAt(m.root, start)
	middle, right := cutAt(rest, end)
	return Map[V]{join(join(left, middle.change(f)), right)}
}

func (n *node[V]) change(f func(V) V) *node[V] {
	if n == nil {
		return nil
	}
	c := n.with(n.left.change(f), n.right.change(f))
	c.value = f(n.value)
	return c
}

func (n *node[V]) count() int {
	if n == nil {
		return 0
	}
	return n.size
}

// set gives a new node its children and returns it.
func (n *node[V]) set(left, right *node[V]) *node[V] {
	n.left, n.right, n.size = left, right, left.count()+right.count()+1
	return n
}

// with returns a copy of n with other children.
func (n *node[V]) with(left, right *node[V]) *node[V] {
	c := *n
	return c.set(left, right)
}

func (n *node[V]) up(a uint64, yield func(*V) bool) bool {
	if n == nil {
		return true
	}
	return (n.start <= a || n.left.up(a, yield)) && (n.end <= a || yield(&n.value)) && n.right.up(a, yield)
}

func (n *node[V]) down(yield func(*V) bool) bool {
	return n == nil || n.right.down(yield) && yield(&n.value) && n.left.down(yield)
}

// join returns the tree of all of a, which is below, and all of b.
func join[V Value[V]](a, b *node[V]) *node[V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case rand.IntN(a.size+b.size) < a.size:
		return a.with(a.left, join(a.right, b))
	}
	return b.with(join(a, b.left), b.right)
}

// split returns the trees of the ranges that start below a and of the others.
func split[V Value[V]](n *node[V], a uint64) (below, above *node[V]) {
	if n == nil {
		return nil, nil
	}
	if n.start < a {
		l, r := split(n.right, a)
		return n.with(n.left, l), r
	}
	l, r := split(n.left, a)
	return l, n.with(r, n.right)
}

// cutAt is split with a range across a cut in two.
func cutAt[V Value[V]](n *node[V], a uint64) (below, above *node[V]) {
	below, above = split(n, a)
	last := below
	for last != nil && last.right != nil {
		last = last.right
	}
	if last == nil || last.end <= a {
		return below, above
	}
	below, _ = split(below, last.start)
	below = join(below, build([]V{last.value.Cut(last.start, a)}))
	return below, join(build([]V{last.value.Cut(a, last.end)}), above)
}
