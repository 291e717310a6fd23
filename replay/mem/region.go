package mem

import (
	"cmp"
	"slices"

	"vplay/replay/mem/rangemap"
)

// The memory map: regions, the keys of their pages, and the changes that mmap, munmap,
// mprotect, mremap and madvise make. Which call makes which change is in package sys.
// Loads and stores are in access.go.

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
	// Zero says that pages of the object without a record are zero: shared
	// anonymous memory.
	Zero bool
	// Fresh says that the range was mapped after the start of the recording's
	// interval, so that its private pages are zero or the object's.
	Fresh bool
	Name  string
}

// Bounds implements rangemap.Value.
func (r Region) Bounds() (start, end uint64) { return r.Start, r.End }

// Cut returns the part [start, end) of r.
func (r Region) Cut(start, end uint64) Region {
	r.Offset += start - r.Start
	r.Start, r.End = start, end
	return r
}

// AddressMap is a memory map: what is mapped where. It does not change, and two
// that are equal have the same content.
type AddressMap = rangemap.Map[Region]

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
func (p *Pool) KeyIn(m AddressMap, a uint64) uint64 {
	a &^= PageSize - 1
	r := m.Find(a)
	if r == nil || !r.Shared {
		return a
	}
	return sharedWindow + p.slotOf(r.Object)<<objectBits + (a - r.Start + r.Offset)
}

// find returns the region that holds a, or nil.
func (s *Space) find(a uint64) *Region {
	if r := s.last; r != nil && a >= r.Start && a < r.End {
		return r
	}
	r := s.regions.Find(a)
	if r != nil {
		s.last = r
	}
	return r
}

// AddressMap returns the present map.
func (s *Space) AddressMap() AddressMap { return s.regions }

// Regions returns the map as a list, sorted by address. The caller must not
// change it. It is made anew after a change of the map, so what asks for one
// region takes AddressMap.
func (s *Space) Regions() []Region {
	if s.list == nil || s.listed != s.regions {
		s.list, s.listed = s.regions.All(), s.regions
	}
	return s.list
}

// Find returns the region that holds a.
func (s *Space) Find(a uint64) (Region, bool) {
	if r := s.find(a); r != nil {
		return *r, true
	}
	return Region{}, false
}

// What a region and a page that a change of the map goes through take, as Work counts
// them: nanoseconds, with what the collector does.
const (
	regionWork = 256
	pageWork   = 16
	// loadWork is for a page that is read so that it can be moved.
	loadWork = 2 * PageSize
)

// Work is how much changes of the map have gone through since the space was made, in
// bytes that take as long to read: one change can go through all regions and pages.
func (s *Space) Work() int64 { return s.work }

// useAll takes another map that has nothing to do with the present one.
func (s *Space) useAll(m AddressMap) {
	s.hasShared = nil
	s.regions, s.last = m, nil
	s.flush()
}

// change has f(r) in the place of each region r of [start, end), cut at its ends.
func (s *Space) change(start, end uint64, f func(Region) Region) {
	isShared := false
	m := s.regions.Change(start, end, func(r Region) Region {
		s.work += regionWork
		isShared = isShared || r.Shared
		return f(r)
	})
	s.take(m, start, end, isShared)
}

// replace puts in in the place of what was mapped in
// [start, end).
func (s *Space) replace(start, end uint64, in ...Region) {
	s.work += regionWork * int64(len(in))
	isShared := false
	for i := range in {
		if in[i].Shared {
			isShared = true
			if s.hasShared != nil {
				s.hasShared[in[i].Object] = true
			}
		}
	}
	s.take(s.regions.Replace(start, end, in...), start, end, isShared)
}

// take takes a map that differs in [start, end). The index of shared regions stays
// where there is none, before and after.
func (s *Space) take(m AddressMap, start, end uint64, isShared bool) {
	if x := s.shared; x != nil && x.of == s.regions && !isShared && !x.meets(start, end) {
		s.shared = &sharedIndex{of: m, byObject: x.byObject, all: x.all}
	}
	s.work += regionWork
	s.regions, s.last = m, nil
	s.flushRange(start, end)
}

