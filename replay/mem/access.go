package mem

// The ways to a guest's bytes: translation for the processor's cache, reads and writes that may
// fault, and injection of what came from outside. What maps where is in region.go, the page table
// in table.go.

// Translate returns the host bytes of the page at page-aligned address a for
// the kind of access; nil when the access would fault. With fast the pointer
// may be kept and used directly until OnFlush; without, accesses must go
// through Read and Write because the page is watched, holds decoded code
// (stores), is only partly known, or memory is being hashed store by
// store.
func (s *Space) Translate(a uint64, k Access) (page *Page, fast bool) {
	r, f := s.check(a, k)
	if f != FaultNone {
		return nil, false
	}
	key := s.key(r, a)
	var id pageID
	if k == Store {
		id = s.writable(r, a, key)
	} else {
		id = s.load(r, a, key)
	}
	if s.track != nil {
		s.note(key, k)
	}
	m := s.pool.meta(id)
	fast = m.mask == nil
	if fast && s.isWatched(key, k) {
		fast = false
	}
	if k == Store && m.codeID.Load() != 0 {
		fast = false
	}
	if k == Store && s.hash != nil && fast {
		fast = s.openHashed(r, a, s.pool.page(id))
	}
	return s.pool.page(id), fast
}

// Probe says whether an access of n bytes at a would fault.
func (s *Space) Probe(a uint64, n int, k Access) Fault {
	if e, o := s.slowLookup(a, n); e != nil && (k == Load && s.plain(e, &e.bits.load, o, n) || k == Store && e.store) {
		return Fault{} // it went to that page before
	}
	for end := a + uint64(n); a != end; {
		step := min(PageSize-a%PageSize, end-a)
		r, f := s.check(a, k)
		if f != FaultNone {
			return Fault{f, k, a}
		}
		if k != Store {
			if bad, ok := s.known(r, a, step); !ok {
				return Fault{FaultNotCaptured, k, bad}
			}
		}
		a += step
	}
	return Fault{}
}

// known reports whether the n bytes at a, which are in one page, are known,
// and if not, the first that is not.
func (s *Space) known(r *Region, a, n uint64) (bad uint64, ok bool) {
	base := a &^ (PageSize - 1)
	key := s.key(r, base)
	id := s.load(r, base, key)
	s.takeLatent(r, base, key, id, int(a-base), int(n))
	return firstUnknown(s.pool.meta(id).mask, a, n)
}

// fetchable is known for the fetch of instructions: more is fetched than is executed, so that who notes needs is
// told of code by Need.
func (s *Space) fetchable(r *Region, a, n uint64) (bad uint64, ok bool) {
	base := a &^ (PageSize - 1)
	return firstUnknown(s.pool.meta(s.load(r, base, s.key(r, base))).all(), a, n)
}

// firstUnknown returns the first of n bytes at a, which are in one page, that the page's mask lacks.
func firstUnknown(mask *Mask, a, n uint64) (bad uint64, ok bool) {
	if mask == nil {
		return 0, true
	}
	for i := range n {
		if o := (a + i) % PageSize; mask[o/8]>>(o%8)&1 == 0 {
			return a + i, false
		}
	}
	return 0, true
}

// Read copies len(b) bytes at a. On a fault b's content is undefined.
func (s *Space) Read(a uint64, b []byte) Fault {
	if s.readSlow(a, b) {
		return Fault{}
	}
	if f := s.Probe(a, len(b), Load); f.Kind != FaultNone {
		return f
	}
	s.copyOut(a, b, Load)
	if s.looks() {
		s.hits(a, len(b), Load, nil)
	}
	return Fault{}
}

