//go:build unix

package checkpoint

import (
	"os"
	"syscall"
)

// How a recording is opened on Unix, where the name may stand for a FIFO.

// openRegular opens a file to read, and does not wait where there is a FIFO.
func openRegular(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
