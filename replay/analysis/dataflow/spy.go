package dataflow

import (
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// Access is an access to memory that was watched.
type Access struct {
	Addr   uint64
	N      int // bytes
	Stores bool
}

// Spy stands between the CPU and its memory while an instruction is executed whose accesses
// cannot be told from its operands.
type Spy struct {
	x86.Bus     // nil: nothing is watched
	Most    int // how many accesses are kept, those that go on from one to the next counted once
	Count   int // that there were, until somebody sets it to 0
	seen    []Access
}

// Begin watches from now on what c accesses.
func (s *Spy) Begin(c *x86.CPU) {
	s.seen = nil
	s.Bus = c.Bus
	c.SetBus(s)
}

// IsOn reports whether something is watched.
func (s *Spy) IsOn() bool { return s.Bus != nil }

// End returns what was accessed; the caller may keep it.
func (s *Spy) End(c *x86.CPU) []Access {
	c.SetBus(s.Bus)
	s.Bus = nil
	return s.seen
}

// note adds an access.
func (s *Spy) note(a uint64, n int, stores bool) {
	if l := len(s.seen); l > 0 {
		last := &s.seen[l-1]
		if end := last.Addr + uint64(last.N); last.Stores == stores && end == a && a%mem.PageSize != 0 {
			last.N += n
			return
		}
	}
	if s.Count++; s.Count <= s.Most {
		s.seen = append(s.seen, Access{a, n, stores})
	}
}

// FlushesCode says what the bus behind says, see x86.CodeFlusher.
func (s *Spy) FlushesCode() {}

// Translate lets no page into the CPU's caches.
func (s *Spy) Translate(a uint64, k x86.Access) (*[4096]byte, bool) {
	if k == x86.Store {
		k = x86.Load // a copy of the page would be for nothing
	}
	p, _ := s.Bus.Translate(a, k)
	return p, false
}

// Read implements x86.Bus.
func (s *Spy) Read(a uint64, b []byte) x86.Fault {
	s.note(a, len(b), false)
	return s.Bus.Read(a, b)
}

// Write implements x86.Bus.
func (s *Spy) Write(a uint64, b []byte) x86.Fault {
	s.note(a, len(b), true)
	return s.Bus.Write(a, b)
}
