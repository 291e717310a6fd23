package mem

import "slices"

// The space itself, what it asks its source, and how a page gets into it: loaded when
// it is first needed, copied when it is shared and written to. Loads and stores are in
// access.go, changes of the map in region.go.

// Content says what a Source knows of a page.
type Content uint8

// What a Source can say.
const (
	Captured    Content = iota // the page was filled
	Zero                       // all zero; the page was left alone
	Partial                    // filled where the mask says so
	NotCaptured                // nothing is known
)

// Source gives the content of pages at the start of the recorded interval.
// Both methods fill page and, for Partial, mask. They may be called from
// several goroutines at once.
type Source interface {
	// PageAt is asked for private pages at address a that existed at the
	// interval's start. ok is false when the recording has no record by
	// address, so that the page is the object's, or zero.
	PageAt(a uint64, page *Page, mask *Mask) (c Content, ok bool)
	// ObjectPage is asked for the page of an object that starts at byte off.
	ObjectPage(object uint32, off uint64, page *Page, mask *Mask) Content
}

// PageLister is a Source that lists the pages it knows by address, so that nobody
// has to ask for each page of a range: a program may reserve terabytes. Pages that
// PageAt gives with one name have the same content, which is not zero; those with the
// zero name may have any.
type PageLister interface {
	Pages(start, end uint64, f func(a uint64, name PageName))
}

// PageName is the content address of a page.
type PageName [16]byte

// MaxUser is the first address above the user half.
const MaxUser = 1 << 47

// Space is one guest's memory.
type Space struct {
	pool    *Pool
	src     Source
	root    *node
	regions AddressMap
	last    *Region // the one found last, nil when there is none
	dropped *droppedRange
	began   *sharedIndex // the shared regions at the interval's start

	// Charge, when set, is asked in the middle of a change of the map that takes long,
	// whether it may go on.
	Charge func() error

	work   int64    // see Work
	list   []Region // of the map listed; see Regions
	listed AddressMap
	shared *sharedIndex

	mayMap    bool            // see AllowMapping
	busError  uint64          // the page that SetBusError named
	hasShared map[uint32]bool // objects that were mapped shared at some time; see mayShare

	// OnFlush is called when pointers handed out by Translate for the pages of [start, end) are no longer
	// good. For all pages it is [0, FlushAll).
	OnFlush func(start, end uint64)
	// OnFull is called when the pool has more pages in use than its limit.
	OnFull func()
	// PartialAccesses counts the accesses to pages with unknown bytes: each is slow. Who makes some directly
	// (PartialPage) adds them, but those to pages where there are only watches.
	PartialAccesses uint64
	// OnAccess is called after an access that touches watched or marked bytes, once for all of it, before OnHit:
	// n bytes at a, and what was there before a store.
	OnAccess func(a uint64, n int, k Access, old []byte)
	// OnHit is called after an access to watched bytes, once per watch.
	OnHit func(Hit)

	watches []Watch
	index   *watchIndex // of the watches; see watched
	marks   *Marks      // nil: there are none

	slowTLB     [slowTLBSize]slowEntry
	slowTLBUsed bool // one of them is not empty

	track  *Sets
	needs  *Needs                // nil: they are not noted
	origin origin                // of the page filled last
	aside  map[uint64]ObjectPage // by key: pages of objects that were loaded and not accessed; see loadAside
	hash   func(addr, v uint64) uint64
	sum    uint64
	// hashed are pages that stores may go to directly while memory is hashed:
	// private, owned, known, and neither watched nor code.
	hashed [hashedPages]hashedPage
	open   map[uint64]*Page // by address: pages that the sum lacks; see Hash
	closed int              // how many were open and hashed again
}

// NewSpace returns an empty space whose pages come from src.
func NewSpace(pool *Pool, src Source) *Space {
	return &Space{pool: pool, src: src, root: pool.newNode(false), busError: noPage}
}

// Close gives the space's pages back to the pool.
func (s *Space) Close() {
	if s.root != nil {
		s.pool.release(s.root)
		s.root = nil
	}
}

func (s *Space) flush() {
	s.flushOwn()
	if s.OnFlush != nil {
		s.OnFlush(0, FlushAll)
	}
}

// flushOwn is flush for what the space itself remembers.
func (s *Space) flushOwn() {
	for a := range s.open {
		s.closeHashed(a)
	}
	s.hashed = [hashedPages]hashedPage{}
	s.flushSlowTLB()
}

// FlushAll is the end of all memory, for OnFlush.
const FlushAll = 1<<64 - 1

// flushRange is flush for the pages in [start, end), after a change of the map there: at other addresses the same pages stay.
func (s *Space) flushRange(start, end uint64) {
	if len(s.open) > 0 {
		s.flush()
		return
	}
	s.flushOwn()
	if s.OnFlush != nil {
		s.OnFlush(start, end)
	}
}

