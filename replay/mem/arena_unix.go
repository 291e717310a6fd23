//go:build unix && !linux

package mem

import "syscall"

// The arena's memory on other Unix systems than Linux (mmap(2)).

// mapChunk returns zeroed memory for a chunk outside the Go heap, so that the
// collector neither scans nor counts it; it is in no file.
func mapChunk(place) (b []byte, offset int64, err error) {
	b, err = syscall.Mmap(-1, 0, chunkPages*PageSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	return b, -1, err
}

func unmapChunk(b []byte, _ int64) error { return syscall.Munmap(b) }
