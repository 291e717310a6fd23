package slice

import (
	"math/bits"
	"slices"

	"vplay/replay/analysis/dataflow"
	"vplay/replay/mem"
)

// The locations whose values are still to be explained, as the walk goes back: bytes of
// memory, and parts of registers of each thread. Each has the set of the vertices that need
// it, by a number (needs.go), so that the walk knows who the instruction it meets is for.

// livePage is a page of which bytes are live.
type livePage struct {
	live  [mem.PageSize / 64]uint64
	count int
	needs [mem.PageSize]uint32
}

// liveMemory is the live bytes of memory.
type liveMemory struct {
	pages map[uint64]*livePage
	cache [cachedPages]pageEntry
	count int // bytes
}

// cachedPages is how many pages are found without the map; a power of two.
const cachedPages = 1 << 10

// pageEntry says what the map has of a page, nil included.
type pageEntry struct {
	base uint64
	page *livePage
}

// maxPages bounds the pages that have live bytes, to some 700 MB.
const maxPages = 40_000

func newLiveMemory() *liveMemory {
	m := &liveMemory{pages: map[uint64]*livePage{}}
	for i := range m.cache {
		m.cache[i].base = 1 // no page begins there
	}
	return m
}

// page returns the page of a, nil when none of its bytes was ever live.
func (m *liveMemory) page(a uint64) *livePage {
	base := a &^ (mem.PageSize - 1)
	e := &m.cache[base/mem.PageSize%cachedPages]
	if e.base != base {
		*e = pageEntry{base, m.pages[base]}
	}
	return e.page
}

// window returns the live ones of the n bytes at a, at most 64, a bit each.
func (m *liveMemory) window(a uint64, n int) uint64 {
	off := a % mem.PageSize
	p := m.page(a)
	if off+uint64(n) > mem.PageSize {
		first := int(mem.PageSize - off)
		return m.window(a, first) | m.window(a+uint64(first), n-first)<<first
	}
	if p == nil || p.count == 0 {
		return 0
	}
	w := p.live[off/64] >> (off % 64)
	if off%64+uint64(n) > 64 {
		w |= p.live[off/64+1] << (64 - off%64)
	}
	return w & (1<<n - 1)
}

// take makes the bytes of mask at a not live and calls f with what each was needed by.
func (m *liveMemory) take(a, mask uint64, f func(need uint32)) {
	for last := ^uint32(0); mask != 0; mask &= mask - 1 {
		b := a + uint64(bits.TrailingZeros64(mask))
		p, off := m.page(b), b%mem.PageSize
		if p == nil || p.live[off/64]>>(off%64)&1 == 0 {
			continue
		}
		p.live[off/64] &^= 1 << (off % 64)
		p.count--
		m.count--
		if n := p.needs[off]; n != last {
			last = n
			f(n)
		}
	}
}

// put makes the bytes of mask at a live for need. It reports false when too many pages have
// live bytes.
func (m *liveMemory) put(a, mask uint64, need uint32, s *needSets) bool {
	for ; mask != 0; mask &= mask - 1 {
		b := a + uint64(bits.TrailingZeros64(mask))
		p, off := m.page(b), b%mem.PageSize
		if p == nil {
			if len(m.pages) >= maxPages {
				return false
			}
			p = &livePage{}
			base := b &^ (mem.PageSize - 1)
			m.pages[base] = p
			m.cache[base/mem.PageSize%cachedPages] = pageEntry{base, p}
		}
		if p.live[off/64]>>(off%64)&1 == 0 {
			p.live[off/64] |= 1 << (off % 64)
			p.needs[off] = need
			p.count++
			m.count++
		} else if p.needs[off] != need {
			p.needs[off] = s.union(p.needs[off], need)
		}
	}
	return true
}

