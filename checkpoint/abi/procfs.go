package abi

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// Parsers of the small text files of /proc/PID. Nothing here opens a file.

// ProcStat is what vplay uses of /proc/PID/stat (man 5 proc_pid_stat).
type ProcStat struct {
	Name                   string // of the program, or what it is called since
	State                  byte   // as in ps: R, S, D, T, t (stopped by a tracer), Z, ...
	Parent, Group, Session int    // process, process group and session numbers
	UserTicks, SystemTicks uint64 // of processor time, by all its threads
	ChildUserTicks         uint64 // of its children that it has waited for
	ChildSystemTicks       uint64
	Started                uint64 // when, in ticks since the machine's start
	StartBrk               uint64 // start of the heap; 0 for who may not know it
}

// clockTick is the unit of ticks: USER_HZ, which is 100 on x86 and arm64.
const clockTick = 10 * time.Millisecond

// CPU is the processor time that the process has taken.
func (s *ProcStat) CPU() time.Duration { return time.Duration(s.UserTicks+s.SystemTicks) * clockTick }

// ChildCPU is what its children took that it has waited for.
func (s *ProcStat) ChildCPU() time.Duration {
	return time.Duration(s.ChildUserTicks+s.ChildSystemTicks) * clockTick
}

// ParseProcStat reads the text of /proc/PID/stat. ok is false when it is none. The
// second field is the program's name in parentheses: it may hold any character,
// parentheses and newlines too, so that the last ")" ends it.
func ParseProcStat(text []byte) (s ProcStat, ok bool) {
	open, i := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || i < open {
		return s, false
	}
	s.Name = string(text[open+1 : i])
	f := strings.Fields(string(text[i+1:]))
	const first = 3 // number of the field behind the name
	if len(f) < 47-first+1 || len(f[0]) != 1 {
		return s, false
	}
	s.State = f[0][0]
	ok = true
	number := func(field int) uint64 {
		v, err := strconv.ParseInt(f[field-first], 10, 64)
		if err != nil {
			var u uint64
			if u, err = strconv.ParseUint(f[field-first], 10, 64); err == nil {
				return u
			}
			ok = false
		}
		return uint64(v)
	}
	s.Parent, s.Group, s.Session = int(number(4)), int(number(5)), int(number(6))
	s.UserTicks, s.SystemTicks, s.ChildUserTicks, s.ChildSystemTicks = number(14), number(15), number(16), number(17)
	s.Started, s.StartBrk = number(22), number(47)
	return s, ok
}

// ProcStatus is the text of /proc/PID/status (man 5 proc_pid_status): lines of a
// name, a colon and a value. The program's name is the first value; the kernel
// escapes newlines in it, so that it cannot be taken for another line.
type ProcStatus []byte

// Field returns the value of a field, without white space around it; "" when there is
// no such field.
func (s ProcStatus) Field(name string) string {
	for line := range bytes.Lines(s) {
		if n, value, ok := bytes.Cut(line, []byte(":")); ok && string(n) == name {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// Mask returns a hexadecimal field, such as a set of signals, in which bit n-1 is
// signal n; 0 when there is no such field.
func (s ProcStatus) Mask(name string) uint64 {
	v, err := strconv.ParseUint(s.Field(name), 16, 64)
	if err != nil {
		return 0
	}
	return v
}

// Number returns the decimal number that a field begins with; 0 when there is none.
func (s ProcStatus) Number(name string) int64 {
	digits, _, _ := strings.Cut(s.Field(name), " ")
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
