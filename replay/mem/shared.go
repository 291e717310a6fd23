package mem

// sharedIndex lists the shared regions of a map by object, so that the other
// addresses of a shared page are found without a look at every region.
type sharedIndex struct {
	of       AddressMap
	byObject map[uint32][]*Region // sorted by address
}

// sharedNow returns the index of the present map. It does not change.
func (s *Space) sharedNow() *sharedIndex {
	if s.shared == nil || s.shared.of != s.regions {
		x := &sharedIndex{s.regions, map[uint32][]*Region{}}
		for r := range s.regions.From(0) {
			if r.Shared {
				x.byObject[r.Object] = append(x.byObject[r.Object], r)
			}
		}
		s.shared = x
	}
	return s.shared
}

// aliases calls f for each address of the byte at off of a shared object.
func (s *Space) aliases(object uint32, off uint64, f func(a uint64)) {
	for _, q := range s.sharedNow().byObject[object] {
		if off >= q.Offset && off-q.Offset < q.End-q.Start {
			f(q.Start + off - q.Offset)
		}
	}
}