// check finds the region for an access to one byte, or says why there is none.
func (s *Space) check(a uint64, k Access) (*Region, FaultKind) {
	if a >= MaxUser && a < 1<<64-MaxUser {
		return nil, FaultNonCanon
	}
	r := s.find(a)
	if r == nil {
		return nil, FaultNotMapped
	}
	switch k {
	case Load: // x86 pages that can be written or executed can be read
		if r.Prot == 0 {
			return nil, FaultProtection
		}
	case Store:
		if r.Prot&ProtWrite == 0 {
			return nil, FaultProtection
		}
	case Exec:
		if r.Prot&ProtExec == 0 {
			return nil, FaultProtection
		}
	}
	if a&^(PageSize-1) == s.busError {
		return nil, FaultBeyondEOF
	}
	return r, FaultNone
}

// load returns the page of key for address a in r, loading it from the source
// when it is not there yet. It is never 0: a page of which nothing is known has
// an empty mask.
func (s *Space) load(r *Region, a, key uint64) pageID {
	if id := lookup(s.root, key); id != 0 {
		return id
	}
	id := s.pool.alloc(s.place())
	s.reportFull()
	page, m := s.pool.page(id), s.pool.meta(id)
	var mask Mask
	c := s.fill(r, a, page, &mask)
	switch c {
	case Zero:
		s.pool.unref(id)
		id = s.pool.zeroPage()
		s.pool.ref(id)
	case Partial:
		m.mask = &mask
	case NotCaptured:
		*page = Page{}
		m.mask = &Mask{}
	case Captured:
	}
	if s.needs != nil && c != Zero {
		s.conceal(m, c)
	}
	*s.pool.slot(&s.root, key) = id
	return id
}

func (s *Space) reportFull() {
	if s.OnFull != nil && s.pool.Full() {
		s.OnFull()
	}
}

func (s *Space) fill(r *Region, a uint64, page *Page, mask *Mask) Content {
	s.origin = origin{addr: a}
	if r.Shared && s.began != nil {
		if c, ok := s.fillShared(r.Object, a-r.Start+r.Offset, page, mask); ok {
			return c
		}
	} else if !r.Fresh {
		if c, ok := s.src.PageAt(a, page, mask); ok {
			return c
		}
	}
	if r.Object == 0 || r.Zero {
		return Zero
	}
	off := a - r.Start + r.Offset
	if !r.Shared && s.began != nil {
		if c, ok := s.fromShared(r.Object, off, page, mask); ok {
			return c
		}
	}
	if s.track != nil {
		s.track.Objects[ObjectPage{r.Object, off / PageSize}] = struct{}{}
	}
	s.origin = origin{object: ObjectPage{r.Object, off / PageSize}, isObject: true}
	return s.src.ObjectPage(r.Object, off, page, mask)
}

// fillShared fills the page at byte off of a shared object from any view of it
// that there was at the interval's start: the view that is asked may be newer.
func (s *Space) fillShared(object uint32, off uint64, page *Page, mask *Mask) (Content, bool) {
	var c Content
	known := false
	s.began.at(object, off, func(q *Region) bool {
		s.origin = origin{addr: q.Start + off - q.Offset}
		c, known = s.src.PageAt(s.origin.addr, page, mask)
		return !known
	})
	return c, known
}

// fromShared fills a page of a private mapping from what shared mappings of the
// same object have there: until the program writes to it, both are one page.
func (s *Space) fromShared(object uint32, off uint64, page *Page, mask *Mask) (Content, bool) {
	if s.began.byObject[object] == nil && (!s.mayShare(object) || s.sharedNow().byObject[object] == nil) {
		return 0, false
	}
	id := lookup(s.root, sharedWindow+s.pool.slotOf(object)<<objectBits+off)
	if id == 0 {
		return s.fillShared(object, off, page, mask)
	}
	*page = *s.pool.page(id)
	m := s.pool.meta(id)
	s.origin.copied = m.latent
	if m.mask != nil {
		*mask = *m.mask
		return Partial, true
	}
	return Captured, true
}

// PeekKey copies the page of a shared object by its key, mapped or not. What is not
// known is zero.
// Preconditions: key was given out by a space of the same pool, for a shared page.
func (s *Space) PeekKey(key uint64, page *Page) {
	*page = Page{}
	if id := lookup(s.root, key); id != 0 {
		*page = *s.pool.page(id)
		return
	}
	object, ok := s.pool.objectOf((key - sharedWindow) >> objectBits)
	if !ok {
		return
	}
	var mask Mask
	off := key & (1<<objectBits - 1)
	if s.began != nil {
		if _, ok := s.fillShared(object, off, page, &mask); ok {
			return
		}
	}
	s.src.ObjectPage(object, off, page, &mask)
}

