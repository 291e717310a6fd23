package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// A recording gets its name when it is whole, and a writer that is killed, even
// by SIGKILL, should leave nothing. So the file has no name at all while it is
// written, where the system has such files: the kernel removes it with its last
// descriptor. When it is whole and durable it is linked to its name, which is
// atomic. A link does not replace a file: for that it is linked to a hidden
// name beside it, which is then renamed. Only a kill between these two calls
// leaves the hidden file.
//
// Elsewhere the file has the hidden name from the start, and what a killed
// writer left there is removed by the next one.

// newFile is a file that is not yet what its path names. Its methods but those
// of os.File are used by one goroutine at a time.
type newFile struct {
	*os.File
	path      string
	tmp       string // the hidden name
	overwrite bool
	hidden    os.FileInfo // the file that we gave the hidden name, nil before that
	sys       unnamedFiles
}

// unnamedFiles is how a system makes files without a name.
type unnamedFiles struct {
	// open makes one in the file system of dir, mode 0600.
	open func(dir string) (*os.File, error)
	// link gives it a name. The error matches fs.ErrExist when there is a file.
	link func(f *os.File, path string) error
	// owner makes the owner of another file the file's, where that is allowed;
	// nil where there is no such thing.
	owner func(f *os.File, like os.FileInfo)
}

// createFile makes a file that publish will name path. The error matches
// fs.ErrExist when there is one and overwrite is not set.
func createFile(path string, overwrite bool, sys unnamedFiles) (*newFile, error) {
	n := &newFile{
		path:      path,
		tmp:       filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp"),
		overwrite: overwrite,
		sys:       sys,
	}
	if err := n.mayReplace(); err != nil {
		return nil, err
	}
	var err error
	if n.File, err = sys.open(filepath.Dir(path)); err == nil {
		return n, nil
	}
	// Whatever the reason: if it is not that there are no unnamed files, it
	// holds for the hidden file too, with an error that names it.
	n.File, err = n.createHidden()
	return n, err
}

// createHidden makes a file of the hidden name. What a killed writer left
// there is of no use to anybody.
func (n *newFile) createHidden() (*os.File, error) {
	if err := removed(n.tmp); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(n.tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if n.hidden, err = f.Stat(); err != nil {
		_ = f.Close() // it goes
		return nil, errors.Join(err, removed(n.tmp))
	}
	return f, nil
}

// removed removes a file that need not be there.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mayReplace returns an error when a file is in the way.
func (n *newFile) mayReplace() error {
	st, err := os.Lstat(n.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.IsDir():
		return fmt.Errorf("%s is a directory", n.path)
	case IsDevice(n.path):
		return fmt.Errorf("%s is a device, a pipe or a socket: a recording is a regular file", n.path)
	case !n.overwrite:
		return &fs.PathError{Op: "create", Path: n.path, Err: fs.ErrExist}
	}
	return nil
}

// IsDevice reports whether a path leads to what no file may take the place of: a device, a pipe or a socket, as /dev/null and
// /dev/stdout.
func IsDevice(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.Mode().IsRegular() && !st.IsDir()
}

// publish gives the file its name and closes it. What is not durable before
// is not after. When it fails, discard is left.
func (n *newFile) publish() error {
	if err := n.mayReplace(); err != nil {
		return err
	}
	if n.hidden == nil {
		done, err := n.link()
		if err != nil || done {
			return err
		}
	}
	if !n.owns() {
		return fmt.Errorf("another writer has taken %s", n.tmp)
	}
	// Windows renames no open file.
	if err := n.Close(); err != nil {
		return err
	}
	return os.Rename(n.tmp, n.path)
}

// link gives a file without a name its own, and reports that it is done, or,
// where a file is to be replaced, the hidden name.
func (n *newFile) link() (done bool, err error) {
	err = n.sys.link(n.File, n.path)
	switch {
	case err == nil:
		_ = n.Close() // its content was made durable, and is there
		return true, nil
	case !errors.Is(err, fs.ErrExist):
		return false, n.copyHidden() // no /proc, or a sandbox
	case !n.overwrite:
		return false, &fs.PathError{Op: "create", Path: n.path, Err: fs.ErrExist}
	}
	if err := removed(n.tmp); err != nil {
		return false, err
	}
	if err := n.sys.link(n.File, n.tmp); err != nil {
		return false, n.copyHidden()
	}
	n.hidden, err = n.Stat()
	return false, err
}

// copyHidden copies a file that cannot be linked to one of the hidden name.
func (n *newFile) copyHidden() error {
	f, err := n.createHidden()
	if err != nil {
		return err
	}
	from := n.File
	defer func() { _ = from.Close() }() // it was only read
	n.File = f
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(f, from); err != nil {
		return err
	}
	st, err := from.Stat()
	if err == nil {
		err = n.like(st)
	}
	if err != nil {
		return err
	}
	return f.Sync()
}

// owns reports whether the hidden name is still that of our file.
func (n *newFile) owns() bool {
	if n.hidden == nil {
		return false
	}
	there, err := os.Lstat(n.tmp)
	return err == nil && os.SameFile(n.hidden, there)
}

// like gives the file the permissions and, where that is allowed, the owner of
// another.
func (n *newFile) like(st os.FileInfo) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	if n.sys.owner != nil {
		n.sys.owner(n.File, st)
	}
	return n.Chmod(st.Mode().Perm())
}

// discard closes the file and leaves nothing of it.
func (n *newFile) discard() error {
	_ = n.Close() // the file goes
	if !n.owns() {
		return nil
	}
	return removed(n.tmp)
}

// syncDir makes a name durable where the system can: Windows cannot open a
// directory for it, and some file systems refuse. The recording has its name
// and its content is durable by then, so a failure is no reason to fail.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written to it
	return d.Sync()
}
