package mem

// Sets are the keys of the pages accessed in a stretch of execution, by kind
// of access. A private page's key is its address.
type Sets struct {
	Read, Written, Executed map[uint64]struct{}
	// Objects are the pages of files and shared objects that were loaded.
	Objects map[ObjectPage]struct{}
}

// ObjectPage names a page of an object; Index is its offset / PageSize.
type ObjectPage struct {
	Object uint32
	Index  uint64
}

// NewSets returns empty sets.
func NewSets() *Sets {
	return &Sets{map[uint64]struct{}{}, map[uint64]struct{}{}, map[uint64]struct{}{}, map[ObjectPage]struct{}{}}
}

func (t *Sets) add(key uint64, k Access) {
	switch k {
	case Load:
		t.Read[key] = struct{}{}
	case Store:
		t.Written[key] = struct{}{}
	case Exec:
		t.Executed[key] = struct{}{}
	}
}

// Track collects accesses into t from now on; nil ends it. Accesses made
// through pointers handed out earlier are missed, so the processor's caches
// are flushed.
func (s *Space) Track(t *Sets) {
	s.track = t
	s.flush()
}

// note adds an access to what is tracked.
func (s *Space) note(key uint64, k Access) {
	s.track.add(key, k)
	if o, ok := s.aside[key]; ok {
		s.track.Objects[o] = struct{}{}
		delete(s.aside, key)
	}
}

// loadAside is load for somebody who asks what a page is: that is no access, and it need not come to one. The page of an
// object that it loads is noted when it is accessed, which may be when it has long been there.
func (s *Space) loadAside(r *Region, a, key uint64) pageID {
	if id := lookup(s.root, key); id != 0 {
		return id
	}
	was := s.track
	s.track = NewSets()
	id := s.load(r, a, key)
	for o := range s.track.Objects {
		if s.aside == nil {
			s.aside = map[uint64]ObjectPage{}
		}
		s.aside[key] = o
	}
	s.track = was
	return id
}

// Key returns the key of the page of address a, and whether a is mapped.
func (s *Space) Key(a uint64) (uint64, bool) {
	a &^= PageSize - 1
	r := s.find(a)
	if r == nil {
		return a, false
	}
	return s.key(r, a), true
}

// Hash keeps the additive hash of all memory from now on: Sum is what f adds
// up to over the aligned 8-byte words stored since, new minus old. nil ends it.
//
// Pages that may be stored to directly are open: the sum lacks them, until Sum
// closes them again. When Sum is asked for so often that this costs more than
// it saves, every store takes the slow path instead.
func (s *Space) Hash(f func(addr, v uint64) uint64, sum uint64) {
	s.open, s.closed = nil, 0 // an older sum is given up
	s.flush()
	s.hash, s.sum = f, sum
}

// Sum returns the additive hash kept since Hash.
func (s *Space) Sum() uint64 {
	if len(s.open) > 0 {
		for a := range s.open {
			s.closeHashed(a)
			if s.OnFlush != nil {
				s.OnFlush(a, a+PageSize)
			}
		}
	}
	return s.sum
}

// maxClosed is how many pages are hashed as a whole before each store is
// hashed instead: a tenth of a second of work.
const maxClosed = 1 << 16

// openHashed lets stores go directly to the private page at a, if it may.
func (s *Space) openHashed(r *Region, a uint64, page *Page) bool {
	if r.Shared || s.closed >= maxClosed {
		return false
	}
	if _, ok := s.open[a]; ok {
		return true
	}
	if s.open == nil {
		s.open = map[uint64]*Page{}
	}
	s.open[a] = page
	s.sum -= s.hashPage(a, page)
	s.hashed[a/PageSize%hashedPages] = hashedPage{}
	return true
}

// closeHashed adds the page at a to the sum again, if it is open. The caller
// flushes it.
func (s *Space) closeHashed(a uint64) {
	if page, ok := s.open[a]; ok {
		s.sum += s.hashPage(a, page)
		delete(s.open, a)
		s.closed++
	}
}

func (s *Space) hashPage(a uint64, page *Page) uint64 {
	var sum uint64
	for i := 0; i < PageSize; i += 8 {
		sum += s.hash(a+uint64(i), word(page, i))
	}
	return sum
}

// hashedPages is the number of pages the fast path of hashed stores knows.
const hashedPages = 64

type hashedPage struct {
	base uint64
	page *Page
}

// writeHashed stores up to 8 bytes within a page that an earlier hashed store
// has found to need no other care.
func (s *Space) writeHashed(a uint64, b []byte) bool {
	e := &s.hashed[a/PageSize%hashedPages]
	o := a - e.base
	if e.page == nil || len(b) > 8 || o > PageSize-uint64(len(b)) {
		return false
	}
	lo, last := int(o)&^7, (int(o)+len(b)-1)&^7
	was := s.hash(e.base+uint64(lo), word(e.page, lo))
	if last != lo {
		was += s.hash(e.base+uint64(last), word(e.page, last))
	}
	copy(e.page[o:], b)
	now := s.hash(e.base+uint64(lo), word(e.page, lo))
	if last != lo {
		now += s.hash(e.base+uint64(last), word(e.page, last))
	}
	s.sum += now - was
	return true
}

// rehash stores b at offset o of page and keeps the sum, at every address of
// the page.
func (s *Space) rehash(r *Region, key, base uint64, page *Page, o int, b []byte) {
	lo, hi := o&^7, (o+len(b)+7)&^7
	add := func(a, sign uint64) {
		for i := lo; i < hi; i += 8 {
			s.sum += sign * s.hash(a+uint64(i), word(page, i))
		}
	}
	each := func(sign uint64) {
		if !r.Shared {
			add(base, sign)
			return
		}
		s.eachAlias(r, key, func(a uint64) { add(a, sign) })
	}
	each(^uint64(0))
	copy(page[o:], b)
	each(1)
}

func word(p *Page, i int) uint64 {
	b := p[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
