package need

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// How fast this machine is at the moment, for bounds of tests on processor time.

// quiet is what Slowness's work takes on a processor that the bounds of tests are meant for. An Intel Xeon at 2.5 GHz (family 6 model 85,
// 2026-11-28) takes 68 to 165 ms with nothing else to do: other virtual machines have the rest of its cores and caches.
const quiet = 60 * time.Millisecond

// Slowness returns how many times as much processor time this machine takes at this moment for the same computation, 1 at least.
func Slowness() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	words := make([]uint64, 1<<20)
	work := func() {
		for i, x := 0, uint64(1); i < 8<<20; i++ {
			x = x*6364136223846793005 + 1442695040888963407
			words[x>>44] += x
		}
	}
	work() // memory comes with the first one
	began := threadTime()
	work()
	return max(1, float64(threadTime()-began)/float64(quiet))
}

// threadTime returns the processor time of this thread.
func threadTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
