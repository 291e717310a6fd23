package need

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What memory costs on this machine, for bounds of tests on processor time and for limits of programs.

// DearPages reports whether that is so much that a recorded program, which has a page fault for each page in each interval, hardly gets on.
func DearPages() bool { return PageTime() > 5*time.Microsecond }

// PageTime returns what a page of memory costs that is stored to first: some tenths of a microsecond, but 30 us in virtual machines whose
// hypervisor keeps the page tables; 0 where that is not known. Each round is of memory that the kernel has just mapped: what the
// Go runtime hands out may have been in use before.
var PageTime = sync.OnceValue(func() time.Duration {
	const size, rounds = 4 << 20, 5
	page := os.Getpagesize()
	least := time.Hour
	for range rounds {
		b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return 0
		}
		_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // a kernel without huge pages does not know it
		began := time.Now()
		for i := 0; i < size; i += page {
			b[i] = 1
		}
		least = min(least, time.Since(began)/time.Duration(size/page))
		_ = unix.Munmap(b) // it was mapped
	}
	return least
})
