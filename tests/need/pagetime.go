package need

import (
	"os"
	"sync"
	"time"
)

// What memory costs on this machine, for bounds of tests on processor time and for limits of programs.

// PageTime returns what a page of memory costs that is stored to first: some tenths of a microsecond, but 30 us in virtual machines whose
// hypervisor keeps the page tables.
var PageTime = sync.OnceValue(func() time.Duration {
	const size, rounds = 16 << 20, 3
	pages := size / os.Getpagesize()
	least := time.Hour
	var kept [rounds][]byte // so that each is new memory
	for n := range kept {
		kept[n] = make([]byte, size)
		began := time.Now()
		for i := 0; i < size; i += size / pages {
			kept[n][i] = 1
		}
		least = min(least, time.Since(began)/time.Duration(pages))
	}
	return least
})
