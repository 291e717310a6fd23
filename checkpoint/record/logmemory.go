//go:build linux && amd64

package record

import (
	"golang.org/x/sys/unix"

	"vplay/checkpoint"
)

// Memory for the log of the agents. A program that reads or writes much fills it at gigabytes a second, and most of what
// that costs are page faults, one for each 4 KiB. So large pieces of the log come from memory of which the kernel is asked for all
// pages of a piece at once, which costs a third.

// logMemory is memory that was not handed out yet.
type logMemory struct{ free []byte }

const (
	smallLog   = 256 << 10 // what is less is not worth it
	logPortion = 16 << 20
)

// clone returns a copy of b. The collector takes the memory back when all of its portion is given up.
func (m *logMemory) clone(b []byte) []byte {
	if len(b) < smallLog {
		return append([]byte(nil), b...)
	}
	if len(b)+checkpoint.PageSize > len(m.free) {
		m.free = make([]byte, max(logPortion, len(b)+checkpoint.PageSize))
	}
	n := pageUp(uint64(len(b)))
	c := m.free[:len(b):len(b)]
	_ = unix.Madvise(m.free[:n], unix.MADV_POPULATE_WRITE) // of Linux 5.14; it takes longer without
	m.free = m.free[n:]
	copy(c, b)
	return c
}
