package replay

import (
	"encoding/binary"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The general registers of a forced end may come millions of times before it:
// each turn of a loop over a counter in memory, each start of a REP MOVS with
// the same arguments. The hash of all memory tells these positions apart, but costs
// microseconds at each. One word is enough to say no, if it is the right one.
//
// The recording names the content of every page written in the interval, at its
// end (End.Pages), and most often holds it, because the next interval begins with
// it. So a position with the right registers that turned out not to be the end
// is asked which words of these pages are not yet, or no longer, what they are at
// the end. From then on the processor looks at those few words at each position that
// has the registers, and passes it by when one differs. A counter never has its
// last value before the end; a flag that is right half of the time is joined by
// others at the next such position.
//
// Of a page whose content the recording lacks the hash is there. Comparing it costs
// microseconds, which is little beside REP MOVS and much beside a counter, so it is
// done a limited number of times.
//
// This changes what is looked at, never what is found: where a page written is
// not as recorded, CheckEnd refuses the state as well.

const (
	// maxWords is how many words are kept.
	maxWords = 32
	// perPage is how many of them are taken of one page at a time.
	perPage = 4
	// perPosition is how many are taken at one position.
	perPosition = 8
	// maxPageTries is how often the page is hashed: a fifth of a second.
	maxPageTries = 1 << 16
)

// discriminators are what the search has found to differ from the end at positions that
// have its registers.
type discriminators struct {
	words     []x86.SieveWord
	page      checkpoint.PageEntry // whose content is known by its hash; none when Addr is 0
	pageTries int                  // how often it was hashed
	lookAt    int                  // the page of End.Pages to begin with
	lessons   int                  // how often learn was called
}

// rulesOut reports whether a discriminator says that the end is not here.
func (s *endSearch) rulesOut() bool {
	for _, w := range s.words {
		if v, ok := s.word(w.Addr); ok && v != w.Value {
			return true
		}
	}
	if s.page.Addr == 0 || s.pageTries >= maxPageTries {
		return false
	}
	s.pageTries++
	return s.pageDiffers(&s.page)
}

// pageDiffers reports whether a page is known not to have the content e.
func (s *endSearch) pageDiffers(e *checkpoint.PageEntry) bool {
	m := s.m
	if e.Ref.Kind != checkpoint.PageFull && e.Ref.Kind != checkpoint.PagePartial {
		return false
	}
	var now mem.Page
	var known mem.Mask
	if !m.Mem.PeekRaw(e.Addr, &now, &known) || m.solver != nil && !known.All() {
		return false
	}
	return (e.Ref.Kind == checkpoint.PagePartial || known.All()) && checkpoint.RefOfPartial((*[512]byte)(&known), &now) != e.Ref
}

// word returns the word of memory at a, false when it is not known.
func (s *endSearch) word(a uint64) (uint64, bool) {
	m := s.m
	var b [8]byte
	n, _ := m.Mem.Peek(a, b[:])
	return binary.LittleEndian.Uint64(b[:]), n == len(b)
}

// learn notes words by which the current position, which has the registers of the
// end, differs from it. The newest come first, the oldest are dropped. Going through
// the pages written costs up to milliseconds, so that after the first few
// such positions it is done ever more seldom.
func (s *endSearch) learn() {
	m := s.m
	s.lessons++
	if s.lessons > maxWords && s.lessons&(s.lessons-1) != 0 {
		return
	}
	var found []x86.SieveWord
	paged := false
	pages := m.iv.End.Pages
	for i := range pages {
		e := &pages[(i+s.lookAt)%len(pages)]
		var want, now mem.Page
		if mask, err := m.s.Rec.Page(e.Ref, &want); err != nil || mask != nil {
			if !paged && s.pageDiffers(e) {
				s.page, paged = *e, true
			}
			continue
		}
		var known mem.Mask
		if !m.Mem.Raw(e.Addr, &now, &known) || now == want {
			continue
		}
		if m.solver != nil {
			m.solver.hideDoubtful(e.Addr, &known)
		}
		found = appendDiffering(found, e.Addr, &now, &want, &known)
		if len(found) >= perPosition {
			s.lookAt = (i + s.lookAt) % len(pages)
			break
		}
	}
	if len(found) == 0 {
		return
	}
	found = append(found, s.words...)
	s.words = found[:min(len(found), maxWords)]
	s.sift()
}

// appendDiffering appends up to perPage words of the page at base in which now
// is known to differ from want.
func appendDiffering(ws []x86.SieveWord, base uint64, now, want *mem.Page, known *mem.Mask) []x86.SieveWord {
	n := 0
	for i := 0; i < mem.PageSize && n < perPage; i += 8 {
		v := binary.LittleEndian.Uint64(want[i:])
		if binary.LittleEndian.Uint64(now[i:]) != v && known[i/8] == 0xff {
			ws = append(ws, x86.SieveWord{Addr: base + uint64(i), Value: v})
			n++
		}
	}
	return ws
}
