//go:build linux && amd64

package record

import (
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Pages that lie apart, read by one call. A read of /proc/PID/mem has a run of pages, copies each twice, and looks each up by
// itself: where processes take turns with shared memory, which has some ten runs of one to three pages at each turn's
// end, that was a fifth of what the recorder does.

// eachPageAtOnce calls f for the pages of set that can be read, in order. f must not keep the content.
func (sp *space) eachPageAtOnce(set ranges, f func(addr uint64, page []byte)) {
	buf := pageBuffers.Get().(*pageBuffer)
	defer pageBuffers.Put(buf)
	var pages []uint64
	flush := func() {
		for len(pages) > 0 {
			pages = sp.readApart(pages, buf, f)
		}
	}
	for _, r := range set {
		for page := r.lo; page < r.hi; page++ {
			if pages = append(pages, page); len(pages) == pagesPerRead {
				flush()
			}
		}
	}
	flush()
}

// readApart reads pages, as many as buf has room for at most, calls f for those that there are, and returns those that are left.
func (sp *space) readApart(pages []uint64, buf *pageBuffer, f func(addr uint64, page []byte)) []uint64 {
	remote := make([]unix.RemoteIovec, 0, pagesPerRead)
	for _, page := range pages {
		addr := uintptr(page * checkpoint.PageSize)
		if n := len(remote); n > 0 && remote[n-1].Base+uintptr(remote[n-1].Len) == addr {
			remote[n-1].Len += checkpoint.PageSize
			continue
		}
		remote = append(remote, unix.RemoteIovec{Base: addr, Len: checkpoint.PageSize})
	}
	local := unix.Iovec{Base: &buf[0], Len: uint64(len(pages) * checkpoint.PageSize)}
	got, err := unix.ProcessVMReadv(sp.group.of.live, []unix.Iovec{local}, remote, 0)
	if err != nil {
		got = 0
	}
	whole := got / checkpoint.PageSize
	for i, page := range pages[:whole] {
		f(page*checkpoint.PageSize, buf[i*checkpoint.PageSize:][:checkpoint.PageSize])
	}
	if whole == len(pages) {
		return nil
	}
	// Of the one at which it ended the memory's own file has the say: it reads whatever the protection is.
	addr := pages[whole] * checkpoint.PageSize
	if b := buf[:checkpoint.PageSize]; hasPage(sp.reader(), addr, b) {
		f(addr, b)
	}
	return pages[whole+1:]
}
