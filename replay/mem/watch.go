package mem

// WatchKind says which accesses a watch is for.
type WatchKind uint8

// The kinds of watch.
const (
	WatchWrite WatchKind = 1 << iota
	WatchRead
	WatchAccess = WatchWrite | WatchRead
)

const watchesLoads = uint8(WatchRead)

// Watch is a watched range of bytes.
type Watch struct {
	Addr uint64
	Len  uint64
	Kind WatchKind
}

// Hit is an access to watched bytes.
type Hit struct {
	Watch   Watch
	Access  Access
	Addr    uint64 // first watched byte that was accessed
	Changed bool   // a store that changed a watched byte
}

// SetWatches replaces the watches.
func (s *Space) SetWatches(ws []Watch) {
	s.watches = append([]Watch(nil), ws...)
	s.watched = nil
	if len(ws) > 0 {
		s.watched = map[uint64]uint8{}
	}
	for _, w := range s.watches {
		for a := w.Addr &^ (PageSize - 1); a < w.Addr+w.Len; a += PageSize {
			key := a
			if r := s.find(a); r != nil {
				key = s.key(r, a)
			}
			s.watched[key] |= uint8(w.Kind)
		}
	}
	s.flush()
}

// Watches returns the watches that are set.
func (s *Space) Watches() []Watch { return s.watches }

// hits reports the watches that an access of n bytes at a touched. old is what
// was there before a store.
func (s *Space) hits(a uint64, n int, k Access, old []byte) {
	need := WatchRead
	if k == Store {
		need = WatchWrite
	}
	for _, w := range s.watches {
		if w.Kind&need == 0 {
			continue
		}
		if at, changed, ok := s.touched(w, a, n, old); ok && s.OnHit != nil {
			s.OnHit(Hit{Watch: w, Access: k, Addr: at, Changed: changed})
		}
	}
}

// touched reports whether the access overlaps w, at which watched byte first,
// and whether it changed any.
func (s *Space) touched(w Watch, a uint64, n int, old []byte) (at uint64, changed, ok bool) {
	shift, overlap := s.overlap(w, a, n)
	if !overlap {
		return 0, false, false
	}
	lo, hi := max(w.Addr, a+shift), min(w.Addr+w.Len, a+shift+uint64(n))
	if old != nil {
		now := make([]byte, hi-lo)
		got, _ := s.Peek(lo, now)
		for i := range got {
			if now[i] != old[lo-shift-a+uint64(i)] {
				changed = true
				break
			}
		}
	}
	return lo, changed, true
}

// overlap says whether the n bytes at a are watched by w, directly or through
// an alias; shift is what must be added to a to be in w's addresses.
func (s *Space) overlap(w Watch, a uint64, n int) (shift uint64, ok bool) {
	if a < w.Addr+w.Len && w.Addr < a+uint64(n) {
		return 0, true
	}
	ra := s.find(a)
	if ra == nil || !ra.Shared {
		return 0, false
	}
	rw := s.find(w.Addr)
	if rw == nil || !rw.Shared || rw.Object != ra.Object {
		return 0, false
	}
	shift = (rw.Start - rw.Offset) - (ra.Start - ra.Offset)
	b := a + shift
	return shift, b < w.Addr+w.Len && w.Addr < b+uint64(n)
}

// before returns the n bytes at a that a store is about to replace, when they
// are watched.
func (s *Space) before(a uint64, n int) []byte {
	for _, w := range s.watches {
		if w.Kind&WatchWrite == 0 {
			continue
		}
		if _, ok := s.overlap(w, a, n); ok {
			b := make([]byte, n)
			s.Peek(a, b)
			return b
		}
	}
	return nil
}
