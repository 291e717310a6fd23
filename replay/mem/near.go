package mem

// A page with a watch on it is not handed out for direct access, so that each
// access to it comes here; and few of them touch a watched byte. The pages accessed
// last are kept in a small table, with the bits that say which bytes are watched,
// so that an access beside them, and the probe before it, cost little more than the
// call.

// nearPages is the number of pages in the table.
const nearPages = 64

type nearPage struct {
	base  uint64
	page  *Page // nil: the entry is empty
	bits  *watchBits
	store bool // stores may go to it as well
}

// maxNear is the size of the largest access that the table serves.
const maxNear = 64

// near returns the entry of the n bytes at a and their place in the page, nil when
// it does not serve them.
func (s *Space) near(a uint64, n int) (e *nearPage, o int) {
	e = &s.nears[a/PageSize%nearPages]
	d := a - e.base
	if e.page == nil || n == 0 || n > maxNear || d > PageSize-uint64(n) {
		return nil, 0
	}
	return e, int(d)
}

// readNear copies len(b) bytes at a, if the table knows their page and none is
// watched.
func (s *Space) readNear(a uint64, b []byte) bool {
	e, o := s.near(a, len(b))
	if e == nil || anyBit(&e.bits.load, o, len(b)) {
		return false
	}
	copy(b, e.page[o:])
	return true
}

// writeNear stores b at a, if the table knows the page and none of the bytes is
// watched.
func (s *Space) writeNear(a uint64, b []byte) bool {
	e, o := s.near(a, len(b))
	if e == nil || !e.store || anyBit(&e.bits.store, o, len(b)) {
		return false
	}
	copy(e.page[o:], b)
	return true
}

// learnNear enters the page at base, which an access that was allowed went to, if
// nothing but a watch keeps it from being accessed directly.
func (s *Space) learnNear(key, base uint64, id pageID, store bool) {
	m := s.pool.meta(id)
	if s.hash != nil || m.mask != nil || store && m.codeID.Load() != 0 {
		return
	}
	if b := s.watched().page(s, key); b != nil {
		s.nears[base/PageSize%nearPages] = nearPage{base, s.pool.page(id), b, store}
	}
}

// forgetNear empties the table.
func (s *Space) forgetNear() {
	if len(s.watches) > 0 {
		s.nears = [nearPages]nearPage{}
	}
}
