//go:build linux

package checkpoint

import (
	"syscall"
	"unsafe"
)

// Memory for the events of an interval. A program that reads the time-stamp counter has hundreds of thousands of them.

// Large pages, of the size that Linux has on x86-64 and, for the most part, on arm64, and from how many of them on events get them.
const (
	largePage  = 2 << 20
	largePages = 2
)

// makeEvents returns n events, which are all zeros. Many are in large pages, where the system has these for who asks
// (/sys/kernel/mm/transparent_hugepage/enabled): 130,000 events are ten thousand small pages, each of which is a page fault.
func makeEvents(n int) []Event {
	events := make([]Event, n)
	p, size := unsafe.Pointer(unsafe.SliceData(events)), uintptr(n)*unsafe.Sizeof(Event{})
	before := -uintptr(p) % largePage
	if n := (size - min(before, size)) / largePage; n >= largePages {
		b := unsafe.Slice((*byte)(unsafe.Add(p, before)), n*largePage)
		_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) // small ones do as well
	}
	return events
}
