package taint

import (
	"encoding/binary"
	"errors"

	"vplay/replay/mem"
)

// The shadow of memory: eight bits for each byte, one for each of its bits, and for each four
// bytes the tag of what marked them last. A page that was never marked has no shadow, which is
// the same as one that is clear.

const pageSize = mem.PageSize

// page is the shadow of a page.
type page struct {
	bits [pageSize]byte
	tags [pageSize / 4]Tag
}

// Memory is the shadow of an address space.
type Memory struct {
	pages map[uint64]*page // by address
	cache [cachedPages]cachedPage
	full  bool
}

// cachedPages is how many pages are found without the map; a power of two.
const cachedPages = 1 << 10

// cachedPage says what the map has of a page, nil included.
type cachedPage struct {
	base uint64
	page *page
}

// maxPages bounds the pages that have a shadow, to 512 MiB.
const maxPages = 1 << 16

// ErrTooMuch says that more memory is marked than a shadow is kept of.
var ErrTooMuch = errors.New("taint: more than 256 MiB of the program's memory are marked")

func newMemory() *Memory {
	m := &Memory{}
	m.Reset()
	return m
}

// Reset clears all.
func (m *Memory) Reset() {
	m.pages = map[uint64]*page{}
	for i := range m.cache {
		m.cache[i] = cachedPage{base: 1} // no page begins there
	}
}

// page returns the page of a, nil when it has no shadow.
func (m *Memory) page(a uint64) *page {
	base := a &^ (pageSize - 1)
	e := &m.cache[base/pageSize%cachedPages]
	if e.base != base {
		*e = cachedPage{base, m.pages[base]}
	}
	return e.page
}

// grown returns the page of a, which it makes when there is none; nil when there are too many.
func (m *Memory) grown(a uint64) *page {
	if p := m.page(a); p != nil {
		return p
	}
	if len(m.pages) >= maxPages {
		m.full = true
		return nil
	}
	base := a &^ (pageSize - 1)
	p := &page{}
	m.pages[base] = p
	m.cache[base/pageSize%cachedPages] = cachedPage{base, p}
	return p
}

// drop takes the shadow of a page away.
func (m *Memory) drop(base uint64) {
	delete(m.pages, base)
	m.cache[base/pageSize%cachedPages] = cachedPage{base, nil}
}

// Any reports whether one of the n bytes at a has a mark.
func (m *Memory) Any(a uint64, n int) bool {
	off := a % pageSize
	if n == 8 && off <= pageSize-8 { // most of all
		p := m.page(a)
		return p != nil && binary.LittleEndian.Uint64(p.bits[off:]) != 0
	}
	for n > 0 {
		step := min(n, int(pageSize-a%pageSize))
		if p := m.page(a); p != nil && anyOf(p.bits[a%pageSize:][:step]) {
			return true
		}
		a, n = a+uint64(step), n-step
	}
	return false
}

func anyOf(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return true
		}
		b = b[8:]
	}
	for _, v := range b {
		if v != 0 {
			return true
		}
	}
	return false
}

// Load copies the bits of the bytes at a, and returns the tag of the first that has a mark; 0
// where none has.
func (m *Memory) Load(a uint64, bits []byte) (tag Tag) {
	for len(bits) > 0 {
		off := a % pageSize
		step := min(len(bits), int(pageSize-off))
		p := m.page(a)
		if p == nil {
			clear(bits[:step])
		} else {
			copy(bits[:step], p.bits[off:])
			for i := 0; tag == 0 && i < step; i++ {
				if bits[i] != 0 {
					tag = p.tags[(off+uint64(i))/4]
				}
			}
		}
		a, bits = a+uint64(step), bits[step:]
	}
	return tag
}

// Store sets the bits of the bytes at a.
func (m *Memory) Store(a uint64, bits []byte, tag Tag) {
	for len(bits) > 0 {
		off := a % pageSize
		step := min(len(bits), int(pageSize-off))
		p := m.page(a)
		if p == nil && anyOf(bits[:step]) {
			p = m.grown(a)
		}
		if p != nil {
			copy(p.bits[off:], bits[:step])
			for i := uint64(0); i < uint64(step); i++ {
				if bits[i] != 0 {
					p.tags[(off+i)/4] = tag
				}
			}
		}
		a, bits = a+uint64(step), bits[step:]
	}
}

// Mark marks every bit of n bytes at a.
func (m *Memory) Mark(a, n uint64, tag Tag) {
	for n > 0 {
		off := a % pageSize
		step := min(n, pageSize-off)
		p := m.grown(a)
		if p == nil {
			return
		}
		b := p.bits[off : off+step]
		for i := range b {
			b[i] = 0xff
		}
		t := p.tags[off/4 : (off+step+3)/4]
		for i := range t {
			t[i] = tag
		}
		a, n = a+step, n-step
	}
}

// Clear takes the marks of n bytes at a away.
func (m *Memory) Clear(a, n uint64) {
	if n/pageSize > uint64(len(m.pages)) { // fewer pages have a shadow than are cleared
		for base := range m.pages {
			if from, to := max(a, base), min(a+n, base+pageSize); from < to {
				m.clearIn(from, to-from)
			}
		}
		return
	}
	for n > 0 {
		step := min(n, pageSize-a%pageSize)
		m.clearIn(a, step)
		a, n = a+step, n-step
	}
}

// clearIn is Clear within a page.
func (m *Memory) clearIn(a, n uint64) {
	p := m.page(a)
	switch {
	case p == nil:
	case n == pageSize:
		m.drop(a)
	default:
		clear(p.bits[a%pageSize:][:n])
	}
}

// Move copies the marks of n bytes, as memmove does, with their tags.
func (m *Memory) Move(to, from, n uint64) {
	if n == 0 || to == from {
		return
	}
	var buf [64]byte
	for off := uint64(0); off < n; off += 64 {
		step := min(64, n-off)
		at := off
		if to > from { // from the end, so that nothing is overwritten that is read later
			at = n - off - step
		}
		m.moveFew(to+at, from+at, buf[:step])
	}
}

// moveFew moves len(buf) bytes at most 64, four at a time where they have marks, since a tag is of four.
func (m *Memory) moveFew(to, from uint64, buf []byte) {
	if !m.Any(from, len(buf)) {
		m.Clear(to, uint64(len(buf)))
		return
	}
	m.Load(from, buf)
	var tags [64]Tag
	for i := range buf {
		if p := m.page(from + uint64(i)); buf[i] != 0 && p != nil {
			tags[i] = p.tags[(from+uint64(i))%pageSize/4]
		}
	}
	for i := range buf {
		m.Store(to+uint64(i), buf[i:i+1], tags[i])
	}
}
