package mem

import (
	"slices"
	"sort"
)

// Watches are kept in the order in which accesses are looked up: as ranges of
// keys, sorted, so that the number of watches does not matter, nor their length,
// nor the address by which a page is accessed. What most accesses to a page with
// a watch on it need to know, whether they touch a watched byte at all, a bit for
// each of its bytes says.

// WatchKind says which accesses a watch is for.
type WatchKind uint8

// The kinds of watch.
const (
	WatchWrite WatchKind = 1 << iota
	WatchRead
	WatchAccess = WatchWrite | WatchRead
)

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

// watchPiece is a part of a watch that is contiguous in keys.
type watchPiece struct {
	lo, hi uint64 // keys, hi excluded
	end    uint64 // the largest hi of the pieces up to this one
	addr   uint64 // the watch's address at lo
	watch  int
}

// watchIndex finds watches by key. It is made for one memory map.
type watchIndex struct {
	regions AddressMap
	pieces  []watchPiece // by lo
	bits    map[uint64]*watchBits
}

// watchBits has a bit for each byte of a page: set where loads and where stores
// are watched.
type watchBits struct {
	load, store [PageSize / 64]uint64

	plainLoad, plainStore *Mask // the other bytes, once PartialPage was asked for them
}

// SetWatches replaces the watches.
func (s *Space) SetWatches(ws []Watch) {
	s.watches = append([]Watch(nil), ws...)
	s.index = nil
	s.flush()
}

// Watches returns the watches that are set.
func (s *Space) Watches() []Watch { return s.watches }

// watched returns the index of the watches for the present map.
func (s *Space) watched() *watchIndex {
	if s.index != nil && s.index.regions == s.regions {
		return s.index
	}
	x := &watchIndex{regions: s.regions, bits: map[uint64]*watchBits{}}
	for i, w := range s.watches {
		last := w.Addr + w.Len - 1
		if w.Len == 0 {
			continue
		}
		if last < w.Addr { // to the end of the address space
			last = ^uint64(0) - 1
		}
		x.add(s, i, w.Addr, last+1)
	}
	sort.Slice(x.pieces, func(i, j int) bool { return x.pieces[i].lo < x.pieces[j].lo })
	var end uint64
	for i := range x.pieces {
		end = max(end, x.pieces[i].hi)
		x.pieces[i].end = end
	}
	s.index = x
	return x
}

// add adds the pieces of watch i, which is [from, to): private and unmapped
// addresses as they are, the parts in shared regions by their keys.
func (x *watchIndex) add(s *Space, i int, from, to uint64) {
	for r := range x.regions.From(from) {
		if r.Start >= to {
			break
		}
		if !r.Shared {
			continue
		}
		if from < r.Start {
			x.pieces = append(x.pieces, watchPiece{lo: from, hi: r.Start, addr: from, watch: i})
			from = r.Start
		}
		end := min(to, r.End)
		k := s.key(r, from)
		x.pieces = append(x.pieces, watchPiece{lo: k, hi: k + end - from, addr: from, watch: i})
		from = end
	}
	if from < to {
		x.pieces = append(x.pieces, watchPiece{lo: from, hi: to, addr: from, watch: i})
	}
}

// each calls f for each piece that overlaps the keys [lo, hi).
func (x *watchIndex) each(lo, hi uint64, f func(*watchPiece)) {
	i := sort.Search(len(x.pieces), func(i int) bool { return x.pieces[i].end > lo })
	for ; i < len(x.pieces) && x.pieces[i].lo < hi; i++ {
		if p := &x.pieces[i]; p.hi > lo {
			f(p)
		}
	}
}

// page returns the bits of the page of key, nil when nothing on it is watched.
func (x *watchIndex) page(s *Space, key uint64) *watchBits {
	if b, ok := x.bits[key]; ok {
		return b
	}
	var b *watchBits
	x.each(key, key+PageSize, func(p *watchPiece) {
		if b == nil {
			b = &watchBits{}
		}
		for k := max(p.lo, key); k < min(p.hi, key+PageSize); k++ {
			bit := uint64(1) << (k % 64)
			if s.watches[p.watch].Kind&WatchRead != 0 {
				b.load[k%PageSize/64] |= bit
			}
			if s.watches[p.watch].Kind&WatchWrite != 0 {
				b.store[k%PageSize/64] |= bit
			}
		}
	})
	x.bits[key] = b
	return b
}

// anyBit reports whether one of the n bits at o is set. n is above 0.
func anyBit(bits *[PageSize / 64]uint64, o, n int) bool {
	last := o + n - 1
	if o/64 == last/64 {
		return bits[o/64]>>(o%64)<<(63-(last-o)) != 0
	}
	if bits[o/64]>>(o%64) != 0 || bits[last/64]<<(63-last%64) != 0 {
		return true
	}
	for i := o/64 + 1; i < last/64; i++ {
		if bits[i] != 0 {
			return true
		}
	}
	return false
}

