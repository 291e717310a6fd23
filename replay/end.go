package replay

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

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
		if m.search {
			m.stopSearch()
		}
		if m.CPU.Retired == e.instr && m.CPU.RepIter == e.rep {
			m.ended = true
		}
		return nil
	}
	if m.search {
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
	m.search, m.hashing, m.misses = true, false, 0
	m.telling, m.tellPage, m.pageTries, m.lookAt, m.lessons = nil, checkpoint.PageEntry{}, 0, 0, 0
	m.armBreaks()
	_, err := m.matchEnd()
	return err
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

func (m *Machine) stopSearch() {
	m.search = false
	if m.hashing {
		m.hashing = false
		m.Mem.Hash(nil, 0)
	}
	m.armBreaks()
}

// sift tells the processor what the forced end looks like, so that it stops at
// the end's RIP only where the end can be, unless the user wants to stop there.
func (m *Machine) sift() {
	m.CPU.Sieve = nil
	if !m.search {
		return
	}
	want := &m.iv.End.Contexts[0].Regs
	if _, user := m.breaks[want.RIP]; user {
		return
	}
	m.CPU.Sieve = &x86.Sieve{PC: want.RIP, R: want.R, Words: m.telling}
	var x x86.State
	if img := m.iv.End.Contexts[0].XState; len(img) > 0 && x.SetXState(img, m.s.layout) == nil {
		m.CPU.Sieve.V = &x.V
	}
}

// matchEnd compares the present state with the recorded end.
func (m *Machine) matchEnd() (bool, error) {
	want := &m.iv.End.Contexts[0]
	if err := m.stepRep(want); err != nil {
		return false, err
	}
	got := loader.Regs(&m.CPU.State)
	if _, _, _, same := compareRegs(&want.Regs, &got); !same || m.tells() {
		return false, nil
	}
	if !m.sameXState(want.XState) || !m.sameMemory() {
		m.learn()
		return false, nil
	}
	m.iv.setEndPoint(endPoint{m.CPU.Retired, m.CPU.RepIter})
	m.stopSearch()
	m.ended = true
	return true, nil
}

// stepRep takes the iterations of the REP string instruction at RIP that lie
// between here and the recorded end, when the end can lie inside it: rcx tells
// how many, and where they lead to.
func (m *Machine) stepRep(want *checkpoint.Context) error {
	const rcx = 1
	c := m.CPU
	if c.RIP != want.Regs.RIP || !c.RepLeads(&want.Regs.R) {
		return nil
	}
	n := c.R[rcx] - want.Regs.R[rcx]
	for range n - c.StepRep(n) {
		rip := c.RIP
		if x := c.Step(); x != x86.ExitNone || c.RIP != rip {
			break
		}
	}
	return nil
}

// maxMisses is how many moments may have the registers of the end, but not its
// memory, before every store begins to keep the hash.
const maxMisses = 12

// sameMemory compares the additive hash of memory with the recorded one. In
// most programs the registers of the end come once, and the hash is made from the
// pages written so far; where they come again and again, each store keeps it.
func (m *Machine) sameMemory() bool {
	want := m.iv.End.MemHash
	if m.solver != nil {
		want -= m.solver.hashOpen()
	}
	if m.hashing {
		sum := m.Mem.Sum()
		return sum == want || sum+m.hashUnwritten() == want
	}
	sum := m.hashSinceStart()
	if sum == want || sum+m.hashUnwritten() == want {
		return true
	}
	if m.misses++; m.misses > maxMisses {
		m.hashing = true
		m.Mem.Hash(checkpoint.HashWord, sum)
	}
	return false
}

// hashUnwritten is what the recorder's hash has of private pages that the program
// had not written yet: one stopped in the page fault of a store owns its page
// already, and the store comes after the end. They weigh their content, minus
// what was at their address at the start.
func (m *Machine) hashUnwritten() uint64 {
	var sum uint64
	then := m.iv.start.Open()
	defer then.Close()
	var now, old mem.Page
	for _, e := range m.iv.End.Pages {
		if r, ok := m.Mem.Find(e.Addr); !ok || r.Shared || m.Mem.IsWritten(e.Addr) {
			continue
		}
		now, old = mem.Page{}, mem.Page{}
		m.Mem.Peek(e.Addr, now[:])
		peekPrivate(then, e.Addr, &old)
		sum += checkpoint.HashPage(e.Addr, now[:]) - checkpoint.HashPage(e.Addr, old[:])
	}
	return sum
}

// hashSinceStart returns the additive hash of what the interval has changed so far:
// of private pages that were written, what they hold minus what was private at
// their address at the start; of shared pages, at each of their addresses, what
// they hold minus what they held. The recorder's memHash has the whole rule.
func (m *Machine) hashSinceStart() uint64 {
	var sum uint64
	then := m.iv.start.Open()
	defer then.Close()
	var old mem.Page
	m.Mem.Written(m.iv.start, func(key uint64, _, now *mem.Page) {
		if now == nil {
			return
		}
		old = mem.Page{}
		if key < mem.MaxUser {
			peekPrivate(then, key, &old)
		} else {
			then.PeekKey(key, &old)
		}
		for _, a := range m.addresses(key) {
			sum += checkpoint.HashPage(a, now[:]) - checkpoint.HashPage(a, old[:])
		}
	})
	return sum - m.hashDropped(then)
}

// peekPrivate reads the page at a unless it is shared: then it is left alone.
func peekPrivate(s *mem.Space, a uint64, page *mem.Page) {
	if r, ok := s.Find(a); ok && !r.Shared {
		s.Peek(a, page[:])
	}
}

// hashDropped is the hash of the private pages the interval began with that were
// unmapped, dropped or replaced since and have not been written again.
func (m *Machine) hashDropped(then *mem.Space) uint64 {
	var sum uint64
	var old mem.Page
	seen := map[uint64]bool{}
	for _, d := range m.Mem.Dropped() {
		for _, e := range m.iv.src.Range(d[0], d[1]) {
			r, ok := m.Mem.Find(e.Addr)
			if seen[e.Addr] || ok && !r.Shared && m.Mem.IsWritten(e.Addr) {
				continue
			}
			seen[e.Addr] = true
			old = mem.Page{}
			peekPrivate(then, e.Addr, &old)
			sum += checkpoint.HashPage(e.Addr, old[:])
		}
	}
	return sum
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
	for i := range end.Contexts {
		want := &end.Contexts[i]
		if want.TID != m.tid {
			continue
		}
		got := loader.Regs(&m.CPU.State)
		if name, w, g, same := compareRegs(&want.Regs, &got); !same {
			return m.diverged(name+" at the interval's end", w, g)
		}
		if d := m.diffXState(want.XState); d != "" {
			return m.diverged("extended state at the interval's end: "+d, "", "")
		}
	}
	return m.checkPages(end.Pages)
}

// checkPages compares pages with the hashes recorded at the end.
func (m *Machine) checkPages(pages []checkpoint.PageEntry) error {
	hasher := checkpoint.NewPageHasher()
	var page mem.Page
	for _, e := range pages {
		n, f := m.Mem.Peek(e.Addr, page[:])
		if n != len(page) {
			return m.diverged(fmt.Sprintf("page %#x at the interval's end", e.Addr), "present", fmt.Sprintf("%v", f.Kind))
		}
		if got := hasher.Ref(page[:]); got != e.Ref {
			return m.diverged(fmt.Sprintf("content of page %#x at the interval's end%s", e.Addr, m.firstDifference(e.Ref, &page)),
				hex.EncodeToString(e.Ref.Hash[:4]), hex.EncodeToString(got.Hash[:4]))
		}
	}
	return nil
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
