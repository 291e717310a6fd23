//go:build linux && amd64

package record

import (
	"errors"
	"time"

	"vplay/checkpoint"
)

// What the memory of a stopped program is where one interval ends and the next begins: which
// pages there are, which of them changed, and copies of those that no shadow will hold.

// snapshot is the memory of a stopped program, as far as it is not left to a shadow.
type snapshot struct {
	space   *space
	began   time.Duration // cpuSpent when the recorder began
	private ranges
	dirty   ranges            // changed since the last shadow
	gone    ranges            // private pages of the interval's start that are no longer there
	copies  map[uint64][]byte // shared pages, and those a fork would not hold
	changed ranges            // those of copies that belong to changed files
	refs    []checkpoint.PageEntry
	stored  bool
	sums    map[uint64]uint64 // of the dirty pages, by page: HashPage, once they are stored for a file that is written all along
	helper  *shadow           // shares the program's memory, and reads it for this; nil where there is none
}

// reader returns what reads the memory.
func (m *snapshot) reader() pageReader {
	if m.helper == nil {
		return m.space.reader()
	}
	return m.helper
}

// takeSnapshot looks at the program's memory.
func (sp *space) takeSnapshot() (*snapshot, error) {
	began := sp.group.cpuSpent()
	defer sp.group.spend(&sp.session.border.scan, began)
	if err := sp.ownCode(); err != nil {
		return nil, err
	}
	list, err := sp.kernelMaps()
	if err != nil {
		return nil, err
	}
	if d := sp.maps.differs(list); d != "" {
		sp.session.result.Stats.MapDrift++
		sp.session.result.Stats.MapDriftNote = d
		sp.session.log.Debug().Str("what", d).Msg("map model corrected")
	}
	sp.maps.adopt(list)
	last := sp.group.cur
	if last == nil {
		last = sp.group.prev
	}
	c, err := sp.scanSince(sp.maps.all(), last)
	if err != nil {
		return nil, err
	}
	c.shared = c.shared.union(sp.hiddenShared(c.shared)).union(sp.storedByAny())
	if err := sp.keepFilePages(c.file); err != nil {
		return nil, err
	}
	if err := errors.Join(sp.keepHoles(c.shared), sp.keepReadShared(c.shared)); err != nil {
		return nil, err
	}
	if err := sp.keepOriginals(sp.maps.all(), c.private); err != nil {
		return nil, err
	}
	m := &snapshot{space: sp, began: began, private: c.private, dirty: c.dirty, changed: c.changed, copies: map[uint64][]byte{}}
	for _, set := range []ranges{sp.takeKnown(c.shared, m.copies), c.unforked, c.changed} {
		cp, err := copyPages(sp.reader(), set)
		if err != nil {
			return nil, err
		}
		for a, b := range cp.pages {
			m.copies[a] = b
		}
	}
	if sp.outsideFresh {
		// What a child has stored since the call's exit belongs to the next one.
		for a, p := range sp.outside {
			if _, ok := m.copies[a]; ok {
				m.copies[a] = p
			}
		}
	}
	if last == nil {
		m.dirty = m.private
		return m, nil
	}
	m.gone = last.present.minus(m.private)
	if cp, ok := last.src.(*copySource); ok {
		m.dirty = sp.compare(cp, m.private)
	}
	if sp.session.opt.checkClean && !isLost(last.src) {
		defer func() { sp.verifyClean(m, last) }()
	}
	m.dirty = m.dirty.union(sp.dirtyBeforeFork).union(sp.moved).intersect(m.private).union(m.private.minus(last.present))
	return m, nil
}

// verifyClean counts clean pages that are not what they were.
func (sp *space) verifyClean(m *snapshot, last *interval) {
	now, was := make([]byte, checkpoint.PageSize), make([]byte, checkpoint.PageSize)
	_ = m.private.minus(m.dirty).each(func(page uint64) error {
		addr := page * checkpoint.PageSize
		if sp.readMem(addr, now) != len(now) || last.src.readPage(addr, was) != nil || string(now) != string(was) {
			sp.session.result.Stats.MissedPages++
			sp.session.log.Error().Uint64("addr", addr).Msg("page changed without being dirty")
		}
		return nil
	})
}

// compare returns the pages that differ from their copies.
func (sp *space) compare(cp *copySource, set ranges) ranges {
	var out ranges
	b := make([]byte, checkpoint.PageSize)
	_ = set.each(func(page uint64) error {
		old, ok := cp.pages[page*checkpoint.PageSize]
		if !ok || sp.readMem(page*checkpoint.PageSize, b) != len(b) || string(old) != string(b) {
			out.add(page, page+1)
		}
		return nil
	})
	return out
}

// changedCopies returns the copied pages that differ from those before.
func (sp *space) changedCopies(m *snapshot) map[uint64][]byte {
	out := map[uint64][]byte{}
	for a, b := range m.copies {
		if old, ok := sp.sharedNow[a]; !ok || string(old) != string(b) {
			out[a] = b
		}
	}
	return out
}

// removedFrom returns the pages that the next table does not have any more.
func (sp *space) removedFrom(m *snapshot) ranges {
	out := m.gone
	for a := range m.copies {
		p := a / checkpoint.PageSize
		if out.has(p) {
			out = out.minus(ranges{{p, p + 1}})
		}
	}
	for a := range sp.sharedNow {
		p := a / checkpoint.PageSize
		if _, ok := m.copies[a]; !ok && !m.private.has(p) {
			out = out.union(ranges{{p, p + 1}})
		}
	}
	return out
}

// startContent reads a page as it was at the interval's start; false when it
// was not mapped, or was zero because nobody had touched it. Replay must find the
// same: a page of a file that was mapped there and never touched is kept now.
func (sp *space) startContent(cur *interval, addr uint64, b []byte) bool {
	present := cur.present.has(addr / checkpoint.PageSize)
	if m := mappedAt(cur.rec.Maps, addr); m == nil || !present && m.Object == 0 && m.Flags&checkpoint.MapShared == 0 {
		return false
	}
	if known, ok := sp.sharedNow[addr]; ok {
		copy(b, known)
		return true
	}
	key := cur.keyAt(addr)
	if known := sp.objects.base[key]; known != nil && !present {
		copy(b, known)
		return true
	}
	if cp, ok := cur.src.(*copySource); ok && !cp.has(addr) || isLost(cur.src) && !present {
		if !sp.fileContent(key, b) {
			return false
		}
	} else if cur.src.readPage(addr, b) != nil {
		return false
	}
	if present {
		return true
	}
	if key.object != 0 { // one that has changed meanwhile nobody has looked at: replay needs what is subtracted here
		if err := sp.objects.keep(key, append([]byte(nil), b...)); err != nil {
			sp.session.log.Error().Err(err).Msg("page of a file")
		}
	}
	return true
}
