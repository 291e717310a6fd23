//go:build linux && amd64

package jit

// list holds what there are tens of thousands of, by number: elements stay where they are when it grows, so pointers to them
// stay good and nothing is copied.
type list[T any] struct {
	parts []*[listPart]T
	n     int
}

// listPart is how many elements are allocated at once.
const listPart = 256

// add appends an element and returns its number.
func (l *list[T]) add(v T) uint32 {
	if l.n == len(l.parts)*listPart {
		l.parts = append(l.parts, new([listPart]T))
	}
	id := uint32(l.n)
	l.n++
	*l.at(id) = v
	return id
}

// at returns element number id.
func (l *list[T]) at(id uint32) *T { return &l.parts[id/listPart][id%listPart] }

// clear empties the list.
func (l *list[T]) clear() { *l = list[T]{} }
