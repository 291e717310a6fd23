package mem

import "sort"

// Protection bits, as PROT_* of mman.h.
const (
	ProtRead  = 1
	ProtWrite = 2
	ProtExec  = 4
)

// Region is one range of the address map. Start and End are page-aligned.
type Region struct {
	Start, End uint64
	Prot       uint8
	Shared     bool   // stores reach the object
	GrowsDown  bool   // a stack
	Object     uint32 // 0: private anonymous memory
	Offset     uint64 // bytes into the object at Start
	EOF        uint64 // bytes of the object; pages wholly behind it fault. 0: no limit
	// Zero says that pages of the object without a record are zero: shared
	// anonymous memory.
	Zero bool
	// Fresh says that the range was mapped after the start of the recording's
	// interval, so that its private pages are zero or the object's.
	Fresh bool
	Name  string
}

// sharedWindow is where the keys of shared objects begin: object n's bytes
// have the keys sharedWindow + slot<<objectBits + offset.
const (
	sharedWindow = 1 << 51
	objectBits   = 40
)

// key returns the page's key for address a of the region.
func (s *Space) key(r *Region, a uint64) uint64 {
	if !r.Shared {
		return a
	}
	return sharedWindow + s.pool.slotOf(r.Object)<<objectBits + (a - r.Start + r.Offset)
}

// KeyIn returns the key of the page of address a by a memory map of a space of
// the pool, and the page's address where nothing is mapped.
func (p *Pool) KeyIn(rs []Region, a uint64) uint64 {
	a &^= PageSize - 1
	i := sort.Search(len(rs), func(i int) bool { return rs[i].End > a })
	if i == len(rs) || a < rs[i].Start || !rs[i].Shared {
		return a
	}
	return sharedWindow + p.slotOf(rs[i].Object)<<objectBits + (a - rs[i].Start + rs[i].Offset)
}

// find returns the region that holds a, or nil.
func (s *Space) find(a uint64) *Region {
	if s.last < len(s.regions) {
		if r := &s.regions[s.last]; a >= r.Start && a < r.End {
			return r
		}
	}
	i := sort.Search(len(s.regions), func(i int) bool { return s.regions[i].End > a })
	if i < len(s.regions) && a >= s.regions[i].Start {
		s.last = i
		return &s.regions[i]
	}
	return nil
}

// Regions returns the map, sorted by address. The caller must not change it.
func (s *Space) Regions() []Region { return s.regions }

// Find returns the region that holds a.
func (s *Space) Find(a uint64) (Region, bool) {
	if r := s.find(a); r != nil {
		return *r, true
	}
	return Region{}, false
}

// carve returns the regions outside [start, end), split at its borders, and
// the pieces inside.
func carve(rs []Region, start, end uint64) (rest, inside []Region) {
	rest = make([]Region, 0, len(rs)+2)
	for _, r := range rs {
		if r.End <= start || r.Start >= end {
			rest = append(rest, r)
			continue
		}
		if r.Start < start {
			rest = append(rest, cut(r, r.Start, start))
		}
		inside = append(inside, cut(r, max(r.Start, start), min(r.End, end)))
		if r.End > end {
			rest = append(rest, cut(r, end, r.End))
		}
	}
	return rest, inside
}

// cut returns the part [start, end) of r.
func cut(r Region, start, end uint64) Region {
	r.Offset += start - r.Start
	r.Start, r.End = start, end
	return r
}

func (s *Space) setRegions(rs []Region) {
	sort.Slice(rs, func(i, j int) bool { return rs[i].Start < rs[j].Start })
	s.useRegions(rs)
}

// useRegions takes a sorted map, which may be shared with snapshots.
func (s *Space) useRegions(rs []Region) {
	s.regions = rs
	s.last = 0
	s.flush()
}

// Map adds a region, unmapping what was there.
func (s *Space) Map(r Region) {
	defer s.remapping(r.Start, r.End)()
	rest, _ := carve(s.regions, r.Start, r.End)
	s.forget(r.Start, r.End)
	s.setRegions(append(rest, r))
}

// Unmap removes [start, end).
func (s *Space) Unmap(start, end uint64) {
	defer s.remapping(start, end)()
	rest, _ := carve(s.regions, start, end)
	s.forget(start, end)
	s.setRegions(rest)
}

// Protect sets the protection of all mapped parts of [start, end).
func (s *Space) Protect(start, end uint64, prot uint8) {
	rest, in := carve(s.regions, start, end)
	for i := range in {
		in[i].Prot = prot
	}
	s.setRegions(append(rest, in...))
}

// Drop forgets the private pages of [start, end): they read as the object
// again, or as zero (MADV_DONTNEED).
func (s *Space) Drop(start, end uint64) {
	defer s.remapping(start, end)()
	rest, in := carve(s.regions, start, end)
	for i := range in {
		if !in[i].Shared {
			in[i].Fresh = true
		}
	}
	s.forget(start, end)
	s.setRegions(append(rest, in...))
}

// Move moves the mapping and its pages from [start, end) to [to, toEnd), as
// mremap does: a longer target is filled with fresh pages of the same object,
// a shorter one loses its tail.
func (s *Space) Move(start, end, to, toEnd uint64) {
	defer s.remapping(min(start, to), max(end, toEnd))()
	s.loadRange(start, end)
	rest, in := carve(s.regions, start, end)
	type moved struct {
		key uint64
		id  pageID
	}
	var pages []moved
	n := min(end-start, toEnd-to)
	walk(s.root, start, start+n, func(k uint64, id pageID) {
		s.pool.ref(id)
		pages = append(pages, moved{k - start + to, id})
	})
	s.forget(start, end)
	rest, _ = carve(rest, to, toEnd)
	s.forget(to, toEnd)
	for i, r := range in {
		r.Start, r.End = r.Start-start+to, r.End-start+to
		if i == len(in)-1 && r.End < toEnd {
			r.End = toEnd
		}
		if r.Start >= toEnd {
			continue
		}
		r.End = min(r.End, toEnd)
		r.Fresh = true
		rest = append(rest, r)
	}
	for _, m := range pages {
		slot := s.pool.slot(&s.root, m.key)
		*slot = m.id
		s.pool.meta(m.id).dirty.Store(true)
	}
	s.setRegions(rest)
}

// Grow extends the stack region above a down to the page of a. It reports
// whether there was one to extend: the next region above a must be a stack
// and a must lie within limit bytes of that region's end.
func (s *Space) Grow(a, limit uint64) bool {
	a &^= PageSize - 1
	i := sort.Search(len(s.regions), func(i int) bool { return s.regions[i].End > a })
	if i == len(s.regions) {
		return false
	}
	r := s.regions[i]
	if a >= r.Start || !r.GrowsDown || r.End-a > limit || (i > 0 && s.regions[i-1].End > a) {
		return false
	}
	rs := make([]Region, len(s.regions))
	copy(rs, s.regions)
	r.End, r.Start, r.Fresh = r.Start, a, true
	r.Offset = 0
	rs = append(rs, r)
	s.setRegions(rs)
	return true
}

// forget drops the pages of private memory in [start, end).
func (s *Space) forget(start, end uint64) {
	s.dropped = append(s.dropped[:len(s.dropped):len(s.dropped)], [2]uint64{start, end})
	var keys []uint64
	walk(s.root, start, end, func(k uint64, _ pageID) { keys = append(keys, k) })
	for _, k := range keys {
		slot := s.pool.slot(&s.root, k)
		s.pool.unref(*slot)
		*slot = 0
	}
}
