package meter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"vplay/checkpoint/abi"
)

// What a tree that runs is made of, and what it has taken so far.

// Process is one of a tree.
type Process struct {
	PID     int
	Name    string // of its first thread (/proc/PID/comm)
	Program string // the path of what it executes, "" where that cannot be read
	started uint64 // when, in ticks since the machine's start
}

// Below returns the processes below pid, the oldest first.
func Below(pid int) []Process {
	var out []Process
	var add func(pid int)
	add = func(pid int) {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
		for _, list := range lists {
			b, err := os.ReadFile(list)
			if err != nil {
				continue // the thread is gone
			}
			for _, f := range strings.Fields(string(b)) {
				child, err := strconv.Atoi(f)
				if err != nil {
					continue
				}
				if p, ok := lookAt(child); ok {
					out = append(out, p)
				}
				add(child)
			}
		}
	}
	add(pid)
	slices.SortStableFunc(out, func(a, b Process) int {
		if a.started != b.started {
			return int(a.started) - int(b.started)
		}
		return a.PID - b.PID
	})
	return out
}

// lookAt returns what a process is; false when it has gone.
func lookAt(pid int) (Process, bool) {
	s, ok := stat(pid)
	if !ok {
		return Process{}, false
	}
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // "" for a zombie
	return Process{PID: pid, Name: s.Name, Program: exe, started: s.Started}, true
}

// stat reads /proc/PID/stat; false when the process has gone.
func stat(pid int) (abi.ProcStat, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return abi.ProcStat{}, false
	}
	return abi.ParseProcStat(b)
}

// CPU returns the processor time that the tree has taken so far.
func (t *Tree) CPU() time.Duration {
	sum := waitedFor(t.PID())
	for _, p := range Below(t.PID()) {
		sum += clockOf(p.PID) + waitedFor(p.PID)
	}
	return sum
}

// waitedFor returns what the children of a process took that it has waited for.
func waitedFor(pid int) time.Duration {
	s, _ := stat(pid) // nothing where it has gone
	return s.ChildCPU()
}

// clockOf returns the processor time of a process, with its threads that have ended; 0 when it has gone.
func clockOf(pid int) time.Duration {
	const sched = 2 // CPUCLOCK_SCHED of linux/posix-timers.h
	id := ^pid<<3 | sched
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(sysClockGettime, uintptr(uint32(id)), uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}

// PSS returns the process's share of the memory it has mapped (Pss of /proc/PID/smaps_rollup), in bytes: a page that n
// processes have counts 1/n.
func PSS(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/smaps_rollup has no line Pss", pid)
}

// Oldest returns the oldest process of the tree that executes a program; false where there is none.
func (t *Tree) Oldest(program string) (Process, bool) {
	if file, err := filepath.EvalSymlinks(program); err == nil {
		program = file
	}
	for _, p := range Below(t.PID()) {
		if p.Program == program {
			return p, true
		}
	}
	return Process{}, false
}
