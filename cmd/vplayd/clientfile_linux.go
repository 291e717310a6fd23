package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A file for a program that gets its path. It is in memory and has no name, so that
// nothing is left of it when this process is killed, as dlv does with rr.

// clientFile is such a file.
type clientFile struct {
	file *os.File
	path string // by which others open it while this process lives
}

func newClientFile() (clientFile, error) {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return clientFile{}, fmt.Errorf("memfd_create: %w", err)
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	return clientFile{os.NewFile(uintptr(fd), path), path}, nil
}

// remove ends the file's life.
func (f clientFile) remove() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
