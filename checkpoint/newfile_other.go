//go:build !linux

package checkpoint

import (
	"errors"
	"os"
)

// The files of a recording that is being written, on systems where each file has a name:
// newfile.go uses a hidden one there. Linux's way, without a name, is in newfile_linux.go.

// systemFiles has none.
var systemFiles = unnamedFiles{
	open: func(string) (*os.File, error) { return nil, errors.ErrUnsupported },
	link: func(*os.File, string) error { return errors.ErrUnsupported },
}
