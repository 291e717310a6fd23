//go:build linux && amd64

package record

import (
	"bytes"
	"math/bits"
	"slices"

	"vplay/checkpoint"
)

// What is known of the content of shared pages, and what parts of them have changed since: a process that changes
// a counter in each of three pages has the others log some hundred bytes, and not three pages.

// sharedContent has the shared pages that processes have stored in, by file and number of the page.
type sharedContent map[fileID]map[uint64]*knownPage

// of returns the content of a file's pages, as far as it is known, to be added to.
func (c sharedContent) of(id fileID) map[uint64]*knownPage {
	pages := c[id]
	if pages == nil {
		pages = map[uint64]*knownPage{}
		c[id] = pages
	}
	return pages
}

// knownPage is what a shared page held when it was looked at last.
type knownPage struct {
	data   []byte
	shared bool // others have data, too: it is not to be changed
}

// keep returns the content, which stays as it is.
func (p *knownPage) keep() []byte {
	p.shared = true
	return p.data
}

// update has the page hold b, and returns what of it is new.
func (p *knownPage) update(b []byte) (changed pageLines) {
	if bytes.Equal(p.data, b) {
		return 0
	}
	if p.shared {
		p.data, p.shared = slices.Clone(p.data), false
	}
	for i := range linesPerPage {
		at := i * lineSize
		if was, is := p.data[at:at+lineSize], b[at:at+lineSize]; !bytes.Equal(was, is) {
			copy(was, is)
			changed |= 1 << i
		}
	}
	return changed
}

// pageLines are parts of a page, line n at bit n.
type pageLines uint64

const (
	linesPerPage = 64
	lineSize     = checkpoint.PageSize / linesPerPage
	allLines     = ^pageLines(0)
)

// each calls f for the runs of lines, with the bytes [from,to) of the page.
func (l pageLines) each(f func(from, to int)) {
	for at := 0; l>>at != 0; {
		at += bits.TrailingZeros64(uint64(l >> at))
		end := at + bits.TrailingZeros64(^uint64(l>>at))
		f(at*lineSize, end*lineSize)
		at = end
	}
}

// size returns how many bytes they are.
func (l pageLines) size() int { return bits.OnesCount64(uint64(l)) * lineSize }
