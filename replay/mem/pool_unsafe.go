package mem

import "unsafe"

// Chunks of the arena seen as pages: the package's only use of package unsafe besides
// its tests.

// pagesOf views a chunk's bytes as pages. len(b) is chunkPages*PageSize.
func pagesOf(b []byte) *[chunkPages]Page {
	return (*[chunkPages]Page)(unsafe.Pointer(unsafe.SliceData(b)))
}
