package mem

// Marks are watches on bytes that change all the time, as those of freed heap blocks do: a bit for each byte, in
// the form that accesses are looked up in. Watches are a sorted list with an index, which is made anew when one of them changes.
// A mark changes in place, for as much as the store of a bit.
//
// Only private memory has marks, by its addresses. An access to a marked byte calls Space.OnAccess, and not OnHit.

import (
	"encoding/binary"
	"math/bits"
)

// maxMarked is how many pages have marks at once, 4 GiB of memory; more get none.
const maxMarked = 1 << 20

// Marks is a set of bytes. The zero value is empty. One Space at a time uses it (Space.SetMarks), and it
// may be changed while no access is under way.
type Marks struct {
	pages map[uint64]*markedPage // by page-aligned address
	space *Space                 // nil: none uses it
}

// markedPage is a page that has, or had, marks.
type markedPage struct {
	watchBits // of loads and stores: the same
	plain     Mask
}

// fullPage stands for each page that is marked as a whole; it is replaced by a copy before it changes.
var fullPage = func() *markedPage {
	p := newMarkedPage()
	p.change(0, PageSize, true)
	return p
}()

func newMarkedPage() *markedPage {
	p := &markedPage{}
	for i := range p.plain {
		p.plain[i] = 0xff
	}
	p.plainLoad, p.plainStore = &p.plain, &p.plain
	return p
}

// setWord replaces the marks of 64 bytes.
func (p *markedPage) setWord(i int, w uint64) {
	p.load[i], p.store[i] = w, w
	binary.LittleEndian.PutUint64(p.plain[8*i:], ^w)
}

// Add marks the bytes of [start, end).
func (m *Marks) Add(start, end uint64) {
	end = min(end, MaxUser)
	for a := start; a < end; {
		base := a &^ (PageSize - 1)
		stop := min(end, base+PageSize)
		p := fullPage
		if stop-a < PageSize {
			p = m.own(base)
		}
		if p == nil || p == fullPage && !m.put(base, p) {
			return // there is no room for more
		}
		if p != fullPage {
			p.change(a-base, stop-base, true)
		}
		a = stop
	}
}

// Remove takes the marks of [start, end) away.
func (m *Marks) Remove(start, end uint64) {
	m.each(start, end, func(base uint64) {
		if p := m.own(base); p != nil {
			p.change(max(start, base)-base, min(end-base, PageSize), false)
		}
	})
}

// Drop is Remove for memory that is unmapped: of its pages nothing is kept.
func (m *Marks) Drop(start, end uint64) {
	m.each(start, end, func(base uint64) {
		if base < start || end-base < PageSize {
			m.own(base).change(max(start, base)-base, min(end-base, PageSize), false)
			return
		}
		delete(m.pages, base)
		m.forget(base)
	})
}

// each calls f with each page in [start, end) that has, or had, marks.
func (m *Marks) each(start, end uint64, f func(base uint64)) {
	if start >= end {
		return
	}
	first := start &^ (PageSize - 1)
	if (end-first)/PageSize > uint64(len(m.pages)) {
		for base := range m.pages {
			if base >= first && base < end {
				f(base)
			}
		}
		return
	}
	for base := first; base < end; base += PageSize {
		if m.pages[base] != nil {
			f(base)
		}
	}
}

// change changes the marks of the bytes from lo to hi, which is above lo.
func (p *markedPage) change(lo, hi uint64, set bool) {
	for lo < hi {
		i, next := lo/64, min(hi, lo&^63+64)
		w := ^uint64(0) >> (64 - (next - lo)) << (lo % 64)
		if set {
			p.setWord(int(i), p.load[i]|w)
		} else {
			p.setWord(int(i), p.load[i]&^w)
		}
		lo = next
	}
}

// own returns the page at base to change it: nil where there is no room for it.
func (m *Marks) own(base uint64) *markedPage {
	p := m.pages[base]
	if p != nil && p != fullPage {
		return p
	}
	c := newMarkedPage()
	if p == fullPage {
		c.change(0, PageSize, true)
	}
	if !m.put(base, c) {
		return nil
	}
	return c
}

// put has page p at base, and reports whether there was room for it.
func (m *Marks) put(base uint64, p *markedPage) bool {
	if m.pages == nil {
		m.pages = map[uint64]*markedPage{}
	}
	before, has := m.pages[base]
	if before == p {
		return true
	}
	if !has && len(m.pages) >= maxMarked {
		return false
	}
	m.pages[base] = p
	m.forget(base)
	return true
}

// Next returns the first marked byte of [start, end).
func (m *Marks) Next(start, end uint64) (a uint64, ok bool) {
	first := ^uint64(0)
	m.each(start, end, func(base uint64) {
		if base < first {
			if a, ok := m.pages[base].next(max(start, base)-base, min(end-base, PageSize)); ok {
				first = min(first, base+a)
			}
		}
	})
	return first, first != ^uint64(0)
}

// next returns the first marked byte from lo to hi.
func (p *markedPage) next(lo, hi uint64) (o uint64, ok bool) {
	for ; lo < hi; lo = lo&^63 + 64 {
		if w := p.load[lo/64] >> (lo % 64); w != 0 {
			o := lo + uint64(bits.TrailingZeros64(w))
			return o, o < hi
		}
	}
	return 0, false
}

// forget has the space that uses the marks look at the page at base again.
func (m *Marks) forget(base uint64) {
	s := m.space
	if s == nil {
		return
	}
	s.flushSlowTLB()
	if s.OnFlush != nil {
		s.OnFlush(base, base+PageSize)
	}
}

// SetMarks has s use m, nil for none. The space that has used it before must not be used
// any more.
func (s *Space) SetMarks(m *Marks) {
	s.marks = m
	if m != nil {
		m.space = s
	}
	s.flush()
}

// looks reports whether accesses must be looked at.
func (s *Space) looks() bool { return len(s.watches) > 0 || s.marks != nil }

// markedAt returns the page of key if it has, or had, marks.
func (s *Space) markedAt(key uint64) *watchBits {
	if s.marks == nil {
		return nil
	}
	if p := s.marks.pages[key]; p != nil {
		return &p.watchBits
	}
	return nil
}
