package main

import (
	"os"
	"strconv"
	"strings"
)

// How much memory a verb may keep: what --memory says, else a part of what the machine
// or the container has.

// defaultMemory is how many MiB serve keeps for going back where nothing tells
// how much memory there is.
const defaultMemory = 1 << 10

// budget is the number of bytes of guest memory kept for going back: what --memory
// says, or a quarter of what there is.
func (f *serveFlags) budget() int64 {
	if f.memory > 0 {
		return f.memory << 20
	}
	if all := memoryHere(os.ReadFile); all > 0 {
		return all / 4
	}
	return defaultMemory << 20
}

// memoryHere returns how many bytes of memory this machine has, or this container
// may use (man 5 proc_meminfo; Documentation/admin-guide/cgroup-v2.rst), 0 where
// the system does not tell.
func memoryHere(read func(string) ([]byte, error)) int64 {
	text, err := read("/proc/meminfo")
	if err != nil {
		return 0
	}
	var all int64
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			all = kib << 10
		}
	}
	if text, err := read("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			all = min(all, n)
		}
	}
	return all
}
