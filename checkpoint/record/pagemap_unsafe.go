//go:build linux && amd64

package record

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The PAGEMAP_SCAN request of /proc/PID/pagemap, with its structures from
// include/uapi/linux/fs.h, and words viewed as bytes. Only what needs package unsafe is
// here; pages.go uses it.

// u64s views words as bytes, for the kernel to fill.
func u64s(b []uint64) []byte {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&b[0])), len(b)*8)
}

// scanArg is struct pm_scan_arg of include/uapi/linux/fs.h.
type scanArg struct {
	size, flags, start, end, walkEnd uint64
	vec                              *pageRegion
	vecLen, maxPages                 uint64
	inverted, mask, anyOf, ret       uint64
}

// pageRegion is struct page_region.
type pageRegion struct{ start, end, _ uint64 } // and the categories

const (
	pagemapScan   = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

// scanRegions fills vec with the runs of present or swapped pages of
// [start,end) and returns how many, and where the walk stopped
// (PAGEMAP_SCAN, Linux 6.7).
func scanRegions(fd int, start, end uint64, vec []pageRegion) (int, uint64, error) {
	return scan(fd, &scanArg{start: start, end: end, anyOf: pageIsPresent | pageIsSwapped, ret: pageIsPresent | pageIsSwapped}, vec)
}

// scan makes the request, with vec for the runs.
func scan(fd int, a *scanArg, vec []pageRegion) (int, uint64, error) {
	a.size, a.vec, a.vecLen = uint64(unsafe.Sizeof(*a)), &vec[0], uint64(len(vec))
	n, err := ioctl(fd, pagemapScan, unsafe.Pointer(a))
	return n, a.walkEnd, err
}

// ioctl makes a request of ioctl(2) whose argument is a pointer.
func ioctl(fd int, request uintptr, arg unsafe.Pointer) (int, error) {
	n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// Write protection that the kernel takes away by itself at the first store (include/uapi/linux/fs.h and userfaultfd.h).
const (
	scanProtects   = 1 << 0 // PM_SCAN_WP_MATCHING
	scanAllWatched = 1 << 1 // PM_SCAN_CHECK_WPASYNC
	pageIsWritten  = 1 << 1

	uffdUserModeOnly  = 1
	uffdAPI           = 0xaa
	uffdAsync         = 1 << 15    // UFFD_FEATURE_WP_ASYNC
	uffdioAPI         = 0xc018aa3f // _IOWR(0xaa, 0x3f, struct uffdio_api)
	uffdioRegister    = 0xc020aa00 // _IOWR(0xaa, 0x00, struct uffdio_register)
	uffdioProtect     = 0xc018aa06 // _IOWR(0xaa, 0x06, struct uffdio_writeprotect)
	uffdWriteProtects = 2          // UFFDIO_REGISTER_MODE_WP
)

// takeWritten fills vec with the runs of pages of [start,end) that the process has stored in since the last time, and
// returns how many, and where the walk stopped. EPERM says that not all of it is watched.
func takeWritten(fd int, start, end uint64, vec []pageRegion) (int, uint64, error) {
	return scan(fd, &scanArg{
		flags: scanProtects | scanAllWatched, start: start, end: end,
		mask: pageIsWritten, anyOf: pageIsPresent | pageIsSwapped, ret: pageIsWritten,
	}, vec)
}

// uffdBegin says what a new descriptor of userfaultfd(2) is for.
func uffdBegin(fd int) error {
	_, err := ioctl(fd, uffdioAPI, unsafe.Pointer(&struct{ api, features, ioctls uint64 }{api: uffdAPI, features: uffdAsync}))
	return err
}

// uffdWatch has the kernel watch the stores to [start,end) from now on. All pages count as stored to.
func uffdWatch(fd int, start, end uint64) error {
	_, err := ioctl(fd, uffdioRegister, unsafe.Pointer(&struct{ start, len, mode, ioctls uint64 }{start, end - start, uffdWriteProtects, 0}))
	if err != nil {
		return err
	}
	// Before Linux 6.13 what was moved by mremap(2) keeps the marks that it had.
	_, err = ioctl(fd, uffdioProtect, unsafe.Pointer(&struct{ start, len, mode uint64 }{start, end - start, 0}))
	return err
}
