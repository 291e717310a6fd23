package export

import (
	"slices"
	"sync"
)

// Intervals are walked through at the same time, each with a tree of its own that does not know what led to its beginning. Here they are
// put together, in order: the calls under way behind one interval are what the next one begins in.

// shared is values of intervals, for several goroutines.
type shared[T any] struct {
	mu sync.Mutex
	of map[uint32]T
}

func newShared[T any]() *shared[T] { return &shared[T]{of: map[uint32]T{}} }

func (s *shared[T]) put(id uint32, v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[id] = v
}

func (s *shared[T]) take(id uint32) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.of[id]
	delete(s.of, id)
	return v
}

// join adds an interval.
func (w *walk) join(id uint32, p *pass) error {
	if w.isFirst(id) {
		clear(w.threads)
	}
	for i := range p.roots {
		r := &p.roots[i]
		t := w.threads[r.tid]
		if t == nil {
			t = &thread{tid: r.tid, stack: newStack(-1, 0)}
			w.threads[r.tid] = t
		}
		r.resolve(t)
	}
	to := make([]int32, len(p.tree.nodes)) // nodes of the walk's tree
	for i := 1; i < len(to); i++ {
		n := &p.tree.nodes[i]
		parent, site := n.parent, n.site
		var r *root
		if parent < 0 {
			r = &p.roots[^parent]
			parent, site = r.parent, r.site
		} else {
			parent = to[parent]
		}
		to[i] = w.tree.child(parent, site, n.fn)
		m := &w.tree.nodes[to[i]]
		m.calls += n.calls
		if r != nil && !r.begun {
			r.begun = true
			// As in entered: a call, or a jump from the function that was there before.
			if r.fresh || r.node != 0 && r.node != to[i] && w.tree.nodes[r.node].fn != fnSignal {
				m.calls++
			}
		}
		m.bytes += n.bytes
		m.blocks += n.blocks
	}
	w.tree.folded += p.tree.folded
	w.add(p, to)
	for _, tid := range p.exited {
		delete(w.threads, tid)
	}
	for tid, t := range p.threads {
		joined := &thread{tid: tid, sp: t.sp, stack: p.joined(t.stack, to)}
		if old := w.threads[tid]; old != nil {
			joined.parked = old.parked
		}
		for _, s := range t.parked {
			joined.parked = append(joined.parked, p.joined(s, to))
		}
		if n := len(joined.parked); n > maxParked {
			joined.parked = slices.Delete(joined.parked, 0, n-maxParked)
		}
		w.threads[tid] = joined
	}
	if w.tree.full {
		return errTooManyCalls
	}
	return nil
}

// add adds the counts of an interval.
func (w *walk) add(p *pass, to []int32) {
	for i, key := range p.keys {
		run := p.runs[uint32(key)-1]
		at := run.info.place
		if known := w.runs[at]; known == nil || known.n < run.info.n {
			w.runs[at] = &runInfo{place: at, fn: run.info.fn, n: run.info.n, offsets: run.info.offsets}
		}
		w.totals[runKey{to[int32(key>>32)], int32(run.n), at}] += p.totals[i]
	}
	if len(w.totals) > maxCounts {
		w.tree.full = true
	}
	w.sum += p.retired
}

// joined is a stack of an interval with what is below its root.
func (p *pass) joined(s *stack, to []int32) *stack {
	out := &stack{root: -1, low: s.low, high: s.high}
	list := s.frames
	if s.root >= 0 {
		r := &p.roots[s.root]
		out.frames = slices.Clone(r.of.frames[:min(r.frames, len(r.of.frames))])
		out.high, out.under = max(out.high, r.of.high), r.of.under
		if n := to[list[0].node]; n != 0 {
			out.top().node, out.top().fresh = n, false
		}
		list = list[1:]
	}
	for _, f := range list {
		if f.parent >= 0 {
			f.parent = to[f.parent]
		} else if r := &p.roots[^f.parent]; true {
			f.parent, f.site = r.parent, r.site
		}
		f.node = to[f.node]
		out.frames = append(out.frames, f)
	}
	if s.under != nil {
		out.under = p.joined(s.under, to)
	}
	return out
}
