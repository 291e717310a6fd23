package mem

// Pages as parts of the arena's file, for who maps them at addresses of its own.

// AllowMapping says that it pays to map pages of the space: it is executed forward for long. Who goes back to snapshots again and
// again has all pages flushed each time, and to map one takes longer than some thousand instructions.
func (s *Space) AllowMapping() { s.mayMap = true }

// place says of what memory the pages are that the space gets.
func (s *Space) place() place {
	if s.mayMap {
		return inFile
	}
	return anonymous
}

// MappedFile returns the descriptor of the file. ok is false where there is none or mapping was not allowed, and while accesses are
// collected (Track) or stores hashed (Hash): each first access must come here then.
func (s *Space) MappedFile() (fd int, ok bool) {
	if !s.mayMap || s.track != nil || s.hash != nil {
		return -1, false
	}
	fd = arenaFile()
	return fd, fd >= 0
}

// Mapping is a range of pages that lie one behind the other in the arena's file, as they do in memory.
type Mapping struct {
	Addr   uint64 // page-aligned
	Offset int64  // of the first page in the file
	Pages  int
	Stores bool // stores may go there, too
}

// maxAround is how many pages before and behind the one that is asked for belong to a Mapping at most.
const maxAround = 16

// Mapping is Translate for who maps pages: with ok, loads of the page at page-aligned address a may go to the arena's file until OnFlush, and
// if it says so, stores may, too. A page that may be stored to may be loaded from. Pages around it are there as well, of
// which Mapping would say the same, and do nothing else.
func (s *Space) Mapping(a uint64, k Access) (m Mapping, ok bool) {
	if _, ok := s.MappedFile(); !ok {
		return Mapping{}, false
	}
	if page, fast := s.Translate(a, k); page == nil || !fast {
		return Mapping{}, false
	}
	r := s.find(a)
	key := s.key(r, a)
	if s.isWatched(key, Load) {
		return Mapping{}, false
	}
	id := lookup(s.root, key)
	offset := s.pool.offset(id)
	if offset < 0 {
		return Mapping{}, false
	}
	m = Mapping{Addr: a, Offset: offset, Pages: 1, Stores: k == Store || s.ownsDirty(a, key)}
	if k == Store {
		s.prepareBehind(r, a)
	}
	for i := pageID(1); i <= maxAround && s.isLike(r, a+uint64(i)*PageSize, id, id+i, m.Stores); i++ {
		m.Pages++
	}
	for i := pageID(1); i <= maxAround && i < id && s.isLike(r, a-uint64(i)*PageSize, id, id-i, m.Stores); i++ {
		m.Addr -= PageSize
		m.Offset -= PageSize
		m.Pages++
	}
	return m, true
}

// prepareBehind makes pages of zeros behind the one at a of r, which is stored to for the first time, for stores that are to come: as many as there are
// before it that have been stored to, if nothing but zeros can be there. They count as written, and weigh nothing in
// any hash, as they would not count.
func (s *Space) prepareBehind(r *Region, a uint64) {
	if r.Shared || !r.Fresh || r.Object != 0 && !r.Zero || len(s.watches) != 0 {
		return
	}
	n := 0
	for b := a; n < maxAround && b > r.Start && s.ownsDirty(b-PageSize, s.key(r, b-PageSize)); n++ {
		b -= PageSize
	}
	free := 0
	for b := a + PageSize; free < n && b < r.End && s.isUntouched(s.key(r, b)); free++ {
		b += PageSize
	}
	for free > 0 {
		id, got := s.pool.allocRun(s.place(), free)
		for i := range got {
			a += PageSize
			*s.pool.page(id + pageID(i)) = Page{}
			s.pool.meta(id + pageID(i)).dirty.Store(true)
			slot := s.pool.slot(&s.root, s.key(r, a))
			if *slot != 0 {
				s.pool.unref(*slot)
			}
			*slot = id + pageID(i)
			s.flushKey(r, a, s.key(r, a))
		}
		free -= got
	}
	s.reportFull()
}

// isUntouched reports whether the page of key, of memory that begins as zeros, was loaded from at most.
func (s *Space) isUntouched(key uint64) bool {
	id := lookup(s.root, key)
	return id == 0 || id == s.pool.zeroPage()
}

// isLike reports whether the page at a of r is page like of the pool, in one chunk with id, and may be loaded from, or stored to if
// that is said, without any change but that of its bytes.
func (s *Space) isLike(r *Region, a uint64, id, like pageID, stores bool) bool {
	if a < r.Start || a >= r.End || like>>chunkShift != id>>chunkShift || a == s.busError {
		return false
	}
	key := s.key(r, a)
	return lookup(s.root, key) == like && s.pool.meta(like).mask == nil && !s.isWatched(key, Load) && s.ownsDirty(a, key) == stores
}

// ownsDirty reports whether a store to the page at a, with that key, would change nothing but its bytes.
func (s *Space) ownsDirty(a, key uint64) bool {
	if _, f := s.check(a, Store); f != FaultNone || s.isWatched(key, Store) {
		return false
	}
	n := s.root
	for l := range levels - 2 {
		if n == nil || n.refs.Load() != 1 {
			return false
		}
		n = n.kids[index(key, l)]
	}
	if n == nil || n.refs.Load() != 1 {
		return false
	}
	lf := n.leaves[index(key, levels-2)]
	if lf == nil || lf.refs.Load() != 1 || lf.pages[leafIndex(key)] == 0 {
		return false
	}
	m := s.pool.meta(lf.pages[leafIndex(key)])
	return m.refs.Load() == 1 && m.dirty.Load() && m.codeID.Load() == 0
}

// offset returns where a page is in the arena's file, -1 when it is in none.
func (p *Pool) offset(id pageID) int64 {
	c := p.chunks[id>>chunkShift]
	if c.offset < 0 {
		return -1
	}
	return c.offset + int64(id&(chunkPages-1))*PageSize
}
