//go:build unix && !linux

package mem

func preferHugePages([]byte) {}