// within calls f for the live bytes of [from, to), by address, up to 64 at once with a
// mask. It may take them.
func (m *liveMemory) within(from, to uint64, f func(a, mask uint64)) {
	var bases []uint64
	for base, p := range m.pages {
		if p.count > 0 && base < to && base+mem.PageSize > from {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	for _, base := range bases {
		for i, w := range m.pages[base].live {
			at := base + uint64(i)*64
			if w == 0 || at+64 <= from || at >= to {
				continue
			}
			if at < from {
				w &= ^uint64(0) << (from - at)
			}
			if to-at < 64 {
				w &= 1<<(to-at) - 1
			}
			if w != 0 {
				f(at, w)
			}
		}
	}
}

// liveRegs is the live parts of the registers of a thread.
type liveRegs struct {
	set dataflow.RegSet
	sum uint64 // its summary
	// Most often all live parts of a piece are needed by the same. Then the piece's bit is set in one, and the need stands at
	// its first part alone.
	one   uint64
	needs [dataflow.RegParts]uint32

	calls   []activation // that the thread is in, where control dependences are followed
	next    uint64       // the address of the instruction that it executed behind the present one
	brought []uint32     // needs of what came from a system call whose instruction was not met yet
}

// need returns what part n, which is live, is needed by.
func (r *liveRegs) need(n int) uint32 {
	if r.one>>(n/8)&1 != 0 {
		n &^= 7
	}
	return r.needs[n]
}

// take makes the parts in s not live and calls f with what each was needed by.
func (r *liveRegs) take(s dataflow.RegSet, f func(need uint32)) {
	s.Pieces(func(p dataflow.Piece) { r.takePiece(p, f) })
}

// takePiece makes parts not live, calls f with what each was needed by, and returns which of them were live.
func (r *liveRegs) takePiece(p dataflow.Piece, f func(need uint32)) uint8 {
	word, shift := &r.set[p.N/8], p.N%8*8
	was := uint8(*word >> shift)
	hit := was & p.Mask
	if hit == 0 {
		return 0
	}
	*word &^= uint64(hit) << shift
	if was == hit {
		r.sum &^= 1 << p.N
	}
	needs := r.needs[int(p.N)*8:][:8]
	if r.one>>p.N&1 != 0 {
		f(needs[0])
		return hit
	}
	last := ^uint32(0)
	for m := hit; m != 0; m &= m - 1 {
		if n := needs[bits.TrailingZeros8(m)]; n != last {
			last = n
			f(n)
		}
	}
	return hit
}

// put makes the parts in s live for need.
func (r *liveRegs) put(s dataflow.RegSet, need uint32, sets *needSets) {
	s.Pieces(func(p dataflow.Piece) { r.putPiece(p, need, sets) })
}

// putPiece makes parts live for need. There is at least one.
func (r *liveRegs) putPiece(p dataflow.Piece, need uint32, sets *needSets) {
	word, shift := &r.set[p.N/8], p.N%8*8
	was := uint8(*word >> shift)
	*word |= uint64(p.Mask) << shift
	r.sum |= 1 << p.N
	needs := r.needs[int(p.N)*8:][:8]
	switch {
	case was == 0:
		r.one |= 1 << p.N
		needs[0] = need
		return
	case r.one>>p.N&1 == 0:
	case needs[0] == need:
		return
	case was == p.Mask:
		needs[0] = sets.union(needs[0], need)
		return
	default: // from here on each part has its own
		r.one &^= 1 << p.N
		for m := was &^ 1; m != 0; m &= m - 1 {
			needs[bits.TrailingZeros8(m)] = needs[0]
		}
	}
	for m := p.Mask; m != 0; m &= m - 1 {
		b := bits.TrailingZeros8(m)
		if was>>b&1 == 0 {
			needs[b] = need
		} else if needs[b] != need {
			needs[b] = sets.union(needs[b], need)
		}
	}
}

// clear makes nothing live.
func (r *liveRegs) clear() { r.set, r.sum = dataflow.RegSet{}, 0 }
