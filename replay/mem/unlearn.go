package mem

// A byte may become unknown while a program runs: replay does not always know what
// an instruction stored (XSAVE, see replay/RATIONALE.md). Such a byte is like one
// that was never captured: a load faults with FaultNotCaptured, a store makes it
// known. Its page keeps the content that it had.

// Unlearn makes the n bytes at a unknown. All of them must be mapped.
func (s *Space) Unlearn(a uint64, n int) {
	for end := a + uint64(n); a < end; {
		base := a &^ (PageSize - 1)
		to := min(end, base+PageSize)
		r := s.find(a)
		if r == nil {
			return
		}
		key := s.key(r, base)
		id := s.writable(r, base, key)
		s.takeLatent(r, base, key, id, int(a-base), int(to-a)) // who asks later may get what was there
		m := s.pool.meta(id)
		if m.mask == nil {
			m.mask = new(Mask)
			for i := range m.mask {
				m.mask[i] = 0xff
			}
		}
		for o := a - base; o < to-base; o++ {
			m.mask[o/8] &^= 1 << (o % 8)
			if m.latent != nil {
				m.latent.left[o/8] &^= 1 << (o % 8)
			}
		}
		s.flushKey(r, base, key)
		a = to
	}
}

// Raw copies the page at page-aligned address a, the content of unknown bytes
// included, and says which are known, or will be once they are read. ok is false where nothing is mapped.
func (s *Space) Raw(a uint64, page *Page, known *Mask) (ok bool) {
	r := s.find(a)
	if r == nil {
		return false
	}
	id := s.load(r, a, s.key(r, a))
	*page = *s.pool.page(id)
	if m := s.pool.meta(id).all(); m != nil {
		*known = *m
		return true
	}
	known.Fill()
	return true
}

// RawByte returns the content of the byte at a, and whether it is known. A byte that
// is not mapped is zero and not known.
func (s *Space) RawByte(a uint64) (b byte, known bool) {
	r := s.find(a)
	if r == nil {
		return 0, false
	}
	base := a &^ (PageSize - 1)
	key := s.key(r, base)
	id := s.load(r, base, key)
	s.takeLatent(r, base, key, id, int(a-base), 1)
	m := s.pool.meta(id).mask
	return s.pool.page(id)[a-base], m == nil || m.Has(int(a-base))
}

// Has reports whether byte o of the page is known.
func (m *Mask) Has(o int) bool { return m[o/8]>>(o%8)&1 != 0 }

// All reports whether all bytes are known.
func (m *Mask) All() bool {
	for _, b := range m {
		if b != 0xff {
			return false
		}
	}
	return true
}

// hasAll reports whether the n bytes from o on are known.
func (m *Mask) hasAll(o, n int) bool {
	for i := o; i < o+n; i++ {
		if !m.Has(i) {
			return false
		}
	}
	return true
}
