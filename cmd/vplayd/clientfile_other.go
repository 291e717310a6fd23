//go:build !linux

package main

import (
	"errors"
	"os"
)

// clientFile is a file for a program that gets its path (see clientfile_linux.go).
type clientFile struct {
	file *os.File
	path string
}

func newClientFile() (clientFile, error) {
	f, err := os.CreateTemp("", "vplay-*.elf")
	if err != nil {
		return clientFile{}, err
	}
	return clientFile{f, f.Name()}, nil
}

func (f clientFile) remove() error {
	if f.file == nil {
		return nil
	}
	return errors.Join(f.file.Close(), os.Remove(f.path))
}
