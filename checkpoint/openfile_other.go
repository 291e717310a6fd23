//go:build !unix

package checkpoint

import "os"

// openRegular opens a file to read.
func openRegular(path string) (*os.File, error) { return os.Open(path) }
