//go:build linux && amd64

package record

import (
	"errors"
	"slices"
	"time"

	"vplay/checkpoint"
)

// The ring of intervals that wait for a crash, bounded by time and bytes, and how they are
// written when it comes.

// evict drops the oldest intervals while the ring is over its bounds.
func (g *group) evict(now time.Duration) {
	entries := make([]ringEntry, len(g.ring))
	for i, iv := range g.ring {
		entries[i] = ringEntry{iv.bytes, iv.rec.CPUStart}
	}
	keep := time.Duration(g.session.opt.KeepSeconds * float64(time.Second))
	room := g.session.opt.RingBytes / int64(max(len(g.session.groups), 1)) // each group has its share
	for range firstKept(entries, now, keep, room) {
		g.ring = g.session.dropOldest(g.ring)
	}
	g.session.logMemory.trim()
}

// dropOldest drops the first interval of a ring, which has a second, and returns the rest.
func (s *session) dropOldest(ring []*interval) []*interval {
	first, second := ring[0], ring[1]
	for a, p := range first.extra {
		if _, ok := second.extra[a]; !ok && !second.isGone(a) {
			second.extra[a] = p
		}
	}
	first.close()
	s.dropLog(first)
	return ring[1:]
}

// isGone reports whether a copied page of the interval before is not part of
// this one: its range is no longer mapped.
func (l *interval) isGone(addr uint64) bool { return mappedAt(l.rec.Maps, addr) == nil }

// ErrLost says that the system has killed what holds the program's past.
var ErrLost = errors.New("memory ran short, and the system took what held the program's past")

// dropLost drops the intervals of a ring whose start is lost, and those before them, and returns the others: shadows are
// the first that the system kills when memory runs short.
func (s *session) dropLost(ring []*interval) ([]*interval, error) {
	newest := -1
	for i := range ring {
		if isLost(ring[i].src) {
			newest = i
		}
	}
	if newest == len(ring)-1 {
		return ring, ErrLost
	}
	for range newest + 1 {
		ring = s.dropOldest(ring)
		s.noteOnce("memory ran short: what was recorded earlier is lost")
	}
	return ring, nil
}

// isLost reports whether r is a shadow that was killed.
func isLost(r pageReader) bool {
	s, ok := r.(*shadow)
	return ok && (s.reaped || stateOf(s.pid) != 't')
}

// writeRing writes the intervals of a ring, behind which memory is m. The pages at the end of each are
// those that the next one's table changes.
func (g *group) writeRing(ring []*interval, m *snapshot) error {
	next, later := without(m.refs, m.changed), m.dirty
	for i := len(ring) - 1; i >= 0; i-- {
		if err := errors.Join(g.session.out.check(), g.session.ctx.Err()); err != nil {
			return err
		}
		iv := ring[i]
		if len(iv.rec.End.Pages) == 0 && iv.rec.End.Kind != checkpoint.EndGap && !iv.noPages {
			iv.rec.End.Pages = next
		}
		set := iv.delta
		iv.rec.Delta = i > 0
		if i == 0 {
			set = iv.present
		}
		var before *pendingHash // of the end that is this start
		if i > 0 {
			before = ring[i-1].hash
		}
		refs, err := g.storeFrom(iv, m.startOf(iv, later), set, before)
		if err != nil {
			return err
		}
		if isLost(iv.src) { // meanwhile, and it may have been read as empty
			return ErrLost
		}
		iv.finishHash()
		later = later.union(iv.delta)
		next = without(refs, iv.views)
		iv.rec.Pages = refs // which next has, too
		if i > 0 && len(iv.removed) > 0 {
			iv.rec.Pages = slices.Concat(refs, removedEntries(iv.removed))
			sortEntries(iv.rec.Pages)
		}
		if err := g.writeInterval(iv); err != nil {
			return err
		}
		if g.session.opt.Progress != nil {
			g.session.opt.Progress(len(ring)-i, len(ring))
		}
	}
	return nil
}

// storeFrom writes pages of an interval's start, which r reads, and adds them to the hash of the end
// before, if that has one.
func (g *group) storeFrom(iv *interval, r pageReader, set ranges, before *pendingHash) ([]checkpoint.PageEntry, error) {
	refs, err := g.storePages(r, set, before.add)
	if err != nil {
		return nil, err
	}
	for a, p := range iv.extra {
		ref, err := g.session.out.page(p)
		if err != nil {
			return nil, err
		}
		refs = append(refs, checkpoint.PageEntry{Addr: a, Ref: ref})
	}
	sortEntries(refs)
	return refs, nil
}

// storePages writes the pages of set that r has, calls note for each run of n pages with one content, and returns
// their rows.
func (g *group) storePages(r pageReader, set ranges, note func(addr, n uint64, page []byte)) ([]checkpoint.PageEntry, error) {
	refs := make([]checkpoint.PageEntry, 0, set.count())
	err := eachRun(r, set, func(addr, n uint64, page []byte) error {
		note(addr, n, page)
		ref, err := g.session.out.page(page)
		for ; n > 0; n-- {
			refs = append(refs, checkpoint.PageEntry{Addr: addr, Ref: ref})
			addr += checkpoint.PageSize
		}
		return err
	})
	return refs, err
}