// Map adds a region, unmapping what was there.
func (s *Space) Map(r Region) {
	defer s.remapping(r.Start, r.End)()
	s.forget(r.Start, r.End)
	s.replace(r.Start, r.End, r)
}

// MapAll maps the regions of an empty space. One that meets an earlier one
// replaces it there.
func (s *Space) MapAll(rs []Region) {
	if slices.IsSortedFunc(rs, func(a, b Region) int { return cmp.Compare(a.Start, b.End) }) {
		s.useAll(rangemap.Of(rs))
		return
	}
	var m AddressMap
	for _, r := range rs {
		m = m.Replace(r.Start, r.End, r)
	}
	s.useAll(m)
}

// Unmap removes [start, end).
func (s *Space) Unmap(start, end uint64) {
	defer s.remapping(start, end)()
	s.forget(start, end)
	s.replace(start, end)
}

// Protect sets the protection of all mapped parts of [start, end).
func (s *Space) Protect(start, end uint64, prot uint8) {
	s.change(start, end, func(r Region) Region {
		r.Prot = prot
		return r
	})
}

// Drop forgets the private pages of [start, end): they read as the object
// again, or as zero (MADV_DONTNEED).
func (s *Space) Drop(start, end uint64) {
	defer s.remapping(start, end)()
	s.forget(start, end)
	s.change(start, end, func(r Region) Region {
		r.Fresh = r.Fresh || !r.Shared
		return r
	})
}

// Move moves the mapping and its pages from [start, end) to [to, toEnd), as
// mremap does: a longer target is filled with fresh pages of the same object,
// a shorter one loses its tail. The error is Charge's; nothing has moved then.
func (s *Space) Move(start, end, to, toEnd uint64) error {
	defer s.remapping(min(start, to), max(end, toEnd))()
	own, err := s.loadRange(start, end)
	if err != nil {
		return err
	}
	in := s.regions.Inside(start, end)
	type moved struct {
		key uint64
		id  pageID
	}
	var pages []moved
	n := min(end-start, toEnd-to)
	walk(s.root, start, start+n, func(k uint64, id pageID) {
		_, isOwn := slices.BinarySearch(own, k)
		if r := s.regions.Find(k); r != nil && r.Object != 0 && !isOwn && !s.pool.meta(id).dirty.Load() {
			return // the object's page, that nobody has written to: it is the object's there, too
		}
		s.pool.ref(id)
		pages = append(pages, moved{k - start + to, id})
	})
	s.forget(start, end)
	s.forget(to, toEnd)
	var there []Region
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
		there = append(there, r)
	}
	s.work += pageWork * int64(len(pages))
	for _, m := range pages {
		slot := s.pool.slot(&s.root, m.key)
		*slot = s.pool.apart(m.id, s.place())
		s.pool.meta(*slot).dirty.Store(true)
	}
	s.replace(start, end)
	s.replace(to, toEnd, there...)
	return nil
}

// Grow extends the stack region above a down to the page of a. It reports
// whether there was one to extend: the next region above a must be a stack
// and a must lie within limit bytes of that region's end.
func (s *Space) Grow(a, limit uint64) bool {
	a &^= PageSize - 1
	for next := range s.regions.From(a) {
		r := *next
		if a >= r.Start || !r.GrowsDown || r.End-a > limit {
			return false
		}
		r.End, r.Start, r.Fresh = r.Start, a, true
		r.Offset = 0
		s.replace(r.Start, r.End, r)
		return true
	}
	return false
}

// forget drops the pages of private memory in [start, end).
func (s *Space) forget(start, end uint64) {
	s.dropped = &droppedRange{start, end, s.dropped}
	var keys []uint64
	walk(s.root, start, end, func(k uint64, _ pageID) { keys = append(keys, k) })
	s.work += pageWork * int64(len(keys))
	for _, k := range keys {
		slot := s.pool.slot(&s.root, k)
		s.pool.unref(*slot)
		*slot = 0
	}
}