func (s *Space) copyOut(a uint64, b []byte, k Access) {
	for len(b) > 0 {
		base := a &^ (PageSize - 1)
		r := s.find(a)
		key := s.key(r, base)
		if s.track != nil {
			s.note(key, k)
		}
		id := s.load(r, base, key)
		n := copy(b, s.pool.page(id)[a-base:])
		if (s.looks() || s.pool.meta(id).mask != nil) && k == Load {
			if e := &s.slowTLB[base/PageSize%slowTLBSize]; e.base != base || e.page == nil {
				s.fillSlowTLB(key, base, id, false)
			}
		}
		b, a = b[n:], a+uint64(n)
	}
}

// Write stores b at a: all of it or, on a fault, nothing.
func (s *Space) Write(a uint64, b []byte) Fault {
	if s.hash != nil && s.writeHashed(a, b) || s.writeSlow(a, b) {
		return Fault{}
	}
	if f := s.Probe(a, len(b), Store); f.Kind != FaultNone {
		return f
	}
	s.store(a, b)
	return Fault{}
}

// Inject stores b at a as the kernel would: without regard to protection. It
// reports a fault where nothing is mapped.
func (s *Space) Inject(a uint64, b []byte) Fault {
	for p := a &^ (PageSize - 1); p < a+uint64(len(b)); p += PageSize {
		if s.find(p) == nil {
			return Fault{FaultNotMapped, Store, max(p, a)}
		}
	}
	s.store(a, b)
	return Fault{}
}

func (s *Space) store(a uint64, b []byte) {
	var old []byte
	if s.looks() {
		old = s.before(a, len(b))
	}
	for p, rest := a, b; len(rest) > 0; {
		base := p &^ (PageSize - 1)
		r := s.find(p)
		n := min(len(rest), int(PageSize-(p-base)))
		s.storeInPage(r, base, p, rest[:n])
		rest, p = rest[n:], p+uint64(n)
	}
	if s.looks() {
		s.hits(a, len(b), Store, old)
	}
}

func (s *Space) storeInPage(r *Region, base, p uint64, b []byte) {
	key := s.key(r, base)
	id := s.writable(r, base, key)
	page, m := s.pool.page(id), s.pool.meta(id)
	if s.track != nil {
		s.note(key, Store)
	}
	o := int(p - base)
	if m.latent != nil && m.codeID.Load() != 0 {
		s.takeLatent(r, base, key, id, o, len(b)) // it may have been executed, of which Need tells later
	}
	if _, open := s.open[base]; s.hash != nil && !open {
		s.rehash(r, key, base, page, o, b)
		if !r.Shared && m.mask == nil && m.codeID.Load() == 0 && !s.isWatched(key, Store) {
			s.hashed[base/PageSize%hashedPages] = hashedPage{base, page}
		}
	} else {
		copy(page[o:], b)
	}
	partly := m.mask != nil
	if partly {
		s.PartialAccesses++
		if m.learn(o, len(b)) {
			s.flushKey(r, base, key) // it may be accessed directly now
		}
	}
	if m.codeID.Load() != 0 {
		m.codeID.Store(0)
		s.flushKey(r, base, key)
	}
	if s.looks() || partly {
		s.fillSlowTLB(key, base, id, true)
	}
}

// learn marks n bytes at o as known, drops the mask when all are, and reports
// that. The page is not shared.
func (m *pageMeta) learn(o, n int) (whole bool) {
	for i := o; i < o+n; i++ {
		m.mask[i/8] |= 1 << (i % 8)
	}
	for _, b := range m.mask {
		if b != 0xff {
			return false
		}
	}
	m.mask, m.latent = nil, nil
	return true
}

// Fetch copies up to len(b) instruction bytes at a and says how many could be
// read before the fault.
func (s *Space) Fetch(a uint64, b []byte) (int, Fault) {
	done := 0
	for done < len(b) {
		p := a + uint64(done)
		r, f := s.check(p, Exec)
		if f != FaultNone {
			return done, Fault{f, Exec, p}
		}
		step := min(PageSize-p%PageSize, uint64(len(b)-done))
		if bad, ok := s.fetchable(r, p, step); !ok {
			n := int(bad - p)
			s.copyOut(p, b[done:done+n], Exec)
			return done + n, Fault{FaultNotCaptured, Exec, bad}
		}
		s.copyOut(p, b[done:done+int(step)], Exec)
		done += int(step)
	}
	return done, Fault{}
}

