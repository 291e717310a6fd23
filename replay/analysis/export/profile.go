package export

import (
	"cmp"
	"slices"
)

// Profiles: what the tree of calls comes to, for the formats that hold sums.

// stackCount is how often the instructions of one source line, or of one function where lines are not known, were executed in a node.
type stackCount struct {
	node  int32
	spot  *spot
	times uint64
}

// sums returns the executed instructions by node and line, in the order of nodes.
func (w *walk) sums(l *lines) []stackCount {
	keys := make([]runKey, 0, len(w.totals))
	for k := range w.totals {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b runKey) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n))
	})
	var out []stackCount
	index := map[*spot]int{}
	for i, k := range keys {
		if i&0xfff == 0 && w.ctx.Err() != nil {
			return nil // who writes is told of it
		}
		if i > 0 && keys[i-1].node != k.node {
			clear(index)
		}
		w.each(k, func(at place) {
			s := l.at(at, w.tree.nodes[k.node].fn)
			n, ok := index[s]
			if !ok {
				n = len(out)
				index[s] = n
				out = append(out, stackCount{node: k.node, spot: s})
			}
			out[n].times += w.totals[k]
		})
	}
	return out
}

// each calls f for each instruction of a run.
func (w *walk) each(k runKey, f func(at place)) {
	run := w.runs[k.at]
	for i := range min(int(k.n), run.n) {
		f(k.at + place(run.offsets[i]))
	}
}
