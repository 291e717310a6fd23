//go:build !unix

package mem

// The arena's memory on systems that are no Unix.

// mapChunk returns zeroed memory for a chunk from the Go heap, where the system
// has no mmap; it is in no file.
func mapChunk(place) (b []byte, offset int64, err error) {
	return make([]byte, chunkPages*PageSize), -1, nil
}

func unmapChunk([]byte, int64) error { return nil }
