package mem

// Which bytes of its source a stretch of execution needs: those that it reads or
// executes before it has written them, BugNet's first loads. Whoever has these bytes alone
// replays the stretch exactly.
//
// The masks of pages do the work. While needs are noted, a page from the source is loaded with
// all its bytes, and none of them counts as known: they are latent. The first read of a latent
// byte notes it and makes it known; a store makes it known without a note. So each byte goes the slow way once, and
// accesses to bytes that are known are as fast as on any page with unknown bytes.

// Needs are the bytes needed, by the page that they came with.
type Needs struct {
	Pages   map[uint64]*Mask     // private and shared pages by their address at the start
	Objects map[ObjectPage]*Mask // pages of objects that had no record by address
	// Charge, when set, is asked for each page that is noted. Its first error is kept in Err.
	Charge func() error
	Err    error
}

// NewNeeds returns empty needs.
func NewNeeds() *Needs { return &Needs{Pages: map[uint64]*Mask{}, Objects: map[ObjectPage]*Mask{}} }

// NeedsPageBytes is what a page takes in Needs, with what its space keeps beside it.
const NeedsPageBytes = 1200

// latent is what is not yet known of a page from the source.
type latent struct {
	left   Mask  // what the source knows; a bit means nothing where the page's mask has it
	needed *Mask // in Needs
}

// origin says where fill has found a page.
type origin struct {
	object   ObjectPage
	addr     uint64 // when the page is not the object's
	isObject bool
	copied   *latent // of the page that it was copied from; nil: it was not
}

// NoteNeeds notes in n what is needed from now on, in this space and those opened from its snapshots.
// Preconditions: nothing was loaded.
func (s *Space) NoteNeeds(n *Needs) { s.needs = n }

// Needs returns what NoteNeeds was given.
func (s *Space) Needs() *Needs { return s.needs }

// Page returns the bytes noted of the page at a, which is made.
func (n *Needs) Page(a uint64) *Mask { return noted(n, n.Pages, a) }

// Object is Page for a page of an object.
func (n *Needs) Object(o ObjectPage) *Mask { return noted(n, n.Objects, o) }

func noted[K comparable](n *Needs, pages map[K]*Mask, k K) *Mask {
	m := pages[k]
	if m != nil {
		return m
	}
	m = new(Mask)
	if n.Charge != nil && n.Err == nil {
		n.Err = n.Charge()
	}
	if n.Err == nil { // else it is not noted any more
		pages[k] = m
	}
	return m
}

func (n *Needs) at(o *origin) *Mask {
	if o.isObject {
		return n.Object(o.object)
	}
	return n.Page(o.addr)
}

// conceal makes the bytes of a page that was just filled latent.
func (s *Space) conceal(m *pageMeta, c Content) {
	switch {
	case s.origin.copied != nil:
		l := *s.origin.copied
		m.latent = &l
	case c == Captured:
		m.latent = &latent{needed: s.needs.at(&s.origin)}
		m.latent.left.Fill()
		m.mask = new(Mask)
	case c == Partial:
		m.latent = &latent{left: *m.mask, needed: s.needs.at(&s.origin)}
		m.mask = new(Mask)
	}
}

// Need notes that the n bytes at a are needed, as a read of them would.
func (s *Space) Need(a uint64, n int) {
	if s.needs == nil {
		return
	}
	for end := a + uint64(n); a < end; {
		base := a &^ (PageSize - 1)
		to := min(end, base+PageSize)
		if r := s.find(a); r != nil {
			key := s.key(r, base)
			s.takeLatent(r, base, key, s.load(r, base, key), int(a-base), int(to-a))
		}
		a = to
	}
}

// takeLatent makes those of n bytes at o of a page that are latent known, and notes them.
func (s *Space) takeLatent(r *Region, base, key uint64, id pageID, o, n int) {
	m := s.pool.meta(id)
	l := m.latent
	if l == nil {
		return
	}
	for i := o; i < o+n; i++ {
		if bit := byte(1) << (i % 8); m.mask[i/8]&bit == 0 && l.left[i/8]&bit != 0 {
			l.needed[i/8] |= bit
			m.mask[i/8] |= bit
		}
	}
	if m.mask.All() {
		m.mask, m.latent = nil, nil
		s.flushKey(r, base, key)
	}
}

// all returns which bytes of the page are known, the latent ones included; nil when all are.
func (m *pageMeta) all() *Mask {
	if m.mask == nil || m.latent == nil {
		return m.mask
	}
	out := *m.mask
	for i, b := range m.latent.left {
		out[i] |= b
	}
	if out.All() {
		return nil
	}
	return &out
}

// Fill sets all bits.
func (m *Mask) Fill() {
	for i := range m {
		m[i] = 0xff
	}
}

// Add sets the bits that o has.
func (m *Mask) Add(o *Mask) {
	for i, b := range o {
		m[i] |= b
	}
}

// AddRange sets the bits of n bytes from o on.
func (m *Mask) AddRange(o, n int) {
	for i := o; i < o+n; i++ {
		m[i/8] |= 1 << (i % 8)
	}
}

// PeekRaw copies the page at page-aligned address a and says which of its bytes are known; the
// others are as Raw gives them, zero where nobody has ever known them. It keeps nothing, as PeekPage. It is false where nothing is
// mapped.
func (s *Space) PeekRaw(a uint64, page *Page, known *Mask) (ok bool) {
	r := s.find(a)
	if r == nil {
		return false
	}
	if lookup(s.root, s.key(r, a)) != 0 {
		return s.Raw(a, page, known)
	}
	*page, *known = Page{}, Mask{}
	switch s.fill(r, a, page, known) {
	case Zero:
		*page = Page{}
		known.Fill()
	case Captured:
		known.Fill()
	case NotCaptured:
		*page, *known = Page{}, Mask{}
	case Partial: // the source has said which
	}
	return true
}
