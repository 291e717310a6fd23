package replay

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// The end of an interval: noticing a forced end whose place is known, finding it when
// it is not, and comparing memory with what the recorder saw there. The search by state
// is in endsearch.go, the comparison of threads in thread.go.

// endPoint returns where the interval's forced end was found, or nil.
func (iv *interval) endPoint() *endPoint {
	iv.mu.Lock()
	defer iv.mu.Unlock()
	return iv.end
}

func (iv *interval) setEndPoint(e endPoint) {
	iv.mu.Lock()
	defer iv.mu.Unlock()
	iv.end = &e
}

// prepareEnd is called with no event due. Behind the last event of an interval
// with a forced end it either notices that the known end is here, or begins
// the search for it by state: registers first, then extended state, then the
// additive hash of all memory.
func (m *Machine) prepareEnd() error {
	if m.next < len(m.iv.Events) || !m.iv.End.Forced || m.ended {
		return nil
	}
	if e := m.iv.endPoint(); e != nil {
		if m.search != nil {
			m.search.stop()
		}
		if m.CPU.Retired == e.instr && m.CPU.RepIter == e.rep {
			m.ended = true
		}
		return nil
	}
	if m.search != nil {
		return nil
	}
	if m.endFirst {
		if err := m.findEnd(); err != nil {
			return err
		}
		return m.prepareEnd()
	}
	if len(m.iv.End.Contexts) == 0 {
		return fmt.Errorf("replay: interval %d: a forced end without registers", m.iv.ID)
	}
	return m.startSearch()
}

// errInterrupted says that a search was interrupted from outside.
var errInterrupted = errors.New("replay: interrupted")

// findEnd runs ahead to the forced end, so that its place is known, and comes
// back. Only then can one move about before it in any step: the search stops
// only where it may be, and takes iterations of a REP instruction at once.
func (m *Machine) findEnd() error {
	k := m.Save()
	defer k.Release()
	breaks, watches := m.breaks, m.Mem.Watches()
	m.breaks, m.endFirst = nil, false
	m.armBreaks()
	if len(watches) > 0 {
		m.Mem.SetWatches(nil)
	}
	r, err := m.Run(Never, false)
	m.breaks, m.endFirst = breaks, true
	m.Restore(k)
	m.armBreaks()
	if len(watches) > 0 {
		m.Mem.SetWatches(watches)
	}
	switch {
	case err != nil:
		return err
	case r == StopInterrupt:
		return errInterrupted
	case m.iv.endPoint() == nil:
		return m.diverged("end of the interval not found by state", "", "")
	}
	return nil
}

// addresses returns every address of a page key.
func (m *Machine) addresses(key uint64) []uint64 {
	if key < mem.MaxUser {
		return []uint64{key}
	}
	return m.Mem.AddressesOf(key)
}

// CheckEnd compares the state at the interval's end with what the recorder
// saw: every thread's registers and extended state, and the hash of each page
// written. The error is a *DivergenceError with the first difference.
func (m *Machine) CheckEnd() error {
	if !m.AtEnd() {
		return m.diverged("the interval's end was not reached", "", "")
	}
	end := &m.iv.End
	if err := m.checkThreads(end.Contexts); err != nil {
		return err
	}
	return m.checkPages(end.Pages)
}

// checkPages compares pages with the hashes recorded at the end.
func (m *Machine) checkPages(pages []checkpoint.PageEntry) error {
	hasher := checkpoint.NewPageHasher()
	var page mem.Page
	var known mem.Mask
	look := pageCharge{m: m, what: "pages at the end"}
	for _, e := range pages {
		if err := look.at(m.Mem.IsWritten(e.Addr)); err != nil {
			return err
		}
		isMapped := m.Mem.PeekRaw(e.Addr, &page, &known)
		if !isMapped && e.Ref == hasher.Ref(zeroes[:]) && m.Mem.Grow(e.Addr, stackLimit) {
			continue // the kernel has grown the stack for an instruction that was not executed any more
		}
		if !isMapped {
			return m.diverged(fmt.Sprintf("page %#x at the interval's end", e.Addr), "present", fmt.Sprintf("%v", mem.FaultNotMapped))
		}
		var got checkpoint.PageRef
		switch isWhole := known.All(); {
		case isWhole:
			got = hasher.Ref(page[:])
		case !m.iv.FirstLoads:
			return m.diverged(fmt.Sprintf("page %#x at the interval's end", e.Addr), "present", fmt.Sprintf("%v", mem.FaultNotCaptured))
		default:
			got = checkpoint.RefOfPartial((*[512]byte)(&known), &page)
		}
		if got != e.Ref {
			return m.diverged(fmt.Sprintf("content of page %#x at the interval's end%s", e.Addr, m.firstDifference(e.Ref, &page)),
				hex.EncodeToString(e.Ref.Hash[:4]), hex.EncodeToString(got.Hash[:4]))
		}
	}
	return nil
}

// zeroes is an empty page.
var zeroes mem.Page

const (
	// comparedPage is the work of looking at one page, of a million that a file names, in
	// bytes.
	comparedPage = 2048
	// pagesPerCharge is how many pages are looked at between two charges; the last that
	// are fewer are free.
	pagesPerCharge = 1024
)

// pageCharge charges the budget, the first time that an interval is replayed, for the way
// through pages that the file names. Those that the program wrote cost nothing: it took
// instructions to write them.
type pageCharge struct {
	m       *Machine
	what    string
	seen, n int // pages, and those of them that cost something
}

// at is called for each page.
func (c *pageCharge) at(isWritten bool) error {
	if c.seen++; c.seen%pagesPerCharge == 0 {
		if err := c.m.s.Rec.Budget().Context().Err(); err != nil {
			return err
		}
	}
	if isWritten {
		return nil
	}
	if c.n++; c.n%pagesPerCharge != 0 {
		return nil
	}
	return c.m.s.Rec.Spend(comparedPage*pagesPerCharge, fmt.Sprintf("interval %d: %s, %d of them", c.m.iv.ID, c.what, c.n))
}

// firstDifference says where a page differs, when the recording holds the
// wanted content.
func (m *Machine) firstDifference(ref checkpoint.PageRef, got *mem.Page) string {
	var want mem.Page
	if ref.Kind != checkpoint.PageZero {
		if mask, err := m.s.Rec.Page(ref, &want); err != nil || mask != nil {
			return ""
		}
	}
	for i := range want {
		if want[i] != got[i] {
			n := min(i+16, len(want))
			return fmt.Sprintf(", first at offset %#x: recorded % x, replayed % x (equal: %t)", i, want[i:n], got[i:n], bytes.Equal(want[:], got[:]))
		}
	}
	return ""
}
