//go:build linux && amd64

package record

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"vplay/checkpoint/abi"
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

// statOf reads /proc/PID/stat; false when there is no such process.
func statOf(pid int) (abi.ProcStat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return abi.ProcStat{}, false
	}
	return abi.ParseProcStat(b)
}

// stateOf returns the state of a process, 0 when there is no such process.
func stateOf(pid int) byte {
	s, _ := statOf(pid)
	return s.State
}

// statusOf reads /proc/PID/status.
func statusOf(pid int) (abi.ProcStatus, error) {
	return os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
}

// splitNul splits the contents of /proc/PID/cmdline and environ.
func splitNul(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

func le32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(le32(b)) | uint64(le32(b[4:]))<<32
}
