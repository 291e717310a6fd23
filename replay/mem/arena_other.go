//go:build !unix

package mem

// The arena's memory on systems that are no Unix.

// mapChunk returns n bytes of zeroed memory from the Go heap, where the system
// has no mmap.
func mapChunk(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapChunk([]byte) error { return nil }

func touch([]byte) {}
