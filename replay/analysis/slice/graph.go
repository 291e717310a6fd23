package slice

import (
	"slices"

	"vplay/checkpoint"
	"vplay/checkpoint/abi"
	"vplay/replay/x86"
)

// The slice as a graph: a vertex for each instruction of the program, however often it is
// in the slice, and for each kind of source outside; an edge from who needed a value to who
// made it. So loops are folded as they are met, and the graph is as large as the code.
//
// An instruction may be met because the value itself was made by it, and at another time because it
// decided where something was loaded from or stored to, or that something was executed at all. These are vertices of their own, by
// their role: else the one would bring what the other was made of, and a value that came through memmove would seem to be made of everything that memmove ever moved.

// Kind says what a vertex is.
type Kind uint8

// The kinds of vertices.
const (
	Instruction Kind = iota
	Criterion        // what the slice is of
	Call             // a system call's result, or memory that it wrote or mapped
	Signal           // what the kernel passes to a handler
	Gap              // a call whose effects were not recorded
	Start            // memory or registers as they were where the recording begins
)

// Vertex is an instruction of the slice, or a source.
type Vertex struct {
	Kind   Kind
	Count  uint64              // how often it is in the slice
	Newest checkpoint.Position // before it, of the last time

	PC   uint64 // Instruction
	Inst x86.Inst

	NR   int64  // Call and Gap: the system call
	Arg  uint64 // its first argument: a descriptor, where it takes one; of memory at the start its address, where it is one piece
	Note string // what the recording says of the call: a file's path, a peer
	What string // of a source: "registers" or "memory"

	Role  Role   // what it did for the criterion
	Needs []Edge // what it was made of, and what decided about it, newest first
}

// Role says what something did for what needed it. What is needed for one role is not needed for a lower one on that way.
type Role uint8

// The roles.
const (
	ForValue   Role = iota // the value was made of it
	ForAddress             // it only decided where something was loaded from or stored to
	ForControl             // it only decided that something was executed
	roles
)

// Edge says that a vertex needed what another one made.
type Edge struct {
	To     *Vertex
	Count  uint64
	Newest checkpoint.Position // of To, for this edge
	Role   Role                // of To for the vertex: an address of its memory operands, the branch that led to it
}

// graph is the slice under way.
type graph struct {
	sets  *needSets
	nodes [roles][]*node   // of instructions, by role and the number of their vertex
	other map[uint32]*node // of sources
	edges map[[2]uint32]*edge
	keys  map[source]uint32
}

// positioner tells a position when it is needed: that is seldom.
type positioner interface{ position() checkpoint.Position }

// here is a position that is known.
type here checkpoint.Position

func (h here) position() checkpoint.Position { return checkpoint.Position(h) }

// The identity of a node is the number of its vertex (of instructions from 1 on, walker.vertex, of sources with sourceBit) and its role.
// A member of a need set is the identity of a node, the role of the edge, and above these the role of what is met
// for that member: the higher one of the two. Sets are sorted, so their first member says the role of what is met.
const (
	criterion  = 0 // the root
	numberMask = 1<<25 - 1
	sourceBit  = 1 << 25
	edgeShift  = 26
	nodeShift  = 28
	metShift   = 30
	roleMask   = 3
	nodeMask   = roleMask<<nodeShift | sourceBit | numberMask
)

// member returns the member of need sets for what node id needs in a role.
func member(id uint32, r Role) uint32 {
	return id | uint32(r)<<edgeShift | uint32(max(r, roleOf(id)))<<metShift
}

// roleOf returns the role of node id.
func roleOf(id uint32) Role { return Role(id >> nodeShift & roleMask) }

// source tells sources apart.
type source struct {
	kind Kind
	nr   int64
	arg  uint64
	note string
	what string
}

// node is a vertex under way.
type node struct {
	id     uint32
	need   [roles]uint32 // the sets of what it needs alone, by role
	count  uint64
	newest checkpoint.Position

	last  uint32   // the need that it was met for last, and its edges
	all   []uint32 // or with hitAll the needs
	edges []*edge
}

