//go:build !linux

package differential

// The memory of the sandbox's pages on systems where generated code does not map them.

// newPages returns the sandbox's pages, which are in no file.
func newPages() (pages [sandboxPages]*[pageSize]byte, file int) { return newPlainPages(), -1 }
