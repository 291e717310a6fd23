package mem

import (
	"cmp"
	"slices"

	"vplay/replay/mem/rangemap"
)

// sharedIndex lists the shared regions of a map by object, so that the other
// addresses of a shared page are found without a look at every region. It does not
// change.
type sharedIndex struct {
	of       AddressMap
	all      AddressMap // the shared ones of it
	byObject map[uint32]*views
}

// sharedNow returns the index of the present map.
func (s *Space) sharedNow() *sharedIndex {
	if s.shared == nil || s.shared.of != s.regions {
		x := &sharedIndex{of: s.regions, byObject: map[uint32]*views{}}
		var all []Region
		for r := range s.regions.From(0) {
			if !r.Shared {
				continue
			}
			all = append(all, *r)
			v := x.byObject[r.Object]
			if v == nil {
				v = &views{}
				x.byObject[r.Object] = v
			}
			v.regions = append(v.regions, r)
		}
		for _, v := range x.byObject {
			v.sort()
		}
		x.all = rangemap.Of(all)
		s.shared = x
	}
	return s.shared
}

// meets reports whether a shared region has a part of [start, end).
func (x *sharedIndex) meets(start, end uint64) bool {
	for r := range x.all.From(start) {
		return r.Start < end
	}
	return false
}

// at calls f for the regions that show the byte at off of a shared object, until it
// returns false.
func (x *sharedIndex) at(object uint32, off uint64, f func(*Region) bool) {
	if v := x.byObject[object]; v != nil {
		v.at(0, len(v.regions), off, f)
	}
}

// aliases calls f for each address of the byte at off of a shared object.
func (s *Space) aliases(object uint32, off uint64, f func(a uint64)) {
	s.sharedNow().at(object, off, func(q *Region) bool {
		f(q.Start + off - q.Offset)
		return true
	})
}

// views are the regions of one shared object, sorted by their offset in it. A program may
// have tens of thousands, which may overlap in the object. They are searched as a
// balanced tree that has the middle of each part as its root; ends has, for each root,
// where the last of the part's regions ends.
type views struct {
	regions []*Region
	ends    []uint64
}

// endOf is the first offset behind a region's part of its object.
func endOf(r *Region) uint64 { return r.Offset + (r.End - r.Start) }

func (v *views) sort() {
	slices.SortStableFunc(v.regions, func(a, b *Region) int { return cmp.Compare(a.Offset, b.Offset) })
	v.ends = make([]uint64, len(v.regions))
	v.fill(0, len(v.regions))
}

func (v *views) fill(from, to int) uint64 {
	if from >= to {
		return 0
	}
	mid := (from + to) / 2
	v.ends[mid] = max(endOf(v.regions[mid]), v.fill(from, mid), v.fill(mid+1, to))
	return v.ends[mid]
}

// at calls f for the regions numbered [from, to) that show the byte at off. It reports
// false when f did.
func (v *views) at(from, to int, off uint64, f func(*Region) bool) bool {
	if from >= to {
		return true
	}
	mid := (from + to) / 2
	if v.ends[mid] <= off {
		return true
	}
	r := v.regions[mid]
	return v.at(from, mid, off, f) && (off < r.Offset ||
		(off >= endOf(r) || f(r)) && v.at(mid+1, to, off, f))
}
