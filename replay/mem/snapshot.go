package mem

import (
	"cmp"
	"slices"
)

// Snapshots of a space: taking one, going back, opening it as another space, and
// what has changed since. The tree that makes this cheap is in table.go.

// Snapshot is what a Space held when it was taken: immutable, O(1) to take. Release gives its
// pages back. It may be opened from any goroutine.
type Snapshot struct {
	pool    *Pool
	src     Source
	root    *node
	regions AddressMap
	dropped *droppedRange
	began   *sharedIndex
	bus     uint64 // see Space.SetBusError
	needs   *Needs
}

// droppedRange is a range whose private pages were given up, and those before it.
type droppedRange struct {
	start, end uint64
	before     *droppedRange
}

// Snapshot keeps the present content.
func (s *Space) Snapshot() *Snapshot {
	s.root.refs.Add(1)
	s.flush() // pages handed out for stores are shared now
	return &Snapshot{s.pool, s.src, s.root, s.regions, s.dropped, s.began, s.busError, s.needs}
}

// Restore makes the space what it was when the snapshot was taken. Watches
// stay.
func (s *Space) Restore(n *Snapshot) {
	n.root.refs.Add(1)
	s.pool.release(s.root)
	s.root, s.src = n.root, n.src
	s.dropped, s.began, s.busError = n.dropped, n.began, n.bus
	s.useAll(n.regions)
}

// Open returns a new space with the snapshot's content.
func (n *Snapshot) Open() *Space {
	n.root.refs.Add(1)
	return &Space{pool: n.pool, src: n.src, root: n.root, regions: n.regions, dropped: n.dropped, began: n.began, busError: n.bus, needs: n.needs}
}

// Release gives the snapshot's pages back. The snapshot may not be used
// afterwards.
func (n *Snapshot) Release() {
	if n.root != nil {
		n.pool.release(n.root)
		n.root = nil
	}
}

// Written calls f for each page that was written since the snapshot n was
// taken of this space's past: its key, which is its address for private memory,
// its content then and its content now. then is nil where the page had not been
// loaded or did not exist; now is nil where it is unmapped.
func (s *Space) Written(n *Snapshot, f func(key uint64, then, now *Page)) {
	diff(n.root, s.root, func(key uint64, a, b pageID) {
		if b != 0 && !s.pool.meta(b).dirty.Load() {
			return
		}
		var then, now *Page
		if a != 0 {
			then = s.pool.page(a)
		}
		if b != 0 {
			now = s.pool.page(b)
		}
		f(key, then, now)
	})
}

// Dropped returns the ranges whose private pages were given up since
// Begin: unmapped, mapped over, moved away, or dropped. They are sorted, and
// those that touch are joined.
func (s *Space) Dropped() [][2]uint64 {
	var all [][2]uint64
	for d := s.dropped; d != nil; d = d.before {
		all = append(all, [2]uint64{d.start, d.end})
	}
	slices.SortFunc(all, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	out := all[:0]
	for _, d := range all {
		if n := len(out); n > 0 && d[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], d[1])
			continue
		}
		out = append(out, d)
	}
	return out
}

// Begin says that the map is built and the recorded interval starts here:
// Dropped counts from now on, and the Source's shared pages are those of the
// regions there are now.
func (s *Space) Begin() {
	s.dropped, s.began = nil, s.sharedNow()
}
