package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Files that commands write: pages, tables, images. Recordings have package checkpoint.

// outFile is a file that is there whole or not at all once it has its name. What is no regular file is written where it
// stands: a device or a pipe (/dev/stdout) must not be replaced by a file, nor must a symbolic link.
type outFile struct {
	*os.File
	name    string
	inPlace bool
}

// createOut opens a file that is to have a name. The caller calls keep when all is written, and discard in any case.
func createOut(name string) (*outFile, error) {
	o := &outFile{name: name}
	st, err := os.Lstat(name)
	o.inPlace = err == nil && !st.Mode().IsRegular()
	switch {
	case err == nil && st.IsDir():
		return nil, withHint(fmt.Errorf("cannot write %s: it is a folder", name), exitFailed, "name a file in it")
	case o.inPlace:
		o.File, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	default:
		o.File, err = os.CreateTemp(filepath.Dir(name), ".vplay-*")
	}
	if err != nil {
		return nil, writeError(name, err)
	}
	return o, nil
}

// Write implements io.Writer. An error names the file as the user did.
func (o *outFile) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	return n, writeError(o.name, err)
}

// keep gives the file its name and mode, and closes it.
func (o *outFile) keep(mode fs.FileMode) error {
	err := o.Close()
	if err == nil && !o.inPlace {
		err = errors.Join(os.Chmod(o.File.Name(), mode), os.Rename(o.File.Name(), o.name))
	}
	return writeError(o.name, err)
}

// discard removes the file unless it was kept.
func (o *outFile) discard() {
	_ = o.Close() // it may be closed
	if !o.inPlace {
		_ = os.Remove(o.File.Name()) // it has another name if it was kept
	}
}

// writeWhole writes a file.
func writeWhole(name string, b []byte, mode fs.FileMode) error {
	o, err := createOut(name)
	if err != nil {
		return err
	}
	defer o.discard()
	if _, err := o.Write(b); err != nil {
		return err
	}
	return o.keep(mode)
}

// writeError says that a file cannot be written because of err; nil for nil.
func writeError(name string, err error) error {
	if err == nil {
		return nil
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	hint := "is its folder there, and may you write to it?"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = "make room, or name a file elsewhere"
	}
	return withHint(fmt.Errorf("cannot write %s: %w", name, err), exitFailed, "%s", hint)
}
