//go:build linux && amd64

package record

import (
	"errors"
	"time"
)

// The ring of intervals that wait for a crash, bounded by time and bytes. How they are
// written when it comes is in past.go.

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

// dropLost drops the intervals of a ring whose start is lost, or what they have read, and those before them, and returns the others:
// shadows are the first that the system kills when memory runs short.
func (s *session) dropLost(ring []*interval) ([]*interval, error) {
	newest := -1
	for i := range ring {
		if ring[i].isLost() {
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
