//go:build linux && amd64

package record

import (
	"runtime"
	"sync"
)

// Where processes are limited (ulimit -u, the cgroup's pids.max) a program that makes them without end takes all that there
// may be, and Go's runtime ends the whole process when it cannot have a thread. So the recorder makes the threads that it may
// come to need before the program makes its first process or thread. The runtime keeps those that have nothing to do.

// Threads that are in reserve: for calls that wait, the writing, and the collector of garbage, beside those that run.
const (
	recorderReserve = 12
	guardianReserve = 3
)

func reserveForRecorder() { reserveThreads(recorderReserve) }

// reserveThreads has the runtime make n threads.
func reserveThreads(n int) {
	var there, gone sync.WaitGroup
	there.Add(n)
	gone.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread() // nothing else runs on it until it is there
			defer runtime.UnlockOSThread()
			there.Done()
			there.Wait()
			gone.Done()
		}()
	}
	gone.Wait()
}
