//go:build linux && amd64

package record

import (
	"maps"
	"sort"

	"vplay/checkpoint"
)

// What the recorder says of memory at a forced end, by which replay finds it.

// pendingHash is the hash of a forced end as far as it is known at the cut. It is
// the additive hash of what the interval has changed, and depends on contents alone,
// not on what was written: replay may know of a store that changed nothing, or not.
// Two kinds of memory take part:
//
//   - Private pages: what the dirty ones hold now, minus what the pages held at the
//     start that are dirty now, or were unmapped, dropped or replaced.
//   - Shared pages, at each address that they are mapped at now: what they hold, minus
//     what the page of the object held at the start, whatever was mapped there
//     then. What is not mapped any more takes no part.
//
// Clean pages of files take no part.
//
// Private pages are nearly all of it, and the shadows at both ends hold them as they
// are. They are read when the recording is written, which reads them anyway: a program
// that does not crash never pays for it.
type pendingHash struct {
	sum  uint64
	now  ranges // private pages whose content at the end is still to be added
	then ranges // private pages whose content at the start is still to be subtracted
}

// beginHash returns what the hash of an interval that ends with memory m is made of.
func (sp *space) beginHash(m *snapshot, cur *interval) *pendingHash {
	sum, shared := sp.sharedHash(m, cur)
	logged := sp.logged
	cur.jumps = sp.onlyJumps(m.dirty)
	dirty := m.dirty.minus(cur.jumps)
	written := dirty.union(logged)
	touched := written.union(m.gone).minus(logged)
	h := &pendingHash{sum: sum, now: dirty.minus(logged), then: touched.intersect(cur.present)}
	_ = eachPage(sp.reader(), logged, func(addr uint64, page []byte) error {
		if at := sp.maps.at(addr); at == nil || at.private() {
			h.sum += checkpoint.HashPage(addr, page)
		} else if !shared[addr] { // a call has written to its file
			h.sum += sp.sharedChange(cur, addr, page)
		}
		return nil
	})
	b := make([]byte, checkpoint.PageSize)
	_ = logged.union(touched.minus(cur.present).intersect(sp.heldElsewhere(cur))).each(func(page uint64) error {
		addr := page * checkpoint.PageSize
		switch {
		case cur.isShared(addr):
		case sp.session.streams() && cur.present.has(page):
			h.sum -= sp.startSums[page]
		case sp.startContent(cur, addr, b):
			h.sum -= checkpoint.HashPage(addr, b)
		}
		return nil
	})
	for a, p := range m.copies { // private pages that no fork holds
		if at := sp.maps.at(a); !m.changed.has(a/checkpoint.PageSize) && (at == nil || at.private()) {
			h.sum += checkpoint.HashPage(a, p)
		}
	}
	for a, p := range sp.sharedNow {
		page := a / checkpoint.PageSize
		if isStill := m.changed.has(page) && !sp.moved.has(page); !isStill && !written.has(page) && !cur.isShared(a) {
			h.sum -= checkpoint.HashPage(a, p)
		}
	}
	return h
}

// heldElsewhere returns the pages that may have had content at the interval's start
// without being private pages of the program: those of mapped files, and copied ones.
func (sp *space) heldElsewhere(cur *interval) ranges {
	var files ranges
	for i := range cur.rec.Maps {
		if m := &cur.rec.Maps[i]; m.Object != 0 {
			files.add(m.Start/checkpoint.PageSize, m.End/checkpoint.PageSize)
		}
	}
	return files.union(pagesOf(sp.sharedNow))
}

// add adds n pages from addr on as they are at the end, all with one content. h may be nil.
func (h *pendingHash) add(addr, n uint64, page []byte) {
	if h == nil {
		return
	}
	first := addr / checkpoint.PageSize
	h.now.within(first, first+n, func(lo, hi uint64) {
		h.sum += checkpoint.HashPages(lo*checkpoint.PageSize, hi-lo, page)
	})
}

// addSum adds a page as it is at the end, of which the hash is known. h may be nil.
func (h *pendingHash) addSum(page, sum uint64) {
	if h != nil && h.now.has(page) {
		h.sum += sum
	}
}

// noteStart takes note of what the private pages are at the start of an interval with memory m, which are stored.
func (sp *space) noteStart(m *snapshot) {
	if sp.startSums == nil {
		sp.startSums = map[uint64]uint64{}
	}
	_ = m.gone.each(func(page uint64) error {
		delete(sp.startSums, page)
		return nil
	})
	maps.Copy(sp.startSums, m.sums)
}

