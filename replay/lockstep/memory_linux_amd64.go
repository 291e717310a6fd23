package lockstep

import (
	"syscall"

	"vplay/checkpoint"
	"vplay/checkpoint/abi/ptrace"
	"vplay/replay/mem"
)

// memory is what the child has of the machine's memory: a cache that fills
// when the CPU faults.
type memory struct {
	c     *child
	space *mem.Space
	// pages are the pages mapped in the child, with their keys.
	pages map[uint64]uint64
	// shared are the keys of shared pages whose content is in the memfd.
	shared map[uint64]bool
	undo   func(key uint64, page *mem.Page) // takes the stores of the present instruction back
}

// readAhead is how many pages around a missing one are brought in with it.
const readAhead = 16

// isShared reports whether a key of package mem is that of a shared page.
func isShared(key uint64) bool { return key >= mem.MaxUser }

// content copies what is known of the page at a, before the present
// instruction: the rest is zero. full says whether all is known, some whether
// anything is.
func (m *memory) content(a, key uint64, page *mem.Page) (full, some bool) {
	full = true
	for o := 0; o < len(page); {
		n, f := m.space.Peek(a+uint64(o), page[o:])
		o += n
		some = some || n > 0
		if f.Kind == mem.FaultNone {
			break
		}
		full = false
		if f.Kind != mem.FaultNotCaptured {
			return false, false
		}
		page[o] = 0
		o++
	}
	m.undo(key, page)
	return full, some
}

// load brings the page of address a, and known ones around it, into the child.
// It reports false when the machine has no such page, or the child has it: the
// fault is the guest's own.
func (m *memory) load(a uint64) (bool, error) {
	a &^= mem.PageSize - 1
	r, ok := m.space.Find(a)
	if _, have := m.pages[a]; have || !ok || r.Prot == 0 {
		return false, nil
	}
	lo := max(a&^(readAhead*mem.PageSize-1), r.Start)
	hi := min(a|(readAhead*mem.PageSize-1)+1, r.End)
	var run [readAhead]mem.Page
	page := func(a uint64) *mem.Page { return &run[a/mem.PageSize%readAhead] }
	if _, some := m.content(a, m.key(a), page(a)); !some {
		return false, nil
	}
	start, end := a, a+mem.PageSize
	for ; end < hi && m.fits(end, page(end)); end += mem.PageSize {
	}
	for ; start > lo && m.fits(start-mem.PageSize, page(start-mem.PageSize)); start -= mem.PageSize {
	}
	return true, m.mapRun(&r, start, end, page)
}

func (m *memory) key(a uint64) uint64 {
	k, _ := m.space.Key(a) // the caller has found a region there
	return k
}

// fits reports whether the page at a, of the region being loaded, can be
// brought in too.
func (m *memory) fits(a uint64, page *mem.Page) bool {
	if _, have := m.pages[a]; have {
		return false
	}
	full, _ := m.content(a, m.key(a), page)
	return full
}

// mapRun maps [start, end) of r in the child and fills it.
func (m *memory) mapRun(r *mem.Region, start, end uint64, page func(a uint64) *mem.Page) error {
	if m.c.stub >= start && m.c.stub < end {
		if err := m.c.moveStub(m.taken); err != nil {
			return err
		}
	}
	prot := syscall.PROT_READ // as mem has it: what can be written or executed can be read
	if r.Prot&mem.ProtWrite != 0 {
		prot |= syscall.PROT_WRITE
	}
	if r.Prot&mem.ProtExec != 0 {
		prot |= syscall.PROT_EXEC
	}
	if err := m.c.mmap(start, end-start, prot, r.Shared, m.key(start)); err != nil {
		return err
	}
	for a := start; a < end; a += mem.PageSize {
		k := m.key(a)
		if r.Shared && m.shared[k] {
			m.pages[a] = k
			continue
		}
		if err := m.write(a, k, page(a)); err != nil {
			return err
		}
		m.pages[a] = k
		if r.Shared {
			m.shared[k] = true
		}
	}
	return nil
}

