package loader

import (
	"sort"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// Pages, from the recording into an address space. Maps and registers are in machine.go.

// Source gives a guest address space the pages of one interval's start. It is
// safe for concurrent use.
type Source struct {
	rec   *checkpoint.Recording
	table []checkpoint.PageEntry // sorted by address, without PageRemoved
}

// NewSource returns the source of interval id's pages. Errors are those of
// the recording's page table.
func NewSource(rec *checkpoint.Recording, id uint32) (*Source, error) {
	table, err := rec.PageTable(id)
	if err != nil {
		return nil, err
	}
	return &Source{rec, table}, nil
}

// PageAt implements mem.Source.
func (s *Source) PageAt(a uint64, page *mem.Page, mask *mem.Mask) (mem.Content, bool) {
	ref, ok := s.Record(a)
	if !ok {
		return mem.Zero, false
	}
	return Content(s.rec, ref, page, mask), true
}

// Has reports whether the interval has a record for the page at address a.
func (s *Source) Has(a uint64) bool {
	_, ok := s.Record(a)
	return ok
}

// Record returns what the interval says of the page at address a.
func (s *Source) Record(a uint64) (checkpoint.PageRef, bool) {
	return checkpoint.PageTable(s.table).Find(a)
}

// Table returns the page table at the interval's start, sorted by address. The
// caller must not change it.
func (s *Source) Table() []checkpoint.PageEntry { return s.table }

// ObjectPage implements mem.Source.
func (s *Source) ObjectPage(object uint32, off uint64, page *mem.Page, mask *mem.Mask) mem.Content {
	ref, ok := s.rec.ObjectPage(object, off/mem.PageSize)
	if !ok {
		return mem.NotCaptured
	}
	return Content(s.rec, ref, page, mask)
}

// Content reads a page record. A page whose record cannot be read is not
// captured: inventing bytes would be worse. Who needs it is told why, by
// Recording.Unreadable.
func Content(rec *checkpoint.Recording, ref checkpoint.PageRef, page *mem.Page, mask *mem.Mask) mem.Content {
	switch ref.Kind {
	case checkpoint.PageZero:
		return mem.Zero
	case checkpoint.PageFull, checkpoint.PagePartial:
		m, err := rec.Page(ref, page)
		if err != nil {
			return mem.NotCaptured
		}
		if m != nil {
			*mask = *m
			return mem.Partial
		}
		return mem.Captured
	default:
		return mem.NotCaptured
	}
}

// Range returns the rows of the page table in [start, end).
func (s *Source) Range(start, end uint64) []checkpoint.PageEntry {
	at := func(a uint64) int {
		return sort.Search(len(s.table), func(i int) bool { return s.table[i].Addr >= a })
	}
	return s.table[at(start):max(at(start), at(end))]
}

// ObjectRange returns the recorded pages of an object from byte start to byte end, both
// page-aligned.
func (s *Source) ObjectRange(object uint32, start, end uint64) []checkpoint.ObjectPage {
	return s.rec.ObjectPagesIn(object, start/mem.PageSize, end/mem.PageSize)
}

// Pages implements mem.PageLister.
func (s *Source) Pages(start, end uint64, f func(a uint64, name mem.PageName)) {
	for _, e := range s.Range(start, end) {
		var name mem.PageName
		if e.Ref.Kind == checkpoint.PageFull || e.Ref.Kind == checkpoint.PagePartial {
			name = mem.PageName(e.Ref.Hash)
		}
		f(e.Addr, name)
	}
}
