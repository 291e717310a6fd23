package export

import "errors"

// The tree of calls: a node is a function that was called from a place, in a function that was called from a place, and so on. What
// is counted is counted by node.

// node is a function in the tree. Node 0 is the root and no function.
type node struct {
	parent int32 // a node; negative, in an interval's own tree: ^the number of a root
	fn     int32
	depth  int32
	site   place // inside of the call, in parent's function; 0 is nowhere
	calls  uint64
	bytes  uint64 // asked of malloc's family here
	blocks uint64 // how often that was
}

// Bounds of the tree.
const (
	maxNodes = 1 << 23
	// maxDepth is how deep the tree is; what is called deeper is put beside what called it.
	maxDepth = 1024
)

var errTooManyCalls = errors.New("export: the program's calls come in too many ways: its tree has more than 8 million of them")

type childKey struct {
	parent int32
	fn     int32
	site   place
}

// tree is the nodes, each behind its parent.
type tree struct {
	nodes    []node
	children map[childKey]int32
	folded   uint64 // calls deeper than maxDepth
	full     bool
}

func newTree() *tree { return &tree{nodes: make([]node, 1), children: map[childKey]int32{}} }

// child returns the node of a function that is called from site in a parent.
func (t *tree) child(parent int32, site place, fn int32) int32 {
	depth := int32(1)
	if parent >= 0 {
		if t.nodes[parent].depth >= maxDepth {
			t.folded++
			parent, site = t.nodes[parent].parent, t.nodes[parent].site
		}
		if parent >= 0 {
			depth = t.nodes[parent].depth + 1
		}
	}
	k := childKey{parent, fn, site}
	n, ok := t.children[k]
	if !ok {
		if len(t.nodes) >= maxNodes {
			t.full = true
			return 0
		}
		n = int32(len(t.nodes))
		t.nodes = append(t.nodes, node{parent: parent, fn: fn, site: site, depth: depth})
		t.children[k] = n
	}
	return n
}
