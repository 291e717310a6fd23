package dwarf

import "encoding/binary"

// Going from node to node of chains and trees, of which containers have millions: the words
// of nodes are read a page at a time. Which nodes there are is in container_shapes.go.

// Pages that a walk keeps. What lies on one is met again soon: programs allocate nodes one
// after the other.
const (
	pageBytes = 4096
	keptPages = 1024
)

// walk reads words of memory that does not change meanwhile.
type walk struct {
	v     Value
	pages [keptPages]*keptPage
}

// keptPage is the readable start of a page.
type keptPage struct {
	base uint64
	n    int
	b    [pageBytes]byte
}

func newWalk(v Value) *walk { return &walk{v: v} }

// word reads a pointer.
func (w *walk) word(addr uint64) (uint64, error) {
	base := addr &^ (pageBytes - 1)
	at := int(addr - base)
	slot := &w.pages[base/pageBytes%keptPages]
	p := *slot
	if p == nil || p.base != base {
		if p == nil {
			p = &keptPage{}
			*slot = p
		}
		p.base, p.n = base, w.v.env.Mem.ReadMemory(base, p.b[:])
	}
	if at+8 > p.n { // behind a gap, or in two pages
		return w.v.pointerAt(addr)
	}
	return binary.LittleEndian.Uint64(p.b[at:]), nil
}

// successor returns the node that follows one in a tree. budget bounds the links that
// are followed.
func (w *walk) successor(node uint64, budget *int) (uint64, error) {
	right, err := w.word(node + treeRight)
	if err != nil {
		return 0, err
	}
	if right != 0 {
		for ; *budget > 0; *budget-- {
			left, err := w.word(right + treeLeft)
			if err != nil || left == 0 {
				return right, err
			}
			right = left
		}
	}
	for ; *budget > 0; *budget-- {
		parent, err := w.word(node + treeParent)
		if err != nil {
			return 0, err
		}
		if right, err = w.word(parent + treeRight); err != nil || right != node {
			return parent, err
		}
		node = parent
	}
	return 0, errSize
}