// isWatched reports whether the page of key has bytes on which accesses of kind
// k are watched. Pages are watched for stores with whatever is watched on them.
func (s *Space) isWatched(key uint64, k Access) bool {
	if s.markedAt(key) != nil {
		return true
	}
	if len(s.watches) == 0 {
		return false
	}
	b := s.watched().page(s, key)
	return b != nil && (k == Store || b.load != [PageSize / 64]uint64{})
}

// touchesWatch reports whether an access of n bytes at a touches a byte watched
// for it.
func (s *Space) touchesWatch(a uint64, n int, k Access) bool {
	for n > 0 {
		o := int(a % PageSize)
		step := min(n, PageSize-o)
		key := a - uint64(o)
		if r := s.find(a); r != nil {
			key = s.key(r, key)
		}
		if s.markedAt(key).has(k, o, step) || len(s.watches) > 0 && s.watched().page(s, key).has(k, o, step) {
			return true
		}
		a, n = a+uint64(step), n-step
	}
	return false
}

// has reports whether one of the n bytes at o is watched for accesses of kind k.
func (b *watchBits) has(k Access, o, n int) bool {
	return b != nil && (k == Store && anyBit(&b.store, o, n) || k != Store && anyBit(&b.load, o, n))
}

// before returns the n bytes at a that a store is about to replace, when some
// are watched.
func (s *Space) before(a uint64, n int) []byte {
	if !s.touchesWatch(a, n, Store) {
		return nil
	}
	b := make([]byte, n)
	s.Peek(a, b)
	return b
}

// hits reports the watches that an access of n bytes at a touched, in their
// order. old is what was there before a store.
func (s *Space) hits(a uint64, n int, k Access, old []byte) {
	if s.OnHit == nil || k == Store && old == nil || k != Store && !s.touchesWatch(a, n, k) {
		return
	}
	if s.OnAccess != nil {
		s.OnAccess(a, n, k, old)
	}
	if len(s.watches) == 0 {
		return
	}
	need := WatchRead
	if k == Store {
		need = WatchWrite
	}
	type touched struct {
		watch int
		Hit
	}
	var all []touched
	now := make([]byte, len(old))
	if k == Store {
		s.Peek(a, now)
	}
	for done := 0; done < n; {
		p := a + uint64(done)
		step := min(n-done, int(PageSize-p%PageSize))
		key := p
		if r := s.find(p); r != nil {
			key = s.key(r, p)
		}
		s.watched().each(key, key+uint64(step), func(w *watchPiece) {
			if s.watches[w.watch].Kind&need == 0 {
				return
			}
			lo, hi := max(w.lo, key), min(w.hi, key+uint64(step))
			from, to := done+int(lo-key), done+int(hi-key)
			h := Hit{Watch: s.watches[w.watch], Access: k, Addr: w.addr + lo - w.lo}
			h.Changed = k == Store && string(old[from:to]) != string(now[from:to])
			if i := slices.IndexFunc(all, func(t touched) bool { return t.watch == w.watch }); i >= 0 {
				all[i].Changed = all[i].Changed || h.Changed
				return
			}
			all = append(all, touched{w.watch, h})
		})
		done += step
	}
	slices.SortFunc(all, func(x, y touched) int { return x.watch - y.watch })
	for i := range all {
		s.OnHit(all[i].Hit)
	}
}

// Overlaps reports whether the watch has a byte in [start, end).
func (w *Watch) Overlaps(start, end uint64) bool {
	return w.Len > 0 && w.Addr < end && w.Addr+(w.Len-1) >= start
}

// remapping notes what is at the addresses watched for stores in [start, end), which
// are about to be mapped, unmapped or emptied. What it returns reports those where
// something else is then, or nothing.
func (s *Space) remapping(start, end uint64) (done func()) {
	type noted struct {
		watch Watch
		was   []byte
	}
	var all []noted
	for _, w := range s.watches {
		if s.OnHit != nil && w.Kind&WatchWrite != 0 && w.Overlaps(start, end) {
			all = append(all, noted{w, s.prefix(w)})
		}
	}
	if len(all) == 0 {
		return func() {}
	}
	return func() {
		for i := range all {
			n := &all[i]
			now := s.prefix(n.watch)
			at := 0
			for at < min(len(n.was), len(now)) && n.was[at] == now[at] {
				at++
			}
			if at < max(len(n.was), len(now)) {
				s.OnHit(Hit{Watch: n.watch, Access: Store, Addr: n.watch.Addr + uint64(at), Changed: true})
			}
		}
	}
}

// prefix returns the readable prefix of the watched bytes.
func (s *Space) prefix(w Watch) []byte {
	b := make([]byte, w.Len)
	n, _ := s.Peek(w.Addr, b)
	return b[:n]
}
