//go:build linux && amd64

package record

import (
	"sort"

	"vplay/checkpoint"
)

// What the recorder says of memory at a forced end, by which replay finds it.

// memHash is the additive hash of what the interval has changed: over the
// dirty pages, the hash of their content now minus that of their content at
// the start (zero when they were not mapped); over the private pages of the
// start that were unmapped, dropped or replaced and not written again, minus
// the latter; over copied shared pages the difference. Clean pages of files
// take no part.
func (t *tracer) memHash(m *moment, cur *live) uint64 {
	var sum uint64
	b := make([]byte, checkpoint.PageSize)
	written := m.dirty
	for a := range t.logged {
		if p := a / checkpoint.PageSize; !written.has(p) {
			written = written.union(ranges{{p, p + 1}})
		}
	}
	_ = written.union(m.gone).each(func(page uint64) error {
		addr := page * checkpoint.PageSize
		if old, ok := t.logged[addr]; ok {
			if old != nil {
				sum -= checkpoint.HashPage(addr, old)
			}
		} else if p, ok := t.sharedNow[addr]; ok {
			sum -= checkpoint.HashPage(addr, p)
		} else if t.startContent(cur, addr, b) {
			sum -= checkpoint.HashPage(addr, b)
		}
		return nil
	})
	_ = eachPage(memReader{t.mem}, written, func(addr uint64, page []byte) error {
		sum += checkpoint.HashPage(addr, page)
		return nil
	})
	counted := map[uint64]bool{}
	for a, p := range m.copies {
		if m.changed.has(a / checkpoint.PageSize) {
			continue
		}
		for _, at := range t.aliases(a) {
			if _, copied := m.copies[at]; at == a || !copied && !counted[at] {
				counted[at] = true
				sum += t.copyHash(m, cur, at, p)
			}
		}
	}
	for a, p := range t.sharedNow {
		if page := a / checkpoint.PageSize; !m.changed.has(page) && !written.has(page) {
			sum -= checkpoint.HashPage(a, p)
		}
	}
	return sum
}

// copyHash is what a copied page adds to the hash. One that was not there at
// the start counts only when it is not what its object had: it was written, and
// what was at its address at the start counts against it, unless memHash has
// that already.
func (t *tracer) copyHash(m *moment, cur *live, addr uint64, p []byte) uint64 {
	now := checkpoint.HashPage(addr, p)
	if _, ok := t.sharedNow[addr]; ok {
		return now
	}
	key := t.keyAt(addr)
	base := t.objectAtStart(cur, key)
	switch {
	case base == nil:
		return now
	case string(base) == string(p):
		return 0
	case m.gone.has(addr / checkpoint.PageSize):
		return now
	case cur.keyAt(addr) == key: // a page of a file that nobody had touched
		return now - checkpoint.HashPage(addr, base)
	}
	b := make([]byte, checkpoint.PageSize)
	if t.startContent(cur, addr, b) {
		now -= checkpoint.HashPage(addr, b)
	}
	return now
}

// aliases returns the addresses of the shared page at addr, it included: a mapping
// that was not touched has no page in the page tables and yet has its content.
func (t *tracer) aliases(addr uint64) []uint64 {
	out := []uint64{addr}
	m := t.maps.at(addr)
	if m == nil || m.Object == 0 || m.private() {
		return out
	}
	offset := addr - m.Start + m.Offset
	for o := range t.maps.tree.From(0) {
		if at := o.Start + offset - o.Offset; o.Object == m.Object && !o.private() && offset >= o.Offset && at < o.End && at != addr {
			out = append(out, at)
		}
	}
	return out
}

// objectAtStart returns what a page of an object had when the interval began: as
// seen at another address then, or when it was first mapped. nil is not known.
func (t *tracer) objectAtStart(cur *live, key pageKey) []byte {
	for i := range cur.rec.Maps {
		m := &cur.rec.Maps[i]
		at := m.Start + key.index*checkpoint.PageSize - m.Offset
		if m.Object != key.object || key.index*checkpoint.PageSize < m.Offset || at >= m.End {
			continue
		}
		if p, ok := t.sharedNow[at]; ok {
			return p
		}
	}
	return t.sharedBase[key]
}

// keyAt returns which page of which object is mapped at addr.
func (t *tracer) keyAt(addr uint64) pageKey {
	m := t.maps.at(addr)
	if m == nil || m.Object == 0 {
		return pageKey{}
	}
	return pageKey{m.Object, (addr - m.Start + m.Offset) / checkpoint.PageSize}
}

// keyAt returns which page of which object was mapped at addr when the interval
// began.
func (l *live) keyAt(addr uint64) pageKey {
	m := mappedAt(l.rec.Maps, addr)
	if m == nil || m.Object == 0 {
		return pageKey{}
	}
	return pageKey{m.Object, (addr - m.Start + m.Offset) / checkpoint.PageSize}
}

// mappedAt returns the one of sorted ranges that holds addr, or nil.
func mappedAt(maps []checkpoint.Mapping, addr uint64) *checkpoint.Mapping {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > addr })
	if i == len(maps) || maps[i].Start > addr {
		return nil
	}
	return &maps[i]
}