// subtractStart subtracts the pages at the start of the current interval, where the file is written all along.
// h may be nil.
func (sp *space) subtractStart(h *pendingHash) {
	if h == nil {
		return
	}
	_ = h.then.each(func(page uint64) error {
		h.sum -= sp.startSums[page]
		return nil
	})
	h.then = nil
}

// finishHash completes the hash of a forced end, to which the pages of its end have
// been added.
func (l *interval) finishHash() {
	h := l.hash
	if h == nil {
		return
	}
	_ = eachRun(l.src, h.then, func(addr, n uint64, page []byte) error {
		h.sum -= checkpoint.HashPages(addr, n, page)
		return nil
	})
	l.rec.End.MemHash, l.hash = h.sum, nil
}

// sharedHash is the part of the hash for the shared pages that were copied, and the
// addresses that it is for.
func (sp *space) sharedHash(m *snapshot, cur *interval) (sum uint64, counted map[uint64]bool) {
	counted = map[uint64]bool{}
	for a, p := range m.copies {
		if at := sp.maps.at(a); m.changed.has(a/checkpoint.PageSize) || at == nil || at.private() {
			continue
		}
		for _, at := range sp.aliases(a) {
			if !counted[at] {
				counted[at] = true
				sum += sp.sharedChange(cur, at, p)
			}
		}
	}
	return sum, counted
}

// sharedChange is what the shared page at addr, which holds p, adds to the hash. A
// page of which nothing is known at the start was zero, unless it is one that the program
// can only read: of large files not all pages are taken when they are mapped.
func (sp *space) sharedChange(cur *interval, addr uint64, p []byte) uint64 {
	if base := sp.objectAtStart(cur, sp.keyAt(addr)); base != nil {
		if &base[0] == &p[0] { // what has not changed is kept once (takeKnown)
			return 0
		}
		return checkpoint.HashPage(addr, p) - checkpoint.HashPage(addr, base)
	}
	if m := sp.maps.at(addr); m != nil && sp.onlyReads(m) {
		return 0
	}
	return checkpoint.HashPage(addr, p)
}

// aliases returns the addresses of the shared page at addr, it included: a mapping
// that was not touched has no page in the page tables and yet has its content.
func (sp *space) aliases(addr uint64) []uint64 {
	out := []uint64{addr}
	m := sp.maps.at(addr)
	if m == nil || m.Object == 0 || m.private() {
		return out
	}
	offset := addr - m.Start + m.Offset
	sp.views().sharing(m.Object).At(offset, func(o *mapping) bool {
		if at := o.Start + offset - o.Offset; at != addr {
			out = append(out, at)
		}
		return true
	})
	return out
}

// objectAtStart returns what a page of an object had when the interval began: as
// seen at another address then, or when it was first mapped. nil is not known.
func (sp *space) objectAtStart(cur *interval, key pageKey) []byte {
	offset := key.index * checkpoint.PageSize
	found, ok := []byte(nil), false
	cur.viewsAtStart(key.object).At(offset, func(m *checkpoint.Mapping) bool {
		found, ok = sp.sharedNow[m.Start+offset-m.Offset]
		return !ok
	})
	if ok {
		return found
	}
	return sp.objects.base[key]
}

// keyIn returns which page of which object a mapping shows at addr.
func keyIn(m *checkpoint.Mapping, addr uint64) pageKey {
	return pageKey{m.Object, (addr - m.Start + m.Offset) / checkpoint.PageSize}
}

// keyAt returns which page of which object is mapped at addr.
func (sp *space) keyAt(addr uint64) pageKey {
	m := sp.maps.at(addr)
	if m == nil || m.Object == 0 {
		return pageKey{}
	}
	return keyIn(&m.Mapping, addr)
}

// keyAt returns which page of which object was mapped at addr when the interval
// began.
func (l *interval) keyAt(addr uint64) pageKey {
	m := mappedAt(l.rec.Maps, addr)
	if m == nil || m.Object == 0 {
		return pageKey{}
	}
	return keyIn(m, addr)
}

// mappedAt returns the one of sorted ranges that holds addr, or nil.
func mappedAt(maps []checkpoint.Mapping, addr uint64) *checkpoint.Mapping {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > addr })
	if i == len(maps) || maps[i].Start > addr {
		return nil
	}
	return &maps[i]
}

// isShared reports whether addr was in a shared mapping when the interval began.
func (l *interval) isShared(addr uint64) bool {
	m := mappedAt(l.rec.Maps, addr)
	return m != nil && m.Flags&checkpoint.MapShared != 0
}
