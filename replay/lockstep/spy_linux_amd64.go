package lockstep

import (
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// spy stands between the emulator and its memory and notes what an
// instruction stores. It lets no page into the processor's translation caches, so
// that it sees all.
type spy struct {
	x86.Bus
	space  *mem.Space
	stores []store
	bytes  []byte // what the stores replaced
	code   [15]byte
	codeN  int // bytes of code that were fetched at pc
	pc     uint64
}

// store is one store of the present instruction.
type store struct {
	addr uint64
	n    int
	old  int // where spy.bytes has what was there
}

// begin forgets the last instruction.
func (s *spy) begin() { s.stores, s.bytes, s.codeN = s.stores[:0], s.bytes[:0], 0 }

// FlushesCode implements x86.CodeFlusher: the bus behind does so.
func (s *spy) FlushesCode() {}

// Translate implements x86.Bus.
func (s *spy) Translate(a uint64, k x86.Access) (*[4096]byte, bool) {
	if k == x86.Store { // copying the page now would be for nothing
		k = x86.Load
	}
	p, _ := s.Bus.Translate(a, k)
	return p, false
}

// Write implements x86.Bus.
func (s *spy) Write(a uint64, b []byte) x86.Fault {
	at := len(s.bytes)
	s.bytes = append(s.bytes, b...)
	n, _ := s.space.Peek(a, s.bytes[at:])
	clear(s.bytes[at+n:]) // not captured: as memory.content has it
	f := s.Bus.Write(a, b)
	if f.Kind == x86.FaultNone {
		s.stores = append(s.stores, store{a, len(b), at})
	}
	return f
}

// Fetch implements x86.Bus.
func (s *spy) Fetch(a uint64, b []byte) (int, x86.Fault) {
	n, f := s.Bus.Fetch(a, b)
	if s.codeN == 0 {
		s.codeN, s.pc = copy(s.code[:], b[:n]), a
	}
	return n, f
}

// undo takes the stores back out of a copy of the page of key.
func (s *spy) undo(key uint64, page *mem.Page) {
	for i := len(s.stores) - 1; i >= 0; i-- {
		st := s.stores[i]
		for j := range st.n {
			a := st.addr + uint64(j)
			if k, ok := s.space.Key(a); ok && k == key {
				page[a%mem.PageSize] = s.bytes[st.old+j]
			}
		}
	}
}