// edge is an edge under way.
type edge struct {
	from, to uint32
	count    uint64
	newest   checkpoint.Position
}

func newGraph(sets *needSets) *graph {
	return &graph{sets: sets, other: map[uint32]*node{}, edges: map[[2]uint32]*edge{}, keys: map[source]uint32{}}
}

// hit adds one more instance of v, an instruction or a source, which was needed by the members of need, and
// returns its node.
func (g *graph) hit(v, need uint32, at positioner) *node {
	n := g.nodeFor(v, need, at)
	n.count++
	if n.last != need {
		n.last, n.all, n.edges = need, nil, g.edgesOf(n, need, at)
	}
	for _, e := range n.edges {
		e.count++
	}
	return n
}

// nodeFor returns the node of v that is met for the members of need.
func (g *graph) nodeFor(v, need uint32, at positioner) *node {
	return g.node(v|g.sets.lists[need][0]>>metShift<<nodeShift, at)
}

// hitAll is hit for what the members of several sets need, each of which gets its edge.
func (g *graph) hitAll(v uint32, needs []uint32, at positioner) *node {
	role := Role(roleMask)
	for _, need := range needs {
		role = min(role, Role(g.sets.lists[need][0]>>metShift))
	}
	n := g.node(v|uint32(role)<<nodeShift, at)
	n.count++
	if !slices.Equal(n.all, needs) {
		n.last, n.all, n.edges = noNeed, slices.Clone(needs), nil
		for _, need := range needs {
			n.edges = append(n.edges, g.edgesOf(n, need, at)...)
		}
	}
	for _, e := range n.edges {
		e.count++
	}
	return n
}

// noNeed is no need set.
const noNeed = ^uint32(0)

// node returns vertex v, which is met at a position.
func (g *graph) node(v uint32, at positioner) *node {
	if v&sourceBit != 0 {
		n := g.other[v]
		if n == nil {
			n = g.newNode(v, at)
			g.other[v] = n
		}
		return n
	}
	list, i := &g.nodes[roleOf(v)], int(v&numberMask)
	if i >= len(*list) {
		*list = append(*list, make([]*node, i+1-len(*list))...)
	}
	n := (*list)[i]
	if n == nil {
		n = g.newNode(v, at)
		(*list)[i] = n
	}
	return n
}

func (g *graph) newNode(v uint32, at positioner) *node {
	n := &node{id: v, newest: at.position(), last: noNeed}
	for r := range roles {
		n.need[r] = g.sets.of(member(v, r))
	}
	return n
}

// maxEdges bounds the edges. Beyond it they are left out.
const maxEdges = 1 << 22

// edgesOf returns the edges to n of all in need.
func (g *graph) edgesOf(n *node, need uint32, at positioner) []*edge {
	list := g.sets.lists[need]
	out := make([]*edge, 0, len(list))
	for _, from := range list {
		k := [2]uint32{from, n.id}
		e := g.edges[k]
		if e == nil && len(g.edges) >= maxEdges {
			continue
		}
		if e == nil {
			e = &edge{from: from, to: n.id, newest: at.position()}
			g.edges[k] = e
		}
		out = append(out, e)
	}
	return out
}

// source returns the number of a source's vertex.
func (g *graph) source(s source) uint32 {
	n, ok := g.keys[s]
	if !ok {
		n = sourceBit | uint32(len(g.keys)+1)
		g.keys[s] = n
	}
	return n
}

// outside adds a source to the slice and returns its node.
func (g *graph) outside(s source, need uint32, at positioner) *node {
	return g.hit(g.source(s), need, at)
}

// noArg says that a call has no descriptor, or that it is not known.
const noArg = ^uint64(0)

// callSource is the source of what a system call brought.
func callSource(kind Kind, e *checkpoint.Event, args *[6]uint64, what string) source {
	s := source{kind: kind, nr: e.NR, note: e.Note, what: what, arg: noArg}
	if c, ok := abi.Lookup(e.NR); ok && len(c.Args) > 0 && args != nil && c.Args[0].Kind == abi.KindFD {
		s.arg = args[0]
	}
	return s
}
