//go:build linux && amd64

package record

import (
	"slices"

	"errors"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Pages of mapped files belong to the file, not to the interval: they are kept
// once, as the program saw them before it wrote to them.

// pageKey names a page of an object.
type pageKey struct {
	object uint32
	index  uint64
}

// objectPage is a page of an object that waits to be written.
type objectPage struct {
	key  pageKey
	data []byte
}

// keepObjectPage takes a page of an object. data is kept.
func (t *tracer) keepObjectPage(k pageKey, data []byte) error {
	if t.fileDone[k] {
		return nil
	}
	t.fileDone[k] = true
	if t.out.open() {
		return t.out.objectPage(k, data)
	}
	t.filePend = append(t.filePend, objectPage{k, data})
	return nil
}

// keepFilePages takes the pages of files that a census found and that are not
// kept yet.
func (t *tracer) keepFilePages(list []filePage) error {
	for _, p := range list {
		k := pageKey{p.object, p.index}
		if t.fileDone[k] {
			continue
		}
		b := make([]byte, checkpoint.PageSize)
		if t.readMem(p.addr, b) != len(b) {
			continue
		}
		if err := t.keepObjectPage(k, b); err != nil {
			return err
		}
	}
	return nil
}

// keepReadShared takes the pages of shared mappings that the program can only
// read: of large objects not all pages were taken when they were mapped.
func (t *tracer) keepReadShared(set ranges) error {
	return set.each(func(page uint64) error {
		addr := page * checkpoint.PageSize
		m := t.maps.at(addr)
		if m == nil || m.Prot&checkpoint.ProtWrite != 0 || m.Object == 0 || t.objs.list[m.Object-1].Changed {
			return nil
		}
		return t.keepFilePages([]filePage{{addr, m.Object, (addr - m.Start + m.Offset) / checkpoint.PageSize}})
	})
}

// captureFilePages takes the pages of files in [start,end) before a call
// unmaps, replaces or drops them.
func (t *tracer) captureFilePages(start, end uint64) error {
	if start >= end {
		return nil
	}
	for _, m := range t.maps.overlap(start, end) {
		if m.Object == 0 || t.objs.list[m.Object-1].Kind == checkpoint.ObjectSpecial {
			continue
		}
		m.Offset += max(m.Start, start) - m.Start
		m.Start, m.End = max(m.Start, start), min(m.End, end)
		c, err := t.pmap.takeCensus([]mapping{m}, t.objs.list)
		if err != nil {
			return err
		}
		if err := t.keepFilePages(c.file); err != nil {
			return err
		}
		if m.Prot&checkpoint.ProtExec != 0 { // of data there may be much, and often
			if err := t.keepWhole([]mapping{m}, c.private); err != nil {
				return err
			}
		}
		if err := errors.Join(t.keepReadShared(c.shared), t.keepHoles(c.shared)); err != nil {
			return err
		}
		t.noteZapped(&m, c.shared)
		if err := t.keepOriginals([]mapping{m}, c.private); err != nil {
			return err
		}
		if m.private() && t.objs.list[m.Object-1].Changed {
			t.call.refill = t.call.refill.union(c.private)
		}
	}
	return nil
}

// noteZapped notes pages of a shared mapping that leave the page tables while the
// object keeps them.
func (t *tracer) noteZapped(m *mapping, set ranges) {
	_ = set.each(func(page uint64) error {
		if t.zapped == nil {
			t.zapped = map[pageKey]struct{}{}
		}
		t.zapped[pageKey{m.Object, (page*checkpoint.PageSize - m.Start + m.Offset) / checkpoint.PageSize}] = struct{}{}
		return nil
	})
}

// hiddenShared returns pages of shared mappings that are in no page table any
// more, because the program or the kernel has dropped them there, and that still
// hold what was stored.
func (t *tracer) hiddenShared(there ranges) ranges {
	var pages []uint64
	for a := range t.sharedNow {
		if m := t.maps.at(a); m != nil && !m.private() && !there.has(a/checkpoint.PageSize) {
			pages = append(pages, a/checkpoint.PageSize)
		}
	}
	zapped := map[uint32][]uint64{} // page indexes by object
	for k := range t.zapped {
		zapped[k.object] = append(zapped[k.object], k.index)
	}
	for object, indexes := range zapped {
		slices.Sort(indexes)
		for _, m := range t.views().list[object] {
			if m.private() {
				continue
			}
			first := m.Offset / checkpoint.PageSize
			from, _ := slices.BinarySearch(indexes, first)
			for _, index := range indexes[from:] {
				if index-first >= (m.End-m.Start)/checkpoint.PageSize {
					break
				}
				pages = append(pages, m.Start/checkpoint.PageSize+index-first)
			}
		}
	}
	return rangesOf(pages)
}

// refilled returns what the pages that MADV_DONTNEED has dropped from a
// private mapping read as now, where the file is no longer what it was when its
// pages were kept.
func (t *tracer) refilled() []checkpoint.MemWrite {
	if t.call.nr != unix.SYS_MADVISE {
		return nil
	}
	return t.pagesNow(t.call.refill)
}
