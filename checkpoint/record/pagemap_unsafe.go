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
	a := scanArg{
		start: start, end: end, vec: &vec[0], vecLen: uint64(len(vec)),
		anyOf: pageIsPresent | pageIsSwapped, ret: pageIsPresent | pageIsSwapped,
	}
	a.size = uint64(unsafe.Sizeof(a))
	n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan, uintptr(unsafe.Pointer(&a)))
	if e != 0 {
		return 0, 0, e
	}
	return int(n), a.walkEnd, nil
}
