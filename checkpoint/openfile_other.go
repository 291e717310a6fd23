//go:build !unix

package checkpoint

import "os"

// How a recording is opened where there are no FIFOs in the file system.

// openRegular opens a file to read.
func openRegular(path string) (*os.File, error) { return os.Open(path) }
