//go:build linux && amd64

package record

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// In which pages of shared memory a process has stored is told by the kernel, where it can: asynchronous write protection
// (userfaultfd(2), UFFD_FEATURE_WP_ASYNC) and PAGEMAP_SCAN, both of Linux 6.7. The descriptor is the recorder's: when that has gone the
// memory is as it was.

// storeWatch is what is needed to ask for the stores of a space.
type storeWatch struct {
	fd int // of userfaultfd(2), the recorder's; -1 where there is none
	// written has the files that calls have written to: no page table tells of that.
	written map[fileID]bool
}

// CanWatchStores returns why the kernel cannot tell in which pages of shared memory a process has stored, nil if it can. All pages are
// compared then, at the end of each turn of processes that share memory.
func CanWatchStores() error {
	fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if e != 0 {
		return fmt.Errorf("userfaultfd: %w", e)
	}
	defer func() { _ = unix.Close(int(fd)) }() // nothing was registered
	if err := uffdBegin(int(fd)); err != nil {
		return fmt.Errorf("asynchronous write protection: %w", err)
	}
	return nil
}

// mayWatch reports whether the stores to a mapping that is shared and writable can be watched. Files that are no shared memory are not: who is
// not recorded may write to them, and their pages leave the page tables when memory is short.
func (sp *space) mayWatch(m *mapping) bool {
	if sp.watch == nil || sp.watch.fd < 0 || sp.outside != nil {
		return false
	}
	o := sp.objects.at(m.Object)
	return o.Kind == checkpoint.ObjectShared || strings.HasPrefix(o.Path, namedShared)
}

// namedShared is where shm_open(3) has its files (man 7 shm_overview).
const namedShared = "/dev/shm/"

// watchStores begins to watch the stores of the thread's space. The thread, whose group shares memory, is at a sync point.
func (t *thread) watchStores() error {
	sp := t.space()
	if sp.watch != nil {
		return nil
	}
	sp.watch = &storeWatch{fd: -1}
	if status, err := statusOf(t.proc.live); err != nil || status.Number("Seccomp") != 0 {
		return nil //nolint:nilerr // it ends, or has a filter that need not allow the call
	}
	in, err := t.session.source.inject(t.proc.pid, t.tid, sp.site)
	if err != nil {
		return err
	}
	fd, err := in.do(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly)
	if err != nil {
		return err
	}
	if fd < 0 {
		return in.end()
	}
	own, err := t.proc.getFD(int(fd))
	if _, cerr := in.do(unix.SYS_CLOSE, uint64(fd)); cerr != nil || err != nil {
		if err == nil {
			_ = unix.Close(own)
		}
		return errors.Join(cerr, in.end())
	}
	if err := uffdBegin(own); err != nil {
		_ = unix.Close(own)
		t.session.log.Debug().Err(err).Msg("stores are not watched")
		return in.end()
	}
	sp.watch.fd = own
	return in.end()
}

// close ends it.
func (w *storeWatch) close() {
	if w != nil && w.fd >= 0 {
		_ = unix.Close(w.fd) // of the process's, too, if it is the last
		w.fd = -1
	}
}

// storedIn returns the pages of a shared mapping in which the process may have stored since it was asked for last. Of one that is
// not watched these are all that are in the page tables.
func (sp *space) storedIn(m *mapping) (ranges, error) {
	if sp.mayWatch(m) {
		pages, err := sp.storedSeen(m)
		if err == nil && !sp.watch.written[sp.objects.file(m.Object)] {
			return pages, nil
		}
	}
	scan, err := sp.scanPages([]mapping{*m})
	if err != nil {
		return nil, err
	}
	return scan.shared, nil
}

// storedSeen returns the pages that the kernel tells of. All are those that a mapping is first asked for.
func (sp *space) storedSeen(m *mapping) (ranges, error) {
	pages, err := sp.mm.written(m.Start, m.End)
	if !errors.Is(err, unix.EPERM) {
		return pages, err
	}
	if err := uffdWatch(sp.watch.fd, m.Start, m.End); err != nil {
		return nil, err
	}
	return sp.mm.written(m.Start, m.End)
}

// noteFileWritten has all pages of a file looked at when the process's stores are asked for next: a call has written to it.
func (sp *space) noteFileWritten(id fileID) {
	if w := sp.watch; w != nil && w.fd >= 0 {
		if w.written == nil {
			w.written = map[fileID]bool{}
		}
		w.written[id] = true
	}
}

// noted is called when all pages of such files have been looked at.
func (w *storeWatch) noted() {
	if w != nil {
		w.written = nil
	}
}

// written implements mmInfo.
func (p *pagemapReader) written(start, end uint64) (ranges, error) {
	var out ranges
	for r, err := range p.regions(start, end, takeWritten) {
		if err != nil {
			return nil, fmt.Errorf("stores to %x-%x: %w", r.start, end, err)
		}
		out.add(r.start/checkpoint.PageSize, r.end/checkpoint.PageSize)
	}
	return out, nil
}
