package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Garbage collection of commands that replay. By default Go collects when the heap is twice as large as what lives there, and at 4 MiB for
// the first time: a replay of one second, whose pages are not in that heap, collected seven times, and needs 3 to 5 % less processor time
// when it does so three times. So a heap may have roomyHeap before that rule holds.

const (
	roomyHeap  = 64 << 20
	maxPercent = 800
)

// collectLater has the collector wait while the heap is small, unless $GOGC says what it is to do.
var collectLater = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		choosePercent(new(sentinel))
	}
})

// sentinel is what nobody refers to: it is found at the next collection.
type sentinel struct{ _ [16]byte }

// choosePercent sets when the next collection is, and comes back then.
func choosePercent(s *sentinel) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := uint64(maxPercent)
	if n := live[0].Value.Uint64(); n > 0 {
		percent = min(max(roomyHeap*100/n, 100), maxPercent)
	}
	debug.SetGCPercent(int(percent))
	runtime.SetFinalizer(s, choosePercent)
}
