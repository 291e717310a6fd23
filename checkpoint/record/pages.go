//go:build linux && amd64

package record

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
)

// Bits of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pmExclusive = 1 << 56 // mapped by this process alone: written since the last fork
	pmFile      = 1 << 61 // a page of a file or of shared memory
	pmSwap      = 1 << 62
	pmPresent   = 1 << 63
)

// sparse is the size in pages above which a range is asked for its populated
// parts before its pagemap is read: programs reserve terabytes.
const sparse = 16384

// pageScan is what the page tables of a stopped program say.
type pageScan struct {
	private  ranges // anonymous and private-dirty pages: they belong to the address
	dirty    ranges // those of private that nobody shares: written since the last fork
	file     []filePage
	shared   ranges // present pages of writable shared mappings
	unforked ranges // present pages of ranges that a fork wipes or omits
	changed  ranges // clean pages of private mappings of files that have changed
}

// filePage is a present, clean page of a mapped file.
type filePage struct {
	addr   uint64
	object uint32
	index  uint64
}

// pagemapReader reads page table entries in runs.
type pagemapReader struct {
	fd  int
	buf [4096]uint64
	reg [256]pageRegion
}

// visit implements pageTables.
func (p *pagemapReader) visit(start, end uint64, f func(page, entry uint64)) error {
	if (end-start)/checkpoint.PageSize <= sparse {
		return p.dense(start, end, f)
	}
	for at := start; at < end; {
		n, stop, err := scanRegions(p.fd, at, end, p.reg[:])
		if err != nil {
			if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
				return p.dense(at, end, f)
			}
			return fmt.Errorf("page table scan of %x-%x: %w", at, end, err)
		}
		for _, r := range p.reg[:n] {
			if err := p.dense(r.start, r.end, f); err != nil {
				return err
			}
		}
		if stop <= at {
			return nil
		}
		at = stop
	}
	return nil
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
func (sp *space) scanPages(list []mapping) (*pageScan, error) {
	c, objects := &pageScan{}, sp.objects.list
	for i := range list {
		m := &list[i]
		if m.Object != 0 && objects[m.Object-1].Kind == checkpoint.ObjectSpecial {
			if m.Name == "[vdso]" {
				c.private.add(m.Start/checkpoint.PageSize, m.End/checkpoint.PageSize)
			}
			continue
		}
		if err := sp.pmap.visit(m.Start, m.End, c.visitor(m, m.Object != 0 && objects[m.Object-1].Changed)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// visitor returns the function that files the entries of one range.
func (c *pageScan) visitor(m *mapping, changed bool) func(page, e uint64) {
	first := m.Start / checkpoint.PageSize
	asFile := func(page uint64) {
		c.file = append(c.file, filePage{page * checkpoint.PageSize, m.Object, m.Offset/checkpoint.PageSize + page - first})
		if changed {
			c.changed.add(page, page+1)
		}
	}
	switch {
	case !m.private():
		return func(page, e uint64) { c.shared.add(page, page+1) }
	case m.advice != 0:
		return func(page, e uint64) {
			if e&pmFile != 0 && m.Object != 0 {
				asFile(page)
				return
			}
			c.unforked.add(page, page+1)
		}
	default:
		return func(page, e uint64) {
			if e&pmFile != 0 {
				if m.Object != 0 {
					asFile(page)
				}
				return
			}
			c.private.add(page, page+1)
			if e&(pmExclusive|pmSwap) != 0 {
				c.dirty.add(page, page+1)
			}
		}
	}
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
func (m memReader) readRun(addr, n uint64, buf []byte) []byte {
	buf = buf[:min(n*checkpoint.PageSize, uint64(len(buf)))]
	got, err := m.mem.readAt(buf, addr)
	if err != nil {
		return nil
	}
	return buf[:uint64(got)&^pageMask]
}

func (memReader) close() {}

// runReader is a pageReader that can read many pages at once.
type runReader interface {
	// readRun returns whole pages from addr on, at most n: in buf or elsewhere, and
	// valid until the next call. It returns none when the first cannot be read.
	readRun(addr, n uint64, buf []byte) []byte
}

// pagesPerRead is how many pages are read at once: a call for each costs more than
// the copying.
const pagesPerRead = 64

// eachPage calls f for the pages of set that r has, in order. f must not keep the
// content.
func eachPage(r pageReader, set ranges, f func(addr uint64, page []byte) error) error {
	buf := make([]byte, pagesPerRead*checkpoint.PageSize)
	runs, _ := r.(runReader)
	for _, s := range set {
		for at := s.lo; at < s.hi; {
			var run []byte
			if s.hi-at > 1 && runs != nil {
				run = runs.readRun(at*checkpoint.PageSize, s.hi-at, buf)
			}
			if len(run) == 0 { // of one page at least it is known why
				run = buf[:checkpoint.PageSize]
				if !hasPage(r, at*checkpoint.PageSize, run) {
					at++
					continue
				}
			}
			for ; len(run) > 0; run = run[checkpoint.PageSize:] {
				if err := f(at*checkpoint.PageSize, run[:checkpoint.PageSize:checkpoint.PageSize]); err != nil {
					return err
				}
				at++
			}
		}
	}
	return nil
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

func (*copySource) close() {}

// hasPage reads the page at addr into b and reports whether there is one.
func hasPage(r pageReader, addr uint64, b []byte) bool { return r.readPage(addr, b) == nil }

// copyPages takes the pages of set from r.
func copyPages(r pageReader, set ranges) (*copySource, error) {
	c := &copySource{pages: make(map[uint64][]byte, set.count())}
	err := set.each(func(page uint64) error {
		b := make([]byte, checkpoint.PageSize)
		if !hasPage(r, page*checkpoint.PageSize, b) {
			return nil // beyond the end of an object: nothing to keep
		}
		c.pages[page*checkpoint.PageSize] = b
		return nil
	})
	return c, err
}
