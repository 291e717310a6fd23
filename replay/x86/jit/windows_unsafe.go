//go:build linux && amd64

package jit

import (
	"fmt"
	"syscall"

	"vplay/replay/x86"
)

// The system calls of windows. They are made by address: Go knows nothing of that memory.

const (
	windowFlags  = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE
	windowFlagsF = windowFlags | syscall.MAP_FIXED
	pageFlags    = syscall.MAP_SHARED | syscall.MAP_FIXED | syscall.MAP_POPULATE
)

// reserve returns the address of a window in which nothing is mapped.
func reserve() (uintptr, error) {
	at, err := mmap(0, windowSize+2*windowGuard, syscall.PROT_NONE, windowFlags, -1, 0)
	return at + windowGuard, err
}

// mapPages maps pages of a file at the host's address at.
func mapPages(at uintptr, fd int, m *x86.Mapping) error {
	prot := syscall.PROT_READ
	if m.Stores {
		prot |= syscall.PROT_WRITE
	}
	_, err := mmap(at, uintptr(m.Pages)*pageSize, prot, pageFlags, fd, m.Offset)
	return err
}

// unmap takes what is mapped in n bytes at the host's address at out of its window.
func unmap(at, n uintptr) error {
	_, err := mmap(at, n, syscall.PROT_NONE, windowFlagsF, -1, 0)
	return err
}

func mmap(at, n uintptr, prot, flags, fd int, offset int64) (uintptr, error) {
	got, _, errno := syscall.Syscall6(syscall.SYS_MMAP, at, n, uintptr(prot), uintptr(flags), uintptr(fd), uintptr(offset))
	if errno != 0 {
		return 0, fmt.Errorf("mmap: %w", errno)
	}
	return got, nil
}
