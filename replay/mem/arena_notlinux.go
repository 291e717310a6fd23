//go:build unix && !linux

package mem

// What stands for arena_linux.go on other Unix systems.

func refuseHugePages([]byte) {}

func touch([]byte) {}