// writable returns the page of key to change in place, copying it when it is
// shared with a snapshot.
func (s *Space) writable(r *Region, a, key uint64) pageID {
	slot := s.pool.slot(&s.root, key)
	isNew := *slot == 0
	if isNew {
		s.load(r, a, key)
		slot = s.pool.slot(&s.root, key)
	}
	if s.pool.meta(*slot).refs.Load() != 1 {
		c := s.pool.clone(*slot, s.place())
		s.reportFull()
		s.pool.unref(*slot)
		*slot = c
		if !isNew { // else nobody has a pointer to it
			s.flushKey(r, a, key)
		}
	}
	m := s.pool.meta(*slot)
	m.dirty.Store(true)
	return *slot
}

// flushKey tells the processor that the page behind key moved, at every
// address it has.
func (s *Space) flushKey(r *Region, a, key uint64) {
	s.hashed = [hashedPages]hashedPage{}
	s.flushSlowTLB()
	if !r.Shared {
		s.closeHashed(a)
	}
	switch {
	case s.OnFlush == nil:
	case r.Shared:
		s.eachAlias(r, key, func(alias uint64) { s.OnFlush(alias, alias+PageSize) })
	default:
		s.OnFlush(a, a+PageSize)
	}
}

// eachAlias calls f for each address of the shared page key of r's object.
func (s *Space) eachAlias(r *Region, key uint64, f func(a uint64)) {
	s.aliases(r.Object, key&(1<<objectBits-1), f)
}

// loadRange loads the pages of [start, end) that the source knows by address, so
// that they can be moved. Their content goes on being used: they count as read. It returns
// the addresses of those that are private, sorted. The error is Charge's.
func (s *Space) loadRange(start, end uint64) (own []uint64, err error) {
	l := rangeLoader{s: s, asked: s.work, named: map[PageName]pageID{}}
	for r := range s.regions.From(start) {
		if r.Start >= end {
			break
		}
		if r.Fresh {
			continue
		}
		lo, hi := max(start, r.Start), min(end, r.End)
		if list, ok := s.src.(PageLister); ok {
			list.Pages(lo, hi, func(a uint64, name PageName) { l.load(r, a, name) })
			continue
		}
		for a := lo; a < hi && l.err == nil; a += PageSize {
			l.load(r, a, PageName{})
		}
	}
	return l.own, l.err
}

// rangeLoader loads pages that are to be moved.
type rangeLoader struct {
	s *Space
	// named are the private pages that it has loaded: one for all addresses of that name,
	// until the program writes there. A table of millions of rows can name one page.
	named map[PageName]pageID
	own   []uint64 // see loadRange
	asked int64    // the work when Charge was asked last
	err   error    // Charge's: no more is loaded
	page  Page
	mask  Mask
}

// load loads the page of that name at address a of region r.
func (l *rangeLoader) load(r *Region, a uint64, name PageName) {
	if l.charge(); l.err != nil {
		return
	}
	s := l.s
	s.work += regionWork
	isZero := false
	if name == (PageName{}) {
		c, ok := s.src.PageAt(a, &l.page, &l.mask)
		if isZero = c == Zero; !ok || isZero && r.Object == 0 {
			return
		}
	}
	key := s.key(r, a)
	if !r.Shared {
		l.own = append(l.own, key)
	}
	if lookup(s.root, key) == 0 {
		if !isZero { // else it takes no page
			s.work += loadWork
		}
		l.fill(r, a, key, name)
	}
	if s.track != nil {
		s.note(key, Load)
	}
}

// charge asks now and then whether it may go on.
func (l *rangeLoader) charge() {
	if s := l.s; l.err == nil && s.work-l.asked > chargeEvery && s.Charge != nil {
		l.asked, l.err = s.work, s.Charge()
	}
}

// fill gives key, that has no page, the one of that name.
func (l *rangeLoader) fill(r *Region, a, key uint64, name PageName) {
	s := l.s
	if same := l.named[name]; same != 0 && !r.Shared {
		s.pool.ref(same)
		*s.pool.slot(&s.root, key) = same
		return
	}
	id := s.load(r, a, key)
	if name != (PageName{}) && !r.Shared {
		l.named[name] = id
	}
}

// chargeEvery is how much work is done between two questions whether to go on.
const chargeEvery = 1 << 20

// AddressesOf returns the addresses at which the page of key is mapped now.
func (s *Space) AddressesOf(key uint64) []uint64 {
	if key < sharedWindow {
		return []uint64{key}
	}
	object, ok := s.pool.objectOf((key - sharedWindow) >> objectBits)
	if !ok {
		return nil
	}
	var out []uint64
	s.aliases(object, key&(1<<objectBits-1), func(a uint64) { out = append(out, a) })
	slices.Sort(out)
	return out
}

// IsWritten reports whether the page at page-aligned address a has been
// written since it was loaded, in this space or the past it was opened from.
func (s *Space) IsWritten(a uint64) bool {
	r := s.find(a)
	if r == nil {
		return false
	}
	id := lookup(s.root, s.key(r, a))
	return id != 0 && s.pool.meta(id).dirty.Load()
}
