package main

import (
	"os"
	"testing"
)

func TestMemoryBudget(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name    string
		meminfo string
		max     string
		want    int64
	}{
		{"another system", "", "", 0},
		{"machine", "MemTotal:       16777216 kB\nMemFree: 1 kB\n", "", 16 * gib},
		{"no limit", "MemTotal:       16777216 kB\n", "max\n", 16 * gib},
		{"container", "MemTotal:       16777216 kB\n", "2147483648\n", 2 * gib},
	} {
		files := map[string]string{"/proc/meminfo": c.meminfo, "/sys/fs/cgroup/memory.max": c.max}
		got := memoryHere(func(name string) ([]byte, error) {
			if files[name] == "" {
				return nil, os.ErrNotExist
			}
			return []byte(files[name]), nil
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if f := (serveFlags{memory: 3}); f.budget() != 3<<20 {
		t.Errorf("--memory 3 is %d bytes", f.budget())
	}
}
