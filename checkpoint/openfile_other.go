//go:build !unix

package checkpoint

import "os"

// How a recording is opened where a name stands for no FIFO. For Unix see openfile_unix.go.

// openRegular opens a file to read.
func openRegular(path string) (*os.File, error) { return os.Open(path) }
