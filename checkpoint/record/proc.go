//go:build linux && amd64

package record

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

func procPath(pid, fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, fd) }

var cpuFlags = sync.OnceValue(func() map[string]bool {
	flags := map[string]bool{}
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return flags
	}
	for line := range strings.Lines(string(b)) {
		if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "flags" {
			for _, f := range strings.Fields(v) {
				flags[f] = true
			}
			break
		}
	}
	return flags
})

// hasCPUFlag reports whether the kernel lists a flag in /proc/cpuinfo.
func hasCPUFlag(name string) bool { return cpuFlags()[name] }

// startBrk returns the start of a process's heap: field 47 of
// /proc/PID/stat (man 5 proc_pid_stat).
func startBrk(pid int) uint64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0
	}
	// The field after ")" is number 3.
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 45 {
		return 0
	}
	v, err := strconv.ParseUint(f[44], 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// splitNul splits the contents of /proc/PID/cmdline and environ.
func splitNul(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}
