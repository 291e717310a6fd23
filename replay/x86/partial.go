package x86

// Pages that the processor may access directly in part: those of which not every byte is known, and those with a watch on
// them. Translate never gives such a page for direct use, so each access to it is one of the Bus's, and a program that works on
// one, as a stack page is behind XSAVE, or the page of a watched variable and of a counter, works nowhere else. So a Bus may tell
// which bytes are plain, and an engine that looks at that itself needs nobody else for accesses to plain bytes.

// PartialBus is a Bus that tells which bytes of a page are plain.
type PartialBus interface {
	Bus
	// PartialPage returns the page at page-aligned address a, which Read (for Load) or Write (for Store) has just accessed.
	// Page is nil where each access must go through the Bus.
	PartialPage(a uint64, k Access) PartialPage
	// CountPartial says that n accesses were made directly to pages that are counted.
	CountPartial(n uint64)
}

// PartialPage is a page with the bytes that may be accessed directly, by one kind of access, until FlushTLB or FlushTLBPage.
type PartialPage struct {
	Page    *[pageSize]byte
	Plain   *[pageSize / 8]byte // a bit for each byte; bits may be set meanwhile
	Counted bool                // CountPartial wants to know of accesses
}

// PartialEntries is how many such pages are remembered for each kind of access: as many as a program whose
// heap is watched for bytes that were freed works on.
const PartialEntries = 512

// partialEntry is one of them. It has the size that HostLayout says.
type partialEntry struct {
	base  uint64
	page  *[pageSize]byte
	plain *[pageSize / 8]byte
	count uint64 // what an access adds to those that CountPartial is told of
}

// partialPages are those for one kind of access, by page number: those of a page are in no other entry, and an
// unused entry has the base of another one.
type partialPages [PartialEntries]partialEntry

// emptyPartial empties t, whose fills these are.
func (f *fills) emptyPartial(t *partialPages) {
	if f.n <= len(f.at) {
		for _, i := range f.at[:f.n] {
			t[i] = partialEntry{base: emptyBase(uint64(i))}
		}
	} else {
		for i := range t {
			t[i] = partialEntry{base: emptyBase(uint64(i))}
		}
	}
	f.n = 0
}

func (t *partialPages) drop(a uint64) {
	*t.at(a) = partialEntry{base: emptyBase(partialIndex(a))}
}

// partialIndex is the place of the page of a.
func partialIndex(a uint64) uint64 { return a >> 12 & (PartialEntries - 1) }

// at returns the entry for the page of a.
func (t *partialPages) at(a uint64) *partialEntry { return &t[partialIndex(a)] }

// set has e in its place of t, whose fills f are.
func (t *partialPages) set(e partialEntry, f *fills) {
	*t.at(e.base) = e
	f.add(partialIndex(e.base))
}

// Whole pages are there, too: two pages that a program works on may have the same place in a translation cache (a page of the program's data and one
// of its heap), and each access to one of them would make the other one leave.

// evictions counts, by the entries of a translation cache, how often a page took another one's place.
type evictions [tlbSize]uint8

// maxEvictions is how often that may be before a page that must leave is kept: most that leave are not wanted again soon.
const maxEvictions = 16

// allPlain says that all bytes are.
var allPlain = func() (m [pageSize / 8]byte) {
	for i := range m {
		m[i] = 0xff
	}
	return m
}()

// whole returns the page at base that keep has kept, or nil.
func (t *partialPages) whole(base uint64) *[pageSize]byte {
	if e := t.at(base); e.base == base && e.plain == &allPlain {
		return e.page
	}
	return nil
}

// keep keeps the page of e, an entry of a translation cache that another page is about to get, where that happened often before.
func (t *partialPages) keep(e *tlbEntry, n *evictions, f *fills) {
	if e.page == nil {
		return
	}
	if i := e.base >> 12 & tlbMask; n[i] < maxEvictions {
		n[i]++
		return
	}
	t.set(partialEntry{base: e.base, page: e.page, plain: &allPlain}, f)
}

// notePartial remembers the page of a, which the Bus has just accessed, if it is one.
func (c *CPU) notePartial(t *partialPages, f *fills, a uint64, k Access) {
	if c.partialBus == nil {
		return
	}
	base := a &^ (pageSize - 1)
	if t.at(base).base == base {
		return
	}
	if p := c.partialBus.PartialPage(base, k); p.Page != nil && aligned(p.Page) {
		e := partialEntry{base: base, page: p.Page, plain: p.Plain}
		if p.Counted {
			e.count = 1
		}
		t.set(e, f)
	}
}

// CountPartial says that an engine has made n accesses to pages that are counted.
func (c *CPU) CountPartial(n uint64) { c.partialBus.CountPartial(n) }
