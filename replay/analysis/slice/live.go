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
	low, high, base := split(a, mask)
	if low != 0 {
		m.takeWord(base, low, f)
	}
	if high != 0 {
		m.takeWord(base+64, high, f)
	}
}

// split returns mask, which is of the bytes at a, as two: of the 64 bytes at base, which is aligned, and of those behind them.
func split(a, mask uint64) (low, high, base uint64) {
	return mask << (a % 64), mask >> (64 - a%64), a &^ 63
}

// takeWord is take for the 64 bytes at base.
func (m *liveMemory) takeWord(base, mask uint64, f func(need uint32)) {
	p := m.page(base)
	if p == nil {
		return
	}
	off := base % mem.PageSize
	live := &p.live[off/64]
	mask &= *live
	*live &^= mask
	n := bits.OnesCount64(mask)
	p.count -= n
	m.count -= n
	needs := p.needs[off:][:64]
	for last := ^uint32(0); mask != 0; mask &= mask - 1 {
		if n := needs[bits.TrailingZeros64(mask)&63]; n != last {
			last = n
			f(n)
		}
	}
}

// put makes the bytes of mask at a live for need. It reports false when too many pages have
// live bytes.
func (m *liveMemory) put(a, mask uint64, need uint32, s *needSets) bool {
	low, high, base := split(a, mask)
	ok := low == 0 || m.putWord(base, low, need, s)
	return (high == 0 || m.putWord(base+64, high, need, s)) && ok
}

// putWord is put for the 64 bytes at base.
func (m *liveMemory) putWord(base, mask uint64, need uint32, s *needSets) bool {
	p := m.page(base)
	if p == nil {
		if len(m.pages) >= maxPages {
			return false
		}
		p = &livePage{}
		page := base &^ (mem.PageSize - 1)
		m.pages[page] = p
		m.cache[page/mem.PageSize%cachedPages] = pageEntry{page, p}
	}
	off := base % mem.PageSize
	live := &p.live[off/64]
	was := mask & *live
	*live |= mask
	n := bits.OnesCount64(mask &^ was)
	p.count += n
	m.count += n
	needs := p.needs[off:][:64]
	for fresh := mask &^ was; fresh != 0; fresh &= fresh - 1 {
		needs[bits.TrailingZeros64(fresh)&63] = need
	}
	for ; was != 0; was &= was - 1 {
		if n := &needs[bits.TrailingZeros64(was)&63]; *n != need {
			*n = s.union(*n, need)
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

// regPieces is how many pieces of eight parts registers have.
const regPieces = dataflow.RegParts / 8

// liveRegs is the live parts of the registers of a thread.
type liveRegs struct {
	of     *livePieces
	pieces [regPieces]pieceID
	sum    uint64 // which of pieces are not 0

	calls   []activation // that the thread is in, where control dependences are followed
	next    uint64       // the address of the instruction that it executed behind the present one
	brought []uint32     // needs of what came from a system call whose instruction was not met yet
}

// livePiece is what is live of a piece of registers, and for whom: needs are 0 for parts that are not in mask.
type livePiece struct {
	mask  uint8
	needs [8]uint32
}

// pieceID is the number of a livePiece; 0 is that of which nothing is live.
type pieceID uint32

// livePieces has each livePiece once.
type livePieces struct {
	ids  map[livePiece]pieceID
	list []livePiece
}

// maxPieces bounds them, to some 30 MB, see walker.forget.
const maxPieces = 1 << 18

func newLivePieces() *livePieces {
	return &livePieces{map[livePiece]pieceID{{}: 0}, make([]livePiece, 1)}
}

// id returns the number of p.
func (s *livePieces) id(p livePiece) pieceID {
	id, ok := s.ids[p]
	if !ok {
		id = pieceID(len(s.list))
		s.ids[p], s.list = id, append(s.list, p)
	}
	return id
}

// clear forgets all but that of which nothing is live.
func (s *livePieces) clear() { *s = *newLivePieces() }

// live returns what is live.
func (r *liveRegs) live() (s dataflow.RegSet) {
	for n, id := range r.pieces {
		s[n/8] |= uint64(r.of.list[id].mask) << (n % 8 * 8)
	}
	return s
}

// set changes what is live of piece n.
func (r *liveRegs) set(n uint8, p livePiece) {
	r.pieces[n] = r.of.id(p)
	r.sum &^= 1 << n
	if p.mask != 0 {
		r.sum |= 1 << n
	}
}

// need returns what part n, which is live, is needed by.
func (r *liveRegs) need(n int) uint32 { return r.of.list[r.pieces[n/8]].needs[n%8] }

// take makes the parts in s not live and calls f with what each was needed by.
func (r *liveRegs) take(s dataflow.RegSet, f func(need uint32)) {
	s.Pieces(func(p dataflow.Piece) { r.takePiece(p, f) })
}

// takePiece makes parts not live, calls f with what each was needed by, and returns which of them were live.
func (r *liveRegs) takePiece(p dataflow.Piece, f func(need uint32)) uint8 {
	now := r.of.list[r.pieces[p.N]]
	hit := now.mask & p.Mask
	if hit == 0 {
		return 0
	}
	now.mask &^= hit
	last := ^uint32(0)
	for m := hit; m != 0; m &= m - 1 {
		n := &now.needs[bits.TrailingZeros8(m)]
		if *n != last {
			last = *n
			f(last)
		}
		*n = 0
	}
	r.set(p.N, now)
	return hit
}

// put makes the parts in s live for need.
func (r *liveRegs) put(s dataflow.RegSet, need uint32, sets *needSets) {
	s.Pieces(func(p dataflow.Piece) { r.putPiece(p, need, sets) })
}

// putPiece makes parts live for need. There is at least one.
func (r *liveRegs) putPiece(p dataflow.Piece, need uint32, sets *needSets) {
	now := r.of.list[r.pieces[p.N]]
	for m := p.Mask; m != 0; m &= m - 1 {
		b := bits.TrailingZeros8(m)
		if now.mask>>b&1 == 0 {
			now.needs[b] = need
		} else {
			now.needs[b] = sets.union(now.needs[b], need)
		}
	}
	now.mask |= p.Mask
	r.set(p.N, now)
}

// clear makes nothing live.
func (r *liveRegs) clear() { r.pieces, r.sum = [regPieces]pieceID{}, 0 }
