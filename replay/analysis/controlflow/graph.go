package controlflow

import (
	"slices"

	"vplay/replay/x86"
)

// Which branches decide whether an instruction is executed? Those of its function from which one
// way leads to it inevitably and another one does not (Ferrante, Ottenstein and Warren 1987). That takes
// the function's graph of control flow: what was executed, completed by what can be decoded of
// the rest. Where a jump through a register may lead is known as far as it was executed. The code behind
// a branch that is not in the recording counts as the function's end.

// node is a basic block of a function.
type node struct {
	first, last uint64 // instructions
	next        []int  // nodes; exit for the function's end
	post        int    // the node that all ways from here to the end go through next
	order       int    // in the order of a walk back from the end
	decides     bool   // its last instruction is a branch
	by          []int  // the nodes whose branches decide about it
}

// function is the graph of a function; the node at 0 is its end.
type function struct {
	entry uint64
	nodes []node
}

// exit is the number of the node where a function ends.
const exit = 0

// maxNodes bounds the graph of a function. Of a larger one nothing is known.
const maxNodes = 1 << 15

// step is an instruction of a function under way.
type step struct {
	next []uint64 // 0: the end
	ends bool     // its block
	is   x86.Transfer
}

// function returns the graph of the function at entry, nil where it is too large.
func (c *Code) function(entry uint64) *function {
	steps := map[uint64]*step{}
	leaders := map[uint64]bool{entry: true}
	for todo := []uint64{entry}; len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for pc != 0 && steps[pc] == nil {
			if len(steps) > 8*maxNodes {
				return nil
			}
			s, next := c.decode(entry, pc)
			steps[pc] = s
			for _, n := range s.next {
				if s.ends && n != 0 {
					leaders[n] = true
					todo = append(todo, n)
				}
			}
			if pc = next; s.ends {
				break
			}
		}
	}
	return cut(entry, steps, leaders)
}

// decode returns the instruction at pc of the function at entry, and the address behind it where the block
// goes on there.
func (c *Code) decode(entry, pc uint64) (*step, uint64) {
	var b [15]byte
	in, err := x86.DecodeInst(b[:c.o.Fetch(pc, b[:])], pc, c.o.ID)
	if err != nil {
		return &step{next: []uint64{0}, ends: true}, 0
	}
	behind := pc + uint64(in.Len)
	local := func(a uint64) uint64 { // a jump to another function ends this one
		if a != entry && c.entries[a] {
			return 0
		}
		return a
	}
	is, isIndirect := in.Transfer()
	s := &step{ends: true, is: is}
	switch is {
	case x86.Return:
		s.next = []uint64{0}
	case x86.Jump:
		s.next = []uint64{local(behind + in.Imm)}
	case x86.Branch:
		if !isIndirect {
			s.next = []uint64{local(behind + in.Imm), local(behind)}
			break
		}
		for _, t := range c.targets[pc] {
			s.next = append(s.next, local(t))
		}
		if len(s.next) == 0 {
			s.next = []uint64{0}
		}
	case x86.NoTransfer, x86.Call:
		if local(behind) == 0 {
			s.next = []uint64{0}
			return s, 0
		}
		s.next, s.ends = []uint64{behind}, false
		return s, behind
	}
	slices.Sort(s.next)
	s.next = slices.Compact(s.next)
	return s, 0
}

// cut makes blocks of instructions.
func cut(entry uint64, steps map[uint64]*step, leaders map[uint64]bool) *function {
	if len(leaders) > maxNodes {
		return nil
	}
	f := &function{entry: entry, nodes: []node{{}}}
	number := map[uint64]int{0: exit}
	starts := make([]uint64, 0, len(leaders))
	for l := range leaders {
		if steps[l] != nil {
			starts = append(starts, l)
		}
	}
	slices.Sort(starts)
	for _, l := range starts {
		number[l] = len(f.nodes)
		f.nodes = append(f.nodes, node{first: l})
	}
	for i := 1; i < len(f.nodes); i++ {
		n := &f.nodes[i]
		pc := n.first
		for s := steps[pc]; ; s = steps[pc] {
			n.last = pc
			if s.ends || leaders[s.next[0]] || s.next[0] == 0 || steps[s.next[0]] == nil {
				for _, a := range s.next {
					n.next = append(n.next, number[a])
				}
				n.decides = s.is == x86.Branch
				break
			}
			pc = s.next[0]
		}
	}
	return f
}

// postdominators finds for each node the next one that all ways to the end go through (Cooper, Harvey
// and Kennedy 2001, on the graph turned round).
func (f *function) postdominators() {
	before := make([][]int, len(f.nodes))
	for i := range f.nodes {
		for _, n := range f.nodes[i].next {
			before[n] = append(before[n], i)
		}
		f.nodes[i].post, f.nodes[i].order = -1, -1
	}
	f.hang(before)
	order := f.walkBack(before)
	f.nodes[exit].post = exit
	for changed := true; changed; {
		changed = false
		for k := len(order) - 1; k >= 0; k-- {
			i := order[k]
			if i == exit {
				continue
			}
			post := -1
			next := f.nodes[i].next
			for _, n := range next {
				if f.nodes[n].post < 0 {
					continue
				}
				if post < 0 {
					post = n
				} else {
					post = f.meet(post, n)
				}
			}
			if post < 0 {
				post = exit
			}
			if f.nodes[i].post != post {
				f.nodes[i].post, changed = post, true
			}
		}
	}
}

// walkBack numbers the nodes behind those from which they are reached, going back from the end,
// and returns them in that order.
func (f *function) walkBack(before [][]int) (order []int) {
	type at struct{ node, i int }
	seen := make([]bool, len(f.nodes))
	seen[exit] = true
	for stack := []at{{exit, 0}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.i < len(before[top.node]) {
			n := before[top.node][top.i]
			top.i++
			if !seen[n] {
				seen[n] = true
				stack = append(stack, at{n, 0})
			}
			continue
		}
		f.nodes[top.node].order = len(order)
		order = append(order, top.node)
		stack = stack[:len(stack)-1]
	}
	return order
}

// hang hangs loops that never end on the function's end, so that a way leads there from each node.
// before are the nodes before each.
func (f *function) hang(before [][]int) {
	seen := make([]bool, len(f.nodes))
	mark := func(root int) {
		seen[root] = true
		for todo := []int{root}; len(todo) > 0; {
			n := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, b := range before[n] {
				if !seen[b] {
					seen[b] = true
					todo = append(todo, b)
				}
			}
		}
	}
	mark(exit)
	for i := len(f.nodes) - 1; i > 0; i-- {
		if !seen[i] {
			f.nodes[i].next = append(f.nodes[i].next, exit)
			before[exit] = append(before[exit], i)
			mark(i)
		}
	}
}

// meet returns the first node that is on all ways from a and from b.
func (f *function) meet(a, b int) int {
	for a != b {
		for f.nodes[a].order < f.nodes[b].order {
			a = f.nodes[a].post
		}
		for f.nodes[b].order < f.nodes[a].order {
			b = f.nodes[b].post
		}
	}
	return a
}

// control finds for each node the branches that decide about it.
func (f *function) control() {
	for i := 1; i < len(f.nodes); i++ {
		a := &f.nodes[i]
		if !a.decides || len(a.next) < 2 {
			continue
		}
		for _, n := range a.next {
			for at := n; at != a.post && at != exit && at >= 0; at = f.nodes[at].post {
				if !slices.Contains(f.nodes[at].by, i) {
					f.nodes[at].by = append(f.nodes[at].by, i)
				}
			}
		}
	}
}
