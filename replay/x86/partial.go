package x86

// Pages of which not every byte is known. Translate never gives such a page for direct use, so each access to it is one
// of the Bus's, and a program that works on one, as a stack page is behind XSAVE, works nowhere else. So a Bus may tell
// which bytes are known, and an engine that looks at that itself needs nobody else for accesses to known bytes.

// PartialBus is a Bus that tells which bytes of a page are known.
type PartialBus interface {
	Bus
	// PartialPage returns the bytes of the page at page-aligned address a, which Read (for Load) or Write (for Store) has just
	// accessed, and a bit for each that is known. Until FlushTLB or FlushTLBPage, accesses of that kind to known bytes may
	// be made there; bits may be set meanwhile. It returns nil where each access must go through the Bus.
	PartialPage(a uint64, k Access) (page *[pageSize]byte, known *[pageSize / 8]byte)
	// CountPartial says that n accesses were made so.
	CountPartial(n uint64)
}

// PartialEntries is how many such pages are remembered for each kind of access.
const PartialEntries = 8

// partialEntry is one of them. It has the size that HostLayout says.
type partialEntry struct {
	base  uint64
	page  *[pageSize]byte
	known *[pageSize / 8]byte
	_     uint64
}

// partialPages are those for one kind of access, by page number: those of a page are in no other entry, and an
// unused entry has the base of another one.
type partialPages [PartialEntries]partialEntry

func (t *partialPages) empty() {
	for i := range t {
		t[i] = partialEntry{base: emptyBase(uint64(i))}
	}
}

func (t *partialPages) drop(a uint64) {
	i := a >> 12 & (PartialEntries - 1)
	t[i] = partialEntry{base: emptyBase(i)}
}

// notePartial remembers the page of a, which the Bus has just accessed, if it is one.
func (c *CPU) notePartial(t *partialPages, a uint64, k Access) {
	if c.partialBus == nil {
		return
	}
	base := a &^ (pageSize - 1)
	e := &t[base>>12&(PartialEntries-1)]
	if e.base == base {
		return
	}
	if page, known := c.partialBus.PartialPage(base, k); page != nil && aligned(page) {
		*e = partialEntry{base: base, page: page, known: known}
		c.hasPartial = true
	}
}

// CountPartial says that an engine has made n accesses to such pages.
func (c *CPU) CountPartial(n uint64) { c.partialBus.CountPartial(n) }
