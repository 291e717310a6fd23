//go:build linux && amd64

package record

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Where the content of pages and the entries of page tables are read. What they mean is not
// decided here.

// sparse is the size in pages above which a range is asked for its populated
// parts before its pagemap is read: programs reserve terabytes.
const sparse = 16384

// pagemapReader reads page table entries in runs.
type pagemapReader struct {
	fd  int
	buf [4096]uint64
	reg [256]pageRegion
}

// visit implements mmInfo.
func (p *pagemapReader) visit(start, end uint64, f func(page, entry uint64)) error {
	return p.runs(start, end, f, func(lo, hi uint64) error { return p.dense(lo, hi, f) })
}

// visitSince implements mmInfo.
func (p *pagemapReader) visitSince(start, end uint64, known ranges, f func(page, entry uint64)) error {
	return p.runs(start, end, f, func(start, end uint64) (err error) {
		at, last := start/checkpoint.PageSize, end/checkpoint.PageSize
		addTo := func(page uint64) {
			for ; at < page; at++ {
				f(at, pmPresent|pmExclusive)
			}
		}
		known.within(at, last, func(lo, hi uint64) {
			addTo(lo)
			err = errors.Join(err, p.dense(lo*checkpoint.PageSize, hi*checkpoint.PageSize, f))
			at = hi
		})
		addTo(last)
		return err
	})
}

// runs calls run for each run of present or swapped pages of [start,end). Where that would not be
// worth it, or the kernel cannot tell, it has f visit the entries.
func (p *pagemapReader) runs(start, end uint64, f func(page, entry uint64), run func(start, end uint64) error) error {
	if (end-start)/checkpoint.PageSize <= sparse {
		return p.dense(start, end, f)
	}
	for r, err := range p.regions(start, end, scanRegions) {
		switch {
		case errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EINVAL):
			return p.dense(r.start, end, f)
		case err != nil:
			return fmt.Errorf("page table scan of %x-%x: %w", r.start, end, err)
		}
		if err := run(r.start, r.end); err != nil {
			return err
		}
	}
	return nil
}

// regions returns the runs of pages of [start,end) that a scan finds. With an error comes where that was.
func (p *pagemapReader) regions(start, end uint64, scan func(fd int, start, end uint64, vec []pageRegion) (int, uint64, error)) iter.Seq2[pageRegion, error] {
	return func(yield func(pageRegion, error) bool) {
		for at := start; at < end; {
			n, stop, err := scan(p.fd, at, end, p.reg[:])
			if err != nil {
				yield(pageRegion{start: at, end: end}, err)
				return
			}
			for _, r := range p.reg[:n] {
				if !yield(r, nil) {
					return
				}
			}
			if stop <= at {
				return
			}
			at = stop
		}
	}
}

func (p *pagemapReader) close() { _ = unix.Close(p.fd) } // only read

func (p *pagemapReader) dense(start, end uint64, f func(page, entry uint64)) error {
	lo, hi := start/checkpoint.PageSize, end/checkpoint.PageSize
	for lo < hi {
		want := p.buf[:min(uint64(len(p.buf)), hi-lo)]
		n, err := ptrace.ReadMem(p.fd, u64s(want), lo*8)
		if err != nil {
			return fmt.Errorf("pagemap at %x: %w", lo*checkpoint.PageSize, err)
		}
		if n < 8 {
			return nil
		}
		for i, e := range want[:n/8] {
			if e&(pmPresent|pmSwap) != 0 {
				f(lo+uint64(i), e)
			}
		}
		lo += uint64(n / 8)
	}
	return nil
}

// scanPages walks the page tables behind the given ranges.
func (sp *space) scanPages(list []mapping) (*pageScan, error) { return sp.scanSince(list, nil) }

