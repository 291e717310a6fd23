package mem

import "encoding/binary"

// A page with a watch on it, or with bytes that are not known, is not handed out
// for direct access, so that each access to it comes here; and few of them touch
// such a byte. The pages accessed last are in a small translation cache of their own, with
// the bits that say which bytes are watched or unknown, so that an access beside them, and
// the probe before it, cost little more than the call.

// slowTLBSize is the number of entries.
const slowTLBSize = 64

type slowEntry struct {
	base  uint64
	page  *Page // nil: the entry is empty
	bits  *watchBits
	mask  *Mask // the page's own, nil when all is known
	store bool  // stores may go to it as well
}

// noBits is for pages on which nothing is watched.
var noBits watchBits

// plain reports whether an access to n bytes at o concerns neither a watched byte,
// of the bits given, nor an unknown one.
func (s *Space) plain(e *slowEntry, bits *[PageSize / 64]uint64, o, n int) bool {
	if e.mask != nil {
		s.PartialAccesses++
		return !anyBit(bits, o, n) && e.mask.hasAll(o, n)
	}
	return !anyBit(bits, o, n)
}

// maxSlow is the size of the largest access that the table serves.
const maxSlow = 64

// slowLookup returns the entry of the n bytes at a and their place in the page, nil when
// it does not serve them.
func (s *Space) slowLookup(a uint64, n int) (e *slowEntry, o int) {
	e = &s.slowTLB[a/PageSize%slowTLBSize]
	d := a - e.base
	if e.page == nil || n == 0 || n > maxSlow || d > PageSize-uint64(n) {
		return nil, 0
	}
	return e, int(d)
}

// readSlow copies len(b) bytes at a, if the table knows their page and none is
// watched or unknown.
func (s *Space) readSlow(a uint64, b []byte) bool {
	e, o := s.slowLookup(a, len(b))
	if e == nil || !s.plain(e, &e.bits.load, o, len(b)) {
		return false
	}
	copy(b, e.page[o:])
	return true
}

// writeSlow stores b at a, if the table knows the page and none of the bytes is
// watched or unknown.
func (s *Space) writeSlow(a uint64, b []byte) bool {
	e, o := s.slowLookup(a, len(b))
	if e == nil || !e.store || !s.plain(e, &e.bits.store, o, len(b)) {
		return false
	}
	copy(e.page[o:], b)
	return true
}

// fillSlowTLB enters the page at base, which an access that was allowed went to, if
// nothing but watches and unknown bytes keep it from being accessed directly.
func (s *Space) fillSlowTLB(key, base uint64, id pageID, store bool) {
	m := s.pool.meta(id)
	if s.hash != nil || store && m.codeID.Load() != 0 {
		return
	}
	b := &noBits
	if w := s.markedAt(key); w != nil {
		b = w
	}
	if len(s.watches) > 0 {
		if w := s.watched().page(s, key); w != nil {
			if b != &noBits {
				return // each access has to look at both
			}
			b = w
		}
	}
	if b != &noBits || m.mask != nil {
		s.slowTLB[base/PageSize%slowTLBSize] = slowEntry{base, s.pool.page(id), b, m.mask, store}
		s.slowTLBUsed = true
	}
}

// PartialPage returns the page at page-aligned address a, which Read (for Load) or Write (for Store) has just accessed,
// and its plain bytes: those that are known, or, where a watch is on the page, those not watched for such accesses. Until
// OnFlush, accesses of that kind to plain bytes may go there directly; bits may be set meanwhile. Unknown says that the page has
// unknown bytes. Page is nil when each access must come here, as on a page that has watched bytes and unknown ones, or none must.
func (s *Space) PartialPage(a uint64, k Access) (page *Page, plain *Mask, unknown bool) {
	e := &s.slowTLB[a/PageSize%slowTLBSize]
	switch {
	case e.base != a || e.page == nil || k == Store && !e.store:
		return nil, nil, false
	case e.bits == &noBits:
		return e.page, e.mask, true
	case e.mask != nil:
		return nil, nil, false
	case k == Store:
		return e.page, maskWithout(&e.bits.plainStore, &e.bits.store), false
	}
	return e.page, maskWithout(&e.bits.plainLoad, &e.bits.load), false
}

// maskWithout returns *m, which it makes of the bytes whose bits are not set in watched when it is nil.
func maskWithout(m **Mask, watched *[PageSize / 64]uint64) *Mask {
	if *m == nil {
		*m = new(Mask)
		for i, w := range watched {
			binary.LittleEndian.PutUint64((*m)[8*i:], ^w)
		}
	}
	return *m
}

// flushSlowTLB empties the table.
func (s *Space) flushSlowTLB() {
	if s.slowTLBUsed {
		s.slowTLB, s.slowTLBUsed = [slowTLBSize]slowEntry{}, false
	}
}
