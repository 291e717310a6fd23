//go:build unix

package mem

import "syscall"

// The arena's memory on Unix systems (mmap(2)).

// mapChunk returns n bytes of zeroed memory outside the Go heap, so that the
// collector neither scans nor counts them.
func mapChunk(n int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		refuseHugePages(b)
	}
	return b, err
}

func unmapChunk(b []byte) error { return syscall.Munmap(b) }
