package mem

import "unsafe"

// pagesOf views a chunk's bytes as pages. len(b) is chunkPages*PageSize.
func pagesOf(b []byte) *[chunkPages]Page {
	return (*[chunkPages]Page)(unsafe.Pointer(unsafe.SliceData(b)))
}
