package mem

import "sync/atomic"

// The page table is a persistent radix tree over the 47 bits of a page's key
// number: 7 bits a level of nodes, 5 for the leaves. Nodes are counted by
// reference: a node with one reference belongs to one tree and is changed in
// place, a shared one is copied on the way down to a change. A copy counts
// everything in it once more, so leaves are small: see RATIONALE.md.

const (
	levelBits = 7
	fanout    = 1 << levelBits
	leafBits  = 5
	leafPages = 1 << leafBits
	levels    = 7 // six of nodes, one of leaves
	keyBits   = (levels-1)*levelBits + leafBits + 12
)

// node is an inner node; at the last inner level its children are leaves.
type node struct {
	refs   atomic.Int32
	kids   [fanout]*node
	leaves *[fanout]*leaf // last inner level only
}

type leaf struct {
	refs  atomic.Int32
	pages [leafPages]pageID
}

func (p *Pool) newNode(last bool) *node {
	n := &node{}
	n.refs.Store(1)
	if last {
		n.leaves = new([fanout]*leaf)
	}
	p.tables.Add(n.bytes())
	return n
}

// bytes is what a node takes, its leaves apart.
func (n *node) bytes() int64 {
	if n.leaves != nil {
		return 2 * nodeBytes
	}
	return nodeBytes
}

// What nodes and leaves take, in bytes.
const (
	nodeBytes = 8 * (fanout + 2)
	leafBytes = 4 * (leafPages + 1)
)

// shift is how many low bits of a key are below one child of a node at level.
func shift(level int) int { return 12 + leafBits + levelBits*(levels-2-level) }

// index is the child of a node at level under which key is, leafIndex the
// page's place in its leaf.
func index(key uint64, level int) int { return int(key>>shift(level)) & (fanout - 1) }
func leafIndex(key uint64) int        { return int(key>>12) & (leafPages - 1) }

// lookup returns the page at key, 0 when there is none.
func lookup(root *node, key uint64) pageID {
	n := root
	for l := range levels - 2 {
		if n = n.kids[index(key, l)]; n == nil {
			return 0
		}
	}
	lf := n.leaves[index(key, levels-2)]
	if lf == nil {
		return 0
	}
	return lf.pages[leafIndex(key)]
}

// own returns n when it is referenced once, else a copy with one reference,
// having given up the reference to n.
func (p *Pool) own(n *node) *node {
	if n.refs.Load() == 1 {
		return n
	}
	c := p.newNode(n.leaves != nil)
	if n.leaves != nil {
		*c.leaves = *n.leaves
		for _, lf := range c.leaves {
			if lf != nil {
				lf.refs.Add(1)
			}
		}
	} else {
		c.kids = n.kids
		for _, k := range c.kids {
			if k != nil {
				k.refs.Add(1)
			}
		}
	}
	p.release(n)
	return c
}

func (p *Pool) ownLeaf(lf *leaf) *leaf {
	if lf.refs.Load() == 1 {
		return lf
	}
	c := &leaf{pages: lf.pages}
	c.refs.Store(1)
	p.tables.Add(leafBytes)
	for _, id := range c.pages {
		if id != 0 {
			p.ref(id)
		}
	}
	p.releaseLeaf(lf)
	return c
}

// slot returns where the page of key stands in a tree whose path is owned by
// *root alone, making the path.
func (p *Pool) slot(root **node, key uint64) *pageID {
	*root = p.own(*root)
	n := *root
	for l := range levels - 2 {
		k := &n.kids[index(key, l)]
		if *k == nil {
			*k = p.newNode(l == levels-3)
		} else {
			*k = p.own(*k)
		}
		n = *k
	}
	lf := &n.leaves[index(key, levels-2)]
	if *lf == nil {
		*lf = &leaf{}
		(*lf).refs.Store(1)
		p.tables.Add(leafBytes)
	} else {
		*lf = p.ownLeaf(*lf)
	}
	return &(*lf).pages[leafIndex(key)]
}

// release drops one reference to a subtree.
func (p *Pool) release(n *node) {
	if n.refs.Add(-1) != 0 {
		return
	}
	p.tables.Add(-n.bytes())
	if n.leaves != nil {
		for _, lf := range n.leaves {
			if lf != nil {
				p.releaseLeaf(lf)
			}
		}
		return
	}
	for _, k := range n.kids {
		if k != nil {
			p.release(k)
		}
	}
}

func (p *Pool) releaseLeaf(lf *leaf) {
	if lf.refs.Add(-1) != 0 {
		return
	}
	p.tables.Add(-leafBytes)
	for _, id := range lf.pages {
		if id != 0 {
			p.unref(id)
		}
	}
}

// walk calls f for each page whose key is in [lo, hi), in order.
func walk(root *node, lo, hi uint64, f func(key uint64, id pageID)) {
	walkNode(root, 0, 0, lo, hi, f)
}

func walkNode(n *node, level int, base, lo, hi uint64, f func(uint64, pageID)) {
	bits := shift(level)
	for i := range fanout {
		start := base | uint64(i)<<bits
		if start >= hi || start+(1<<bits) <= lo {
			continue
		}
		if n.leaves == nil {
			if k := n.kids[i]; k != nil {
				walkNode(k, level+1, start, lo, hi, f)
			}
			continue
		}
		if lf := n.leaves[i]; lf != nil {
			walkLeaf(lf, start, lo, hi, f)
		}
	}
}

func walkLeaf(lf *leaf, base, lo, hi uint64, f func(uint64, pageID)) {
	for j, id := range lf.pages {
		key := base | uint64(j)<<12
		if id != 0 && key >= lo && key < hi {
			f(key, id)
		}
	}
}

// diff calls f for each key whose page differs between the trees; a is or b is
// 0 where one has none.
func diff(a, b *node, f func(key uint64, ida, idb pageID)) { diffNode(a, b, 0, 0, f) }

func diffNode(a, b *node, level int, base uint64, f func(uint64, pageID, pageID)) {
	if a == b {
		return
	}
	bits := shift(level)
	for i := range fanout {
		start := base | uint64(i)<<bits
		if level == levels-2 {
			diffLeaf(leafAt(a, i), leafAt(b, i), start, f)
			continue
		}
		ka, kb := kidAt(a, i), kidAt(b, i)
		if ka != kb {
			diffNode(ka, kb, level+1, start, f)
		}
	}
}

func kidAt(n *node, i int) *node {
	if n == nil {
		return nil
	}
	return n.kids[i]
}

func leafAt(n *node, i int) *leaf {
	if n == nil {
		return nil
	}
	return n.leaves[i]
}

func diffLeaf(a, b *leaf, base uint64, f func(uint64, pageID, pageID)) {
	if a == b {
		return
	}
	for j := range leafPages {
		var ia, ib pageID
		if a != nil {
			ia = a.pages[j]
		}
		if b != nil {
			ib = b.pages[j]
		}
		if ia != ib {
			f(base|uint64(j)<<12, ia, ib)
		}
	}
}