// CodeID marks the page at page-aligned address a as holding decoded code and
// returns an identity of its content: any page that was or will be at a in a space of
// this process has the same if its bytes, and which of them are known, are the same. 0
// means that the page cannot be executed. Access sets do not change.
func (s *Space) CodeID(a uint64) uint64 {
	r, f := s.check(a, Exec)
	if f != FaultNone {
		return 0
	}
	key := s.key(r, a)
	id := s.loadAside(r, a, key)
	if id == s.pool.zeroPage() {
		slot := s.pool.slot(&s.root, key)
		*slot = s.pool.apart(id, s.place())
		id = *slot
	}
	m := s.pool.meta(id)
	// Other spaces may share the page and mark it at the same time. None of them
	// stores to a shared page, so the first mark holds for all.
	if m.codeID.Load() == 0 && m.codeID.CompareAndSwap(0, s.pool.identity(id, key)) {
		s.flushKey(r, a, key)
	}
	return m.codeID.Load()
}

// Peek copies the readable prefix of [a, a+len(b)) for a debugger: protection
// is not asked, watches are not hit, access sets do not change. It returns how
// many bytes and why it stopped.
func (s *Space) Peek(a uint64, b []byte) (int, Fault) {
	done := 0
	for done < len(b) {
		p := a + uint64(done)
		r := s.find(p)
		if r == nil {
			return done, Fault{FaultNotMapped, Load, p}
		}
		base := p &^ (PageSize - 1)
		step := min(PageSize-(p-base), uint64(len(b)-done))
		bad, ok := s.known(r, p, step)
		if !ok {
			step = bad - p
		}
		page := s.pool.page(s.load(r, base, s.key(r, base)))
		copy(b[done:done+int(step)], page[p-base:])
		done += int(step)
		if !ok {
			return done, Fault{FaultNotCaptured, Load, bad}
		}
	}
	return done, Fault{}
}

// PeekPage copies the page at page-aligned a as Peek does, but keeps nothing: a page that
// was not loaded is read from the source and forgotten. It is for looking through more
// pages than memory holds. What is not known is left as it is in page.
func (s *Space) PeekPage(a uint64, page *Page) (n int, f Fault) {
	r := s.find(a)
	if r == nil {
		return 0, Fault{FaultNotMapped, Load, a}
	}
	if id := lookup(s.root, s.key(r, a)); id != 0 {
		return s.Peek(a, page[:])
	}
	var got Page
	var mask Mask
	n = PageSize
	switch s.fill(r, a, &got, &mask) {
	case Captured:
	case Zero:
		got = Page{}
	case NotCaptured:
		n = 0
	case Partial:
		for n = 0; n < PageSize && mask[n/8]>>(n%8)&1 != 0; n++ {
		}
	}
	if copy(page[:n], got[:]); n < PageSize {
		f = Fault{FaultNotCaptured, Load, a + uint64(n)}
	}
	return n, f
}

// PeekObject reads an object from offset off on as it was when the recording
// began, without a mapping, and returns how many bytes of b are known, the prefix.
func (s *Space) PeekObject(object uint32, off uint64, b []byte) int {
	done := 0
	for done < len(b) {
		var page Page
		var mask Mask
		p := off + uint64(done)
		at := p % PageSize
		step := min(int(PageSize-at), len(b)-done)
		switch s.src.ObjectPage(object, p-at, &page, &mask) {
		case NotCaptured:
			return done
		case Partial:
			for i := range step {
				if j := int(at) + i; mask[j/8]>>(j%8)&1 == 0 {
					return done + copy(b[done:done+i], page[at:])
				}
			}
		case Captured, Zero:
		}
		done += copy(b[done:done+step], page[at:])
	}
	return done
}
