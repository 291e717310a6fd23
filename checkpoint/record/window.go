//go:build linux && amd64

package record

import (
	"os"

	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Reading another process's memory costs the kernel more for finding the pages than
// for copying them. A shadow finds its own by its page tables: so it is made to write
// them to a file in memory, which it makes and which the recorder maps. That takes a
// quarter of the time of reading /proc/PID/mem, which stays the way for what the
// shadow cannot read itself and for programs under a seccomp filter, which might kill
// it for such calls. process_vm_readv(2) is no way: it pins pages, and a pinned page of
// a fork is copied first (mm/gup.c, gup_must_unshare).

// window is the file that a shadow writes its pages to, mapped here.
type window struct {
	in   *injector
	fd   uint64 // in the shadow
	view []byte
}

// emptyString is where the ELF header at the start of the vdso has an empty string: behind
// e_ident[EI_ABIVERSION].
const emptyString = 9

const (
	windowPages = 512 // pages that a window holds
	windowWorth = 64  // pages that are worth a window, or a write to one
)

// openWindow makes a window of the shadow; nil where it cannot be had. vdso is where
// the vdso starts, whose ELF header has the empty string that is the file's name.
func (s *shadow) openWindow() *window {
	status, err := statusOf(s.pid)
	if err != nil || status.Number("Seccomp") != 0 {
		return nil
	}
	in, err := borrow(s.pid, s.pid, s.site)
	if err != nil {
		return nil
	}
	const size = windowPages * checkpoint.PageSize
	fd, err := newMemFile(in, s.vdso, size)
	if err != nil || fd < 0 {
		return nil
	}
	view := mapHere(s.pid, int(fd), size)
	if view == nil {
		return nil
	}
	*s.windows++
	return &window{in, uint64(fd), view}
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
// has borrowed. It returns its descriptor, or a negated errno. vdso is where the process has its
// vdso.
func newMemFile(in caller, vdso, size uint64) (fd int64, err error) {
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
func (s *shadow) readRun(addr, n uint64, buf []byte) []byte {
	if n >= windowWorth && !s.noWindow {
		if s.window == nil {
			s.window = s.openWindow()
			s.noWindow = s.window == nil
		}
		if b := s.window.read(addr, min(n, windowPages)); len(b) > 0 {
			return b
		}
	}
	return s.memReader.readRun(addr, n, buf)
}

// read returns up to n pages from addr on, whole ones, valid until the next call. w may
// be nil.
func (w *window) read(addr, n uint64) []byte {
	if w == nil {
		return nil
	}
	ret, err := w.in.do(unix.SYS_PWRITE64, w.fd, addr, n*checkpoint.PageSize, 0)
	if err != nil || ret < 0 || uint64(ret) > uint64(len(w.view)) {
		return nil
	}
	return w.view[:uint64(ret)&^pageMask]
}

func (w *window) close() {
	if w != nil {
		_ = unix.Munmap(w.view) // it is mapped
	}
}
