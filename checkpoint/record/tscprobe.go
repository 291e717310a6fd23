//go:build linux && amd64

package record

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Some virtual machines take PR_SET_TSC, and RDTSC runs all the same: the host does not do what CR4.TSD says. So it is tried once,
// in a process that shares this one's memory, as vfork(2) makes them.

// TSCFaults reports whether RDTSC faults where prctl(PR_SET_TSC) says so.
func TSCFaults() bool { return tscFaults() }

var tscFaults = sync.OnceValue(func() bool {
	const size = 64 << 10 // a signal frame has all vector registers
	stack, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return true // as nearly everywhere
	}
	defer func() { _ = unix.Munmap(stack) }() // it was mapped
	found := new(uint32)
	runtime.LockOSThread()
	pid := probeTSC(&stack[size-128], found)
	runtime.UnlockOSThread()
	if pid < 0 {
		return true
	}
	var ws unix.WaitStatus
	for {
		if _, err := unix.Wait4(int(pid), &ws, unix.WALL, nil); err != unix.EINTR { // another that waits may have had it
			break
		}
	}
	const runs = 2
	return *found != runs
})

// probeTSC is in tscprobe_amd64.s.
func probeTSC(stack *byte, found *uint32) (pid int64)
