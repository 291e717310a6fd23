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

// keepFilePages takes the pages of files that a scan of the page tables found and that are not
// kept yet.
func (sp *space) keepFilePages(list []filePage) error {
	var v *fileVersion
	of := uint32(0)    // the object whose version v is
	var run []filePage // of it, one behind the other in memory
	keep := func() error {
		defer func() { run = run[:0] }()
		return sp.keepRun(v, run)
	}
	for _, p := range list {
		k := pageKey{p.object, p.index}
		if sp.objects.done[k] {
			continue
		}
		n := len(run)
		if n == mostAtOnce || n > 0 && (p.object != of || p.addr != run[n-1].addr+checkpoint.PageSize) {
			if err := keep(); err != nil {
				return err
			}
		}
		if of != p.object {
			of, v = p.object, sp.version(sp.maps.at(p.addr))
		}
		known, err := sp.objects.keepKnown(v, k)
		if err != nil {
			return err
		}
		if !known {
			run = append(run, p)
		}
	}
	return keep()
}

// mostAtOnce is how many pages are read at once: most of what it takes to read a page alone is the system call.
const mostAtOnce = 64

// keepRun takes pages of an object, of version v unless that is nil, that follow each other in memory. Those that cannot be
// read are left out.
func (sp *space) keepRun(v *fileVersion, run []filePage) error {
	for len(run) > 0 {
		b := make([]byte, len(run)*checkpoint.PageSize)
		n := sp.readMem(run[0].addr, b) / checkpoint.PageSize
		for _, p := range run[:n] {
			page := b[:checkpoint.PageSize:checkpoint.PageSize]
			b = b[checkpoint.PageSize:]
			k := pageKey{p.object, p.index}
			if sp.objects.done[k] { // the run has it twice
				continue
			}
			if err := sp.objects.keepRead(v, k, page); err != nil {
				return err
			}
		}
		run = run[min(n+1, len(run)):]
	}
	return nil
}

// keepReadShared takes the pages of shared mappings that the program can only
// read: of large objects not all pages were taken when they were mapped. Those of holes are to be kept before: there the
// program, which may have been allowed to write once, may have stored.
func (sp *space) keepReadShared(set ranges) error {
	return set.each(func(page uint64) error {
		addr := page * checkpoint.PageSize
		m := sp.maps.at(addr)
		if m == nil || !sp.onlyReads(m) {
			return nil
		}
		return sp.keepFilePages([]filePage{{addr, m.Object, keyIn(&m.Mapping, addr).index}})
	})
}

// onlyReads reports whether what a mapping shows is an object that nobody has changed and
// that the program cannot write to there.
func (sp *space) onlyReads(m *mapping) bool {
	return m.Prot&checkpoint.ProtWrite == 0 && m.Object != 0 && !sp.objects.at(m.Object).Changed
}

// captureFilePages takes the pages of files in [start,end) before a call
// unmaps, replaces or drops them.
func (sp *space) captureFilePages(c *call, start, end uint64) error {
	if start >= end {
		return nil
	}
	if sp.maps.anyIn(start, end, isShared) {
		sp.noteStores() // what leaves the page tables is not found there any more
	}
	for _, m := range sp.maps.overlap(start, end) {
		if m.Object == 0 || sp.objects.at(m.Object).Kind == checkpoint.ObjectSpecial {
			continue
		}
		m.Offset += max(m.Start, start) - m.Start
		m.Start, m.End = max(m.Start, start), min(m.End, end)
		scan, err := sp.scanPages([]mapping{m})
		if err != nil {
			return err
		}
		if err := sp.keepFilePages(scan.file); err != nil {
			return err
		}
		if m.Prot&checkpoint.ProtExec != 0 { // of data there may be much, and often
			if err := sp.keepWhole([]mapping{m}, scan.private); err != nil {
				return err
			}
		}
		if err := errors.Join(sp.keepHoles(scan.shared), sp.keepReadShared(scan.shared)); err != nil {
			return err
		}
		sp.noteUnmapped(&m, scan.shared)
		if err := sp.keepOriginals([]mapping{m}, scan.private); err != nil {
			return err
		}
		if m.private() && sp.objects.at(m.Object).Changed {
			c.refill = c.refill.union(scan.private).union(scan.changed) // of these the log may have what was written to the file
		}
	}
	return nil
}

// noteZapped notes pages of a shared mapping that leave the page tables while the
// object keeps them.
func (sp *space) noteUnmapped(m *mapping, set ranges) {
	_ = set.each(func(page uint64) error {
		if sp.unmapped == nil {
			sp.unmapped = map[pageKey]struct{}{}
		}
		sp.unmapped[keyIn(&m.Mapping, page*checkpoint.PageSize)] = struct{}{}
		return nil
	})
}

// hiddenShared returns pages of shared mappings that are in no page table any
// more, because the program or the kernel has dropped them there, and that still
// hold what was stored.
func (sp *space) hiddenShared(there ranges) ranges {
	var pages []uint64
	for a := range sp.sharedNow {
		if m := sp.maps.at(a); m != nil && !m.private() && !there.has(a/checkpoint.PageSize) {
			pages = append(pages, a/checkpoint.PageSize)
		}
	}
	zapped := map[uint32][]uint64{} // page indexes by object
	for k := range sp.unmapped {
		zapped[k.object] = append(zapped[k.object], k.index)
	}
	for object, indexes := range zapped {
		slices.Sort(indexes)
		for _, m := range sp.views().list[object] {
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
func (sp *space) refilled(c *call) []checkpoint.MemWrite {
	if c.nr != unix.SYS_MADVISE {
		return nil
	}
	return sp.pagesNow(c.refill)
}
