package mem

import (
	"vplay/replay/mem/rangemap"
)

// sharedIndex lists the shared regions of a map by object, so that the other
// addresses of a shared page are found without a look at every region. It does not
// change.
type sharedIndex struct {
	of       AddressMap
	all      AddressMap                             // the shared ones of it
	byObject map[uint32]*rangemap.Overlaps[*Region] // by offset in it
}

// sharedNow returns the index of the present map. It does not change.
func (s *Space) sharedNow() *sharedIndex {
	if s.shared == nil || s.shared.of != s.regions {
		var all []Region
		views := map[uint32][]*Region{}
		for r := range s.regions.From(0) {
			if r.Shared {
				all = append(all, *r)
				views[r.Object] = append(views[r.Object], r)
			}
		}
		x := &sharedIndex{of: s.regions, all: rangemap.Of(all), byObject: map[uint32]*rangemap.Overlaps[*Region]{}}
		for object, list := range views {
			x.byObject[object] = rangemap.NewOverlaps(list, func(r *Region) (start, end uint64) { return r.Offset, r.Offset + (r.End - r.Start) })
		}
		s.shared = x
	}
	return s.shared
}

// mayShare reports whether an object may be mapped shared now: whether it was at some
// time. A program that maps thousands of files must not pay for an index after each.
func (s *Space) mayShare(object uint32) bool {
	if s.hasShared == nil {
		s.hasShared = map[uint32]bool{}
		for r := range s.regions.From(0) {
			if r.Shared {
				s.hasShared[r.Object] = true
			}
		}
	}
	return s.hasShared[object]
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
	x.byObject[object].At(off, f)
}

// aliases calls f for each address of the byte at off of a shared object.
func (s *Space) aliases(object uint32, off uint64, f func(a uint64)) {
	s.sharedNow().at(object, off, func(q *Region) bool {
		f(q.Start + off - q.Offset)
		return true
	})
}
