package need

import (
	"os"
	"sync"
	"time"
)

// PageTime returns what a page of memory costs that is stored to first: some tenths of a microsecond, but 25 us in virtual machines whose
// hypervisor keeps the page tables. Bounds of tests on processor time, and limits of programs, have to allow for it.
var PageTime = sync.OnceValue(func() time.Duration {
	const size, rounds = 32 << 20, 3
	pages := size / os.Getpagesize()
	least := time.Hour
	for range rounds {
		b := make([]byte, size) // too large for memory that was in use before
		began := time.Now()
		for i := 0; i < size; i += size / pages {
			b[i] = 1
		}
		least = min(least, time.Since(began)/time.Duration(pages))
	}
	return least
})