// taken reports whether the machine has something mapped at a.
func (m *memory) taken(a uint64) bool {
	_, ok := m.space.Find(a)
	return ok
}

// write stores a page: a shared one in the memfd, because a write to the
// process would fail where the page is read-only.
func (m *memory) write(a, key uint64, page *mem.Page) error {
	fd, off := m.c.mem, a
	if isShared(key) {
		fd, off = m.c.shared, key
	}
	_, err := ptrace.WriteMem(fd, page[:], off)
	return err
}

// forget takes the pages of [start, end) away from the child.
func (m *memory) forget(start, end uint64) error {
	had := false
	if (end-start)/mem.PageSize < uint64(len(m.pages)) {
		for a := start; a < end; a += mem.PageSize {
			if _, have := m.pages[a]; have {
				delete(m.pages, a)
				had = true
			}
		}
	} else {
		for a := range m.pages {
			if a >= start && a < end {
				delete(m.pages, a)
				had = true
			}
		}
	}
	if !had || start >= end {
		return nil
	}
	return m.unmap(start, end)
}

// unmap spares the stub, which may lie in a range that the guest unmaps.
func (m *memory) unmap(start, end uint64) error {
	if m.c.stub >= start && m.c.stub < end {
		if err := m.c.moveStub(func(a uint64) bool { return a >= start && a < end || m.taken(a) }); err != nil {
			return err
		}
	}
	return m.c.unmap(start, end)
}

// forgetAll takes everything away from the child.
func (m *memory) forgetAll() error {
	clear(m.pages)
	clear(m.shared)
	l, err := m.c.maps()
	if err != nil {
		return err
	}
	for _, a := range l {
		if m.c.stub >= a.start && m.c.stub < a.end {
			continue
		}
		if err := m.c.unmap(a.start, a.end); err != nil {
			return err
		}
	}
	return nil
}

// follow makes the child's memory what event e, just applied to the machine,
// has made of the machine's.
func (m *memory) follow(e *checkpoint.Event) error {
	for i := range e.Maps {
		op := &e.Maps[i]
		if err := m.forget(op.Start, op.End); err != nil {
			return err
		}
		if op.Kind == checkpoint.MapOpMove {
			if err := m.forget(op.New, op.NewEnd); err != nil {
				return err
			}
		}
	}
	for _, w := range e.Writes {
		for a := w.Addr &^ (mem.PageSize - 1); a < w.Addr+uint64(len(w.Data)); a += mem.PageSize {
			if err := m.refresh(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// refresh writes the page at a again, if the child has it.
func (m *memory) refresh(a uint64) error {
	key, ok := m.space.Key(a)
	if _, have := m.pages[a]; !ok || !have && !m.shared[key] {
		return nil
	}
	var page mem.Page
	m.content(a, key, &page)
	return m.write(a, key, &page)
}

// differs compares the child's page at a with the machine's, after the present
// instruction, and returns the offset of the first byte that differs. Bytes that
// are not known do not take part.
func (m *memory) differs(a uint64) (offset int, is bool, err error) {
	var ours, theirs mem.Page
	if _, err := ptrace.ReadMem(m.c.mem, theirs[:], a); err != nil {
		return 0, false, err
	}
	n, f := m.space.Peek(a, ours[:])
	if f.Kind == mem.FaultNone && ours == theirs {
		return 0, false, nil
	}
	for o := 0; o < len(ours); {
		for ; o < n; o++ {
			if ours[o] != theirs[o] {
				return o, true, nil
			}
		}
		if o++; o < len(ours) {
			n, _ = m.space.Peek(a+uint64(o), ours[o:])
			n += o
		}
	}
	return 0, false, nil
}

// anyDiffers compares all pages of the child, the smallest address first.
func (m *memory) anyDiffers() (addr uint64, is bool, err error) {
	for a := range m.pages {
		if is && a > addr {
			continue
		}
		o, d, err := m.differs(a)
		if err != nil {
			return 0, false, err
		}
		if d {
			addr, is = a+uint64(o), true
		}
	}
	return addr, is, nil
}
