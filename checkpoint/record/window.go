//go:build linux && amd64

package record

import (
	"os"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Reading another process's memory costs the kernel more for finding the pages than
// for copying them. A shadow finds its own by its page tables: so it is made to put
// them into a file in memory, which it makes and which the recorder maps. /proc/PID/mem stays
// the way for what the shadow cannot read itself and for programs under a seccomp filter, which
// might kill it for such calls. process_vm_readv(2) is no way: it pins pages, and a pinned page of
// a fork is copied first (mm/gup.c, gup_must_unshare).
//
// Programs fill memory with pages that are the same. So the shadow has the file mapped, too,
// and runs a few instructions there that copy a page only where it differs from the one before
// (scanruns.go). Where that mapping is refused the shadow writes its pages with pwrite(2).

// window is the file that a shadow puts its pages into, mapped here.
type window struct {
	in   *injector
	fd   uint64 // in the shadow
	at   uint64 // where the shadow has the file mapped, 0 for nowhere
	file []byte
	runs []uint32 // how often each slot's content comes, as the last read has it
}

// The file: what the shadow executes, how often each slot's content comes, and the slots.
const (
	windowCounts = checkpoint.PageSize
	windowSlots  = 2 * checkpoint.PageSize
	windowPages  = 512 // slots
	windowSize   = windowSlots + windowPages*checkpoint.PageSize
)

// windowWorth is how many pages in a row are worth a window, or a read through one.
const windowWorth = 64

// emptyString is where the ELF header at the start of the vdso has an empty string: behind
// e_ident[EI_ABIVERSION].
const emptyString = 9

// openWindow makes a window of the shadow; nil where it cannot be had. vdso is where
// the vdso starts, whose ELF header has the empty string that is the file's name.
func (s *shadow) openWindow() *window {
	status, err := statusOf(s.pid)
	if err != nil || status.Number("Seccomp") != 0 {
		return nil
	}
	in, err := borrow(s.pid, s.pid, s.site, nil)
	if err != nil {
		return nil
	}
	liftFileLimit(s.pid)
	fd, err := newMemFile(in, s.pid, s.vdso, windowSize)
	if err != nil || fd < 0 {
		return nil
	}
	file := mapHere(s.pid, int(fd), windowSize)
	if file == nil {
		return nil
	}
	w := &window{in: in, fd: uint64(fd), file: file}
	*s.windows++
	if w.prepareScan() {
		*s.scans++
	}
	return w
}

// liftFileLimit lets a shadow make files as large as it may have them: the limit is its own.
func liftFileLimit(pid int) {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil) // newMemFile looks at what it is
	}
}

// mapHere maps a file in memory that another process has open; nil where that fails.
func mapHere(pid, fd, size int) []byte {
	f, err := os.OpenFile(procPath(pid, fd), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // the mapping stays
	view, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	return view
}

// newMemFile makes a file in memory, without a name, of size bytes, in the process that in
// has borrowed, whose number is pid. It returns its descriptor, or a negated errno. vdso is where the process has its
// vdso.
func newMemFile(in caller, pid int, vdso, size uint64) (fd int64, err error) {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit) == nil && limit.Cur < size { // ftruncate(2) would send SIGXFSZ, which kills
		tooLarge := -int64(unix.EFBIG)
		return tooLarge, nil
	}
	if fd, err = in.do(unix.SYS_MEMFD_CREATE, vdso+emptyString, unix.MFD_CLOEXEC); err != nil || fd < 0 {
		return fd, err
	}
	ret, err := in.do(unix.SYS_FTRUNCATE, uint64(fd), size)
	if err != nil || ret == 0 {
		return fd, err
	}
	_, err = in.do(unix.SYS_CLOSE, uint64(fd))
	return ret, err
}

// readRun implements runReader.
func (s *shadow) readRun(addr, n uint64, buf []byte) pageRuns {
	if n >= windowWorth && !s.noWindow {
		if s.window == nil {
			s.window = s.openWindow()
			s.noWindow = s.window == nil
		}
		if r := s.window.read(addr, n); len(r.pages) > 0 {
			return r
		}
	}
	return s.memReader.readRun(addr, n, buf)
}

// read returns whole pages from addr on, at most n, valid until the next call. w may be nil.
func (w *window) read(addr, n uint64) pageRuns {
	if w == nil {
		return pageRuns{}
	}
	if w.at != 0 {
		return w.scan(addr, n)
	}
	ret, err := w.in.do(unix.SYS_PWRITE64, w.fd, addr, min(n, windowPages)*checkpoint.PageSize, windowSlots)
	if err != nil || ret < 0 || uint64(ret) > windowPages*checkpoint.PageSize {
		return pageRuns{}
	}
	return pageRuns{pages: w.file[windowSlots:][:uint64(ret)&^pageMask]}
}

func (w *window) close() {
	if w != nil {
		_ = unix.Munmap(w.file) // it is mapped
	}
}
