//go:build linux && amd64

package record

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Memory for the log of the agents. A program that reads or writes much fills it at gigabytes a second, and most of what
// that costs are page faults, one for each 4 KiB. So the kernel is asked for all pages of a piece at once, which costs a third,
// and the memory of intervals that are dropped is used again, which costs nothing. The collector has no part in it: it would clear
// what it hands out again.

// logMemory hands out pieces of portions. The zero value is ready to use.
type logMemory struct {
	filling  *logPortion
	portions []*logPortion // that are mapped
	free     []*logPortion // of these, those without pieces
}

// logPortion is memory for pieces, which follow each other.
type logPortion struct {
	mem     []byte
	used    int // bytes that were handed out
	touched int // that have been, at any time: their pages are there
	pieces  int // that are in use
}

const (
	smallLog       = 16 << 10 // what is less is the collector's: pieces begin with a page
	logPortionSize = 4 << 20
)

// clone returns a copy of b, and the portion that it is in: nil where the collector takes care of it, else the copy is valid
// until the portion is released.
func (m *logMemory) clone(b []byte) ([]byte, *logPortion) {
	p := m.room(len(b))
	if p == nil {
		return append([]byte(nil), b...), nil
	}
	end := p.used + int(pageUp(uint64(len(b))))
	if end > p.touched {
		fresh := p.mem[max(p.touched, p.used):end]
		_ = unix.Madvise(fresh, unix.MADV_POPULATE_WRITE) // of Linux 5.14; it takes longer without
		p.touched = end
	}
	c := p.mem[p.used : p.used+len(b) : p.used+len(b)]
	p.used = end
	p.pieces++
	copy(c, b)
	return c, p
}

// room returns a portion with room for a piece of n bytes, or nil if that is to be the collector's.
func (m *logMemory) room(n int) *logPortion {
	if n < smallLog || n > logPortionSize {
		return nil
	}
	if p := m.filling; p != nil && n <= len(p.mem)-p.used {
		return p
	}
	full := m.filling
	m.filling = nil
	if full != nil && full.pieces == 0 { // all were released
		full.used = 0
		m.free = append(m.free, full)
	}
	if last := len(m.free) - 1; last >= 0 {
		m.filling, m.free = m.free[last], m.free[:last]
		return m.filling
	}
	mem, err := unix.Mmap(-1, 0, logPortionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil
	}
	m.filling = &logPortion{mem: mem}
	m.portions = append(m.portions, m.filling)
	return m.filling
}

// release says that a piece of p, which may be nil, is not used any more.
func (m *logMemory) release(p *logPortion) {
	if p == nil {
		return
	}
	p.pieces--
	if p.pieces > 0 || p == m.filling {
		return
	}
	p.used = 0
	m.free = append(m.free, p)
}

// trim gives memory back to the system of which more is free than in use.
func (m *logMemory) trim() {
	for len(m.free) > len(m.portions)/2 {
		last := len(m.free) - 1
		m.unmap(m.free[last])
		m.free = m.free[:last]
	}
}

// close gives everything back. No piece is used any more.
func (m *logMemory) close() {
	for len(m.portions) > 0 {
		m.unmap(m.portions[0])
	}
	*m = logMemory{}
}

func (m *logMemory) unmap(p *logPortion) {
	m.portions = slices.DeleteFunc(m.portions, func(o *logPortion) bool { return o == p })
	_ = unix.Munmap(p.mem) // it is mapped
}

// dropLog gives up the memory of the interval's calls by the agent, unless that is retained. The interval is written, or dropped.
func (s *session) dropLog(l *interval) {
	if l == nil || l.retained > 0 {
		return
	}
	for i := range l.calls {
		s.logMemory.release(l.calls[i].from)
		for _, f := range l.calls[i].held {
			f.unuse()
		}
	}
	l.calls = nil
}