// scanSince walks the page tables behind the given ranges. Anonymous pages that were not there when
// interval last began, unless that is nil, count as written since: their entries are not read.
func (sp *space) scanSince(list []mapping, last *interval) (*pageScan, error) {
	c := &pageScan{}
	for i := range list {
		m := &list[i]
		var o checkpoint.Object
		if m.Object != 0 {
			o = *sp.objects.at(m.Object)
		}
		if o.Kind == checkpoint.ObjectSpecial {
			if m.Name == vdsoName {
				c.private.add(m.Start/checkpoint.PageSize, m.End/checkpoint.PageSize)
			}
			continue
		}
		f := c.visitor(m, o.Changed)
		var err error
		if last != nil && m.private() && m.Object == 0 && m.advice == 0 {
			err = sp.mm.visitSince(m.Start, m.End, last.present, f)
		} else {
			err = sp.mm.visit(m.Start, m.End, f)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// pageReader reads whole pages of a program's memory.
type pageReader interface {
	// readPage fills buf (PageSize bytes) with the page at addr.
	readPage(addr uint64, buf []byte) error
	// close frees what holds the pages.
	close()
}

// errNoPage says that a page cannot be read: beyond the end of a file, or
// unmapped.
var errNoPage = errors.New("page cannot be read")

// memReader reads pages of a memory, which it does not own.
type memReader struct{ mem memory }

func (m memReader) readPage(addr uint64, buf []byte) error {
	n, err := m.mem.readAt(buf[:checkpoint.PageSize], addr)
	if err != nil || n != checkpoint.PageSize {
		return errNoPage
	}
	return nil
}

// readRun implements runReader.
func (m memReader) readRun(addr, n uint64, buf []byte) pageRuns {
	buf = buf[:min(n*checkpoint.PageSize, uint64(len(buf)))]
	got, err := m.mem.readAt(buf, addr)
	if err != nil {
		return pageRuns{}
	}
	return pageRuns{pages: buf[:uint64(got)&^pageMask]}
}

func (memReader) close() {}

// runReader is a pageReader that can read many pages at once.
type runReader interface {
	// readRun returns whole pages from addr on, at most n: in buf or elsewhere, and
	// valid until the next call. It returns none when the first cannot be read.
	readRun(addr, n uint64, buf []byte) pageRuns
}

// pageRuns is the content of pages one behind the other. counts has, for each page of pages,
// how many pages in a row have that content; nil is one each.
type pageRuns struct {
	pages  []byte
	counts []uint32
}

// next takes the first content, and returns how many pages have it.
func (r *pageRuns) next() (n uint64, page []byte) {
	page, r.pages = r.pages[:checkpoint.PageSize:checkpoint.PageSize], r.pages[checkpoint.PageSize:]
	if r.counts != nil {
		n, r.counts = uint64(r.counts[0]), r.counts[1:]
		return n, page
	}
	for n = 1; len(r.pages) > 0 && bytes.Equal(page, r.pages[:checkpoint.PageSize]); n++ {
		r.pages = r.pages[checkpoint.PageSize:]
	}
	return n, page
}

// pagesPerRead is how many pages are read at once: a call for each costs more than
// the copying.
const pagesPerRead = 64

// pageBuffer has room for the pages that are read at once.
type pageBuffer [pagesPerRead * checkpoint.PageSize]byte

var pageBuffers = sync.Pool{New: func() any { return new(pageBuffer) }}

// eachRun calls f for the pages of set that r has, in order, n pages from addr on that have
// the same content. f must not keep that.
func eachRun(r pageReader, set ranges, f func(addr, n uint64, page []byte) error) error {
	own := pageBuffers.Get().(*pageBuffer)
	defer pageBuffers.Put(own)
	buf := own[:]
	many, _ := r.(runReader)
	for _, s := range set {
		for at := s.lo; at < s.hi; {
			var run pageRuns
			if s.hi-at > 1 && many != nil {
				run = many.readRun(at*checkpoint.PageSize, s.hi-at, buf)
			}
			if len(run.pages) == 0 { // of one page at least it is known why
				run.pages = buf[:checkpoint.PageSize]
				if !hasPage(r, at*checkpoint.PageSize, run.pages) {
					at++
					continue
				}
			}
			for len(run.pages) > 0 {
				n, page := run.next()
				if err := f(at*checkpoint.PageSize, n, page); err != nil {
					return err
				}
				at += n
			}
		}
	}
	return nil
}

// eachPage calls f for the pages of set that r has, in order. f must not keep the
// content.
func eachPage(r pageReader, set ranges, f func(addr uint64, page []byte) error) error {
	return eachRun(r, set, func(addr, n uint64, page []byte) error {
		for ; n > 0; n-- {
			if err := f(addr, page); err != nil {
				return err
			}
			addr += checkpoint.PageSize
		}
		return nil
	})
}

// copySource is the second source of page contents, for programs that cannot
// be forked: the pages themselves.
type copySource struct{ pages map[uint64][]byte }

func (c *copySource) readPage(addr uint64, buf []byte) error {
	p, ok := c.pages[addr]
	if !ok {
		clear(buf[:checkpoint.PageSize])
		return nil
	}
	copy(buf, p)
	return nil
}

// has reports whether the page at addr was copied.
func (c *copySource) has(addr uint64) bool { return c.pages[addr] != nil }

func (*copySource) close() {}

// hasPage reads the page at addr into b and reports whether there is one.
func hasPage(r pageReader, addr uint64, b []byte) bool { return r.readPage(addr, b) == nil }

// copyPages takes the pages of set from r. Pages beyond the end of an object are none.
func copyPages(r pageReader, set ranges) (*copySource, error) {
	c := &copySource{pages: make(map[uint64][]byte, set.count())}
	err := eachPage(r, set, func(addr uint64, page []byte) error {
		c.pages[addr] = slices.Clone(page)
		return nil
	})
	return c, err
}
