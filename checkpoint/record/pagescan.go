package record

import "vplay/checkpoint"

// What the entries of a page table mean for an interval. Where they come from is in
// pages.go.

// Bits of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pmExclusive = 1 << 56 // mapped by this process alone: written since the last fork
	pmFile      = 1 << 61 // a page of a file or of shared memory
	pmSwap      = 1 << 62
	pmPresent   = 1 << 63
)

// pageScan is what the page tables of a stopped program say.
type pageScan struct {
	private  ranges // anonymous and private-dirty pages: they belong to the address
	dirty    ranges // those of private that nobody shares: written since the last fork
	file     []filePage
	shared   ranges // present pages of writable shared mappings
	unforked ranges // present pages of ranges that a fork wipes or omits
	changed  ranges // clean pages of private mappings of files that have changed
}

// filePage is a present, clean page of a mapped file.
type filePage struct {
	addr   uint64
	object uint32
	index  uint64
}

// visitor returns the function that files the entries of one range.
func (c *pageScan) visitor(m *mapping, changed bool) func(page, e uint64) {
	first := m.Start / checkpoint.PageSize
	asFile := func(page uint64) {
		c.file = append(c.file, filePage{page * checkpoint.PageSize, m.Object, m.Offset/checkpoint.PageSize + page - first})
		if changed {
			c.changed.add(page, page+1)
		}
	}
	switch {
	case !m.private():
		return func(page, e uint64) { c.shared.add(page, page+1) }
	case m.advice != 0:
		return func(page, e uint64) {
			if e&pmFile != 0 && m.Object != 0 {
				asFile(page)
				return
			}
			c.unforked.add(page, page+1)
		}
	default:
		return func(page, e uint64) {
			if e&pmFile != 0 {
				if m.Object != 0 {
					asFile(page)
				}
				return
			}
			c.private.add(page, page+1)
			if e&(pmExclusive|pmSwap) != 0 {
				c.dirty.add(page, page+1)
			}
		}
	}
}
