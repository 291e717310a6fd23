package mem

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The arena's memory on Linux: parts of one file of memory, so that an engine can map guest pages at other addresses as well
// (memfd_create(2)). The file is made once, before the process gives its rights up, and is as long as all pools
// together may get: only what was written of it exists. Where there can be no such file, memory is anonymous.

const chunkBytes = chunkPages * PageSize

// arena is the file.
type arena struct {
	fd int

	mu   sync.Mutex
	next int64   // what was never used begins there
	free []int64 // offsets of chunks that were given back
}

// theArena returns the file of this process, or nil.
var theArena = sync.OnceValue(func() *arena {
	const size = maxChunks * chunkBytes
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil || l.Cur < size {
		return nil // to make it longer than that would raise SIGXFSZ (man 2 setrlimit)
	}
	fd, err := unix.MemfdCreate("vplay-guest", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // Linux before 6.3
		fd, err = unix.MemfdCreate("vplay-guest", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil
	}
	if unix.Ftruncate(fd, size) != nil {
		_ = unix.Close(fd)
		return nil
	}
	return &arena{fd: fd}
})

// Prepare makes what pages are taken from, for a process that may not do so later.
func Prepare() { theArena() }

// take returns where a chunk is in the file that nobody uses.
func (f *arena) take() (offset int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.free); n > 0 {
		offset = f.free[n-1]
		f.free = f.free[:n-1]
		return offset, true
	}
	if f.next == maxChunks*chunkBytes {
		return 0, false
	}
	offset = f.next
	f.next += chunkBytes
	return offset, true
}

func (f *arena) give(offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, offset)
}

// arenaFile returns the descriptor of the file, -1 where there is none.
func arenaFile() int {
	if f := theArena(); f != nil {
		return f.fd
	}
	return -1
}

// mapChunk returns zeroed memory for a chunk, outside the Go heap, so that the collector neither scans nor counts it, and where it
// is in the file, -1 when it is in none.
func mapChunk(at place) (b []byte, offset int64, err error) {
	if f := theArena(); f != nil && at == inFile {
		if offset, ok := f.take(); ok {
			if b, err = syscall.Mmap(f.fd, offset, chunkBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err == nil {
				refuseHugePages(b)
				return b, offset, nil
			}
			f.give(offset)
		}
	}
	if b, err = syscall.Mmap(-1, 0, chunkBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE); err == nil {
		refuseHugePages(b)
	}
	return b, -1, err
}

// unmapChunk gives a chunk back. What the system does not take back of the file is not used again.
func unmapChunk(b []byte, offset int64) error {
	isEmpty := offset >= 0 && syscall.Madvise(b, syscall.MADV_REMOVE) == nil
	err := syscall.Munmap(b)
	if err == nil && isEmpty {
		theArena().give(offset)
	}
	return err
}

// refuseHugePages has the kernel give b a page at a time: a large one is cleared
// as a whole at the first touch, which nothing interrupts (RATIONALE.md).
func refuseHugePages(b []byte) { _ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE) }

// madvPopulateWrite is MADV_POPULATE_WRITE of Linux's include/uapi/asm-generic/mman-common.h
// (5.14); a kernel without it gives each page at its first touch.
const madvPopulateWrite = 23

// touch has the kernel give the pages of b now, in half the time that a fault for each takes.
func touch(b []byte) { _ = syscall.Madvise(b, madvPopulateWrite) }
