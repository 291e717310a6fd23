package mem

// A page that is mapped and that the kernel cannot give: behind the end of its file, whose size may have changed since it was
// mapped, or of a file system that is full or cannot be read. No map tells of it, and a recording knows it by the fault
// alone. So who replays says which page it is, and for how long.

// noPage is the address of no page.
const noPage = 1

// SetBusError has accesses to the page of address a fail with FaultBeyondEOF, and those to the page that did before go on.
func (s *Space) SetBusError(a uint64) { s.setBusError(a &^ (PageSize - 1)) }

// ClearBusError has accesses to all pages go on.
func (s *Space) ClearBusError() { s.setBusError(noPage) }

// IsBusError reports whether address a is on the page that SetBusError has named.
func (s *Space) IsBusError(a uint64) bool { return s.busError == a&^(PageSize-1) }

func (s *Space) setBusError(page uint64) {
	old := s.busError
	if old == page {
		return
	}
	s.busError = page
	for _, a := range []uint64{old, page} {
		if r := s.find(a); r != nil && a != noPage {
			s.flushKey(r, a, s.key(r, a))
		}
	}
}
