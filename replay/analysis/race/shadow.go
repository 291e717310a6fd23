package race

import "math/bits"

// Shadow memory: for each word of 8 bytes that was accessed, the accesses that later ones may race with.

const (
	wordSize  = 8
	lineWords = 64 // words of a line, the unit that shadow memory is made in
	lineBytes = lineWords * wordSize
	// maxEntries is how many accesses of a word are kept; the oldest goes first. Readers of the same bytes that are not ordered need one each.
	maxEntries = 16
	cacheLines = 1024 // a power of two

	entrySize = 40 // bytes of memory that an entry takes
	lineSize  = lineWords * (entrySize + 32)
)

// entry is an access to bytes of a word.
type entry struct {
	pc       uint64
	instr    uint64
	interval uint32
	time     uint32 // of its thread
	tid      int32
	slot     uint16
	mask     uint8 // bytes of the word
	store    bool
}

// word is the shadow of 8 bytes.
type word struct {
	first  entry // valid where its mask is not 0
	more   []entry
	atomic *atomicBytes // nil: no instruction has locked the bus here
}

// atomicBytes are bytes of a word that are an atomic variable, and what its stores have released.
type atomicBytes struct {
	mask  uint8
	knows clock
}

type line [lineWords]word

// shadow is all of it.
type shadow struct {
	lines map[uint64]*line // by address / lineBytes
	bytes int              // that it takes at most: what was given back since it was weighed is not subtracted
	cache [cacheLines]struct {
		number  uint64
		line    *line // nil: there is none
		isKnown bool
	}
}

// find returns the line of an address, nil where there is none.
func (s *shadow) find(addr uint64) *line {
	n := addr / lineBytes
	c := &s.cache[n%cacheLines]
	if c.isKnown && c.number == n {
		return c.line
	}
	l := s.lines[n]
	c.number, c.line, c.isKnown = n, l, true
	return l
}

// make returns the line of an address, which may be new.
func (s *shadow) make(addr uint64) *line {
	l := s.find(addr)
	if l == nil {
		l = new(line)
		n := addr / lineBytes
		s.lines[n] = l
		s.bytes += lineSize
		s.cache[n%cacheLines].line = l
	}
	return l
}

// weigh makes s.bytes right, and returns it.
func (s *shadow) weigh() int {
	s.bytes = 0
	for _, l := range s.lines {
		s.bytes += lineSize
		for i := range l {
			s.bytes += cap(l[i].more) * entrySize
		}
	}
	return s.bytes
}

// clear forgets all accesses to the bytes from start up to end.
func (s *shadow) clear(start, end uint64) {
	if end <= start {
		return
	}
	first, last := start/lineBytes, (end-1)/lineBytes
	if last-first > uint64(len(s.lines)) {
		for n := range s.lines {
			if n >= first && n <= last {
				s.clearIn(n, start, end)
			}
		}
		return
	}
	for n := first; ; n++ {
		if s.lines[n] != nil {
			s.clearIn(n, start, end)
		}
		if n == last {
			break
		}
	}
}

// clearIn is clear for one line.
func (s *shadow) clearIn(n, start, end uint64) {
	base := n * lineBytes
	if start <= base && end-1 >= base+(lineBytes-1) {
		delete(s.lines, n)
		s.cache[n%cacheLines].isKnown = false
		return
	}
	l := s.lines[n]
	for i := range l {
		a := base + uint64(i)*wordSize
		if a+(wordSize-1) < start || a > end-1 {
			continue
		}
		mask := uint8(0xff)
		if a < start {
			mask <<= start - a
		}
		if end-a < wordSize {
			mask &= 1<<(end-a) - 1
		}
		l[i].forget(mask)
	}
}

// forget removes accesses to some bytes of a word.
func (w *word) forget(mask uint8) {
	if w.atomic != nil {
		if w.atomic.mask &^= mask; w.atomic.mask == 0 {
			w.atomic = nil
		}
	}
	w.first.mask &^= mask
	kept := w.more[:0]
	for _, e := range w.more {
		if e.mask &^= mask; e.mask != 0 {
			kept = append(kept, e)
		}
	}
	if w.more = kept; len(kept) == 0 {
		w.more = nil
	}
}

// add keeps an access, and returns by how many bytes the shadow has grown.
func (w *word) add(e entry) int {
	before := cap(w.more)
	switch {
	case w.first.mask == 0:
		w.first = e
	case len(w.more) >= maxEntries-1:
		copy(w.more, w.more[1:])
		w.more[len(w.more)-1] = e
	default:
		w.more = append(w.more, e)
	}
	return (cap(w.more) - before) * entrySize
}

// offset and length of the bytes of a mask, which are together where they are of one access.
func extent(mask uint8) (off, n int) {
	return bits.TrailingZeros8(mask), bits.OnesCount8(mask)
}
