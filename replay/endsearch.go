package replay

import (
	"fmt"
	"slices"
	"sort"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// A forced end is not at a place that both sides can name. So it is looked for by
// state, from the last event of its interval on: registers first, then extended state,
// then the additive hash of all memory.

// endSearch is the search of a machine for the forced end of its interval.
type endSearch struct {
	m    *Machine
	want *checkpoint.Context // the thread at the end

	hashing bool // each store keeps the hash of memory
	misses  int  // positions with the right registers and the wrong memory
	owned   []ownedPage
	asked   bool // owned is known
	err     error
	discriminators
}

// ownedPage is a private page that the recorder counted and that the program had not written where
// the search first looked at memory. hash is what the hash of memory gains when it is the program's own.
type ownedPage struct{ addr, hash uint64 }

// startSearch begins to look for the forced end, and looks at the current position.
func (m *Machine) startSearch() error {
	m.search = &endSearch{m: m, want: checkpoint.Running(m.iv.End.Contexts)}
	m.armBreaks()
	_, err := m.search.match()
	return err
}

// stop gives the search up, or ends it where it has found the end.
func (s *endSearch) stop() {
	s.m.search = nil
	if s.hashing {
		s.m.Mem.Hash(nil, 0)
	}
	s.m.armBreaks()
}

// isHere reports whether the machine is at the instruction of the end.
func (s *endSearch) isHere() bool { return s != nil && s.m.CPU.RIP == s.want.Regs.RIP }

// sift tells the processor what the end looks like, so that it stops at the end's RIP
// only where the end can be, unless the user wants to stop there.
func (s *endSearch) sift() {
	if s == nil {
		return
	}
	want := &s.want.Regs
	if _, user := s.m.breaks[want.RIP]; user {
		return
	}
	sieve := &x86.Sieve{PC: want.RIP, R: want.R, Words: s.words}
	var x x86.State
	if img := s.want.XState; len(img) > 0 && x.SetXState(img, s.m.s.layout) == nil {
		sieve.V = &x.V
	}
	s.m.CPU.Sieve = sieve
}

// match compares the present state with the recorded end.
func (s *endSearch) match() (bool, error) {
	m := s.m
	want := s.want
	if err := s.stepRep(); err != nil {
		return false, err
	}
	got := loader.Regs(&m.CPU.State)
	if _, _, _, same := compareRegs(&want.Regs, &got); !same || s.rulesOut() {
		return false, nil
	}
	if same := m.sameXState(want.XState) && s.sameMemory(); s.err != nil {
		return false, s.err
	} else if !same {
		s.learn()
		return false, nil
	}
	end := endPoint{m.CPU.Retired, m.CPU.RepIter}
	if m.isTurnBegin() && m.jumpsToItself() {
		end.instr++
	}
	m.iv.setEndPoint(end)
	s.stop()
	m.ended = end.instr == m.CPU.Retired
	return m.ended, nil
}

// isTurnBegin reports whether the thread has executed nothing since the last event, or the
// interval's beginning.
func (m *Machine) isTurnBegin() bool { return m.CPU.Retired == 0 || m.step > 0 }

// jumpsToItself reports whether the instruction at RIP is a JMP to its own beginning (SDM vol.
// 2A, JMP: EB cb and E9 cd). A thread in such a loop is in the state of the end before it has
// executed anything. It is said to have executed the jump once: else it would have no turn,
// and a breakpoint on the loop would not be hit. Where a slimmed recording lacks the
// instruction, the turn is empty as it was when it was slimmed.
func (m *Machine) jumpsToItself() bool {
	for _, jump := range []string{"\xeb\xfe", "\xe9\xfb\xff\xff\xff"} {
		b := make([]byte, len(jump))
		if n, _ := m.Mem.Peek(m.CPU.RIP, b); n == len(b) && string(b) == jump {
			return true
		}
	}
	return false
}

// stepRep takes the iterations of the REP string instruction at RIP that lie
// between here and the recorded end, when the end can lie inside it: rcx tells
// how many, and where they lead to.
func (s *endSearch) stepRep() error {
	const rcx = 1
	c, want := s.m.CPU, s.want
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

// maxMisses is how many positions may have the registers of the end, but not its
// memory, before every store begins to keep the hash.
const maxMisses = 12

// sameMemory compares the additive hash of memory with the recorded one. In
// most programs the registers of the end come once, and the hash is made from the
// pages written so far; where they come again and again, each store keeps it.
func (s *endSearch) sameMemory() bool {
	m := s.m
	want := m.iv.End.MemHash
	if m.solver != nil {
		want -= m.solver.hashOpen()
	}
	sum := s.hashNow()
	if sum == want || sum+s.hashOwned(false) == want {
		return true
	}
	s.misses++
	if m.guess && m.asked > 0 && s.guessFails() {
		s.err = m.diverged("memory at the interval's end, if no state component was in use beyond what the state says (XINUSE)", "its hash", "another")
		return false
	}
	if s.misses > maxMisses && !s.hashing {
		s.hashing = true
		s.owned = slices.DeleteFunc(s.owned, func(p ownedPage) bool { return m.Mem.IsWritten(p.addr) }) // sum has them
		m.Mem.Hash(checkpoint.HashWord, sum)
	}
	return false
}

// guessFails reports whether this is the end but for what the machine has guessed of state components: where the loop only comes by
// with the registers of the end, other pages differ, too. Many such positions are not looked at: a guess is to save time.
func (s *endSearch) guessFails() bool {
	pages := s.m.iv.End.Pages
	for i := range pages {
		if s.misses > maxMisses {
			break
		}
		if !s.m.doubted[pages[i].Addr] && s.pageDiffers(&pages[i]) {
			return false
		}
	}
	return true
}

// hashNow is the hash of what the interval has changed so far. Where each store keeps it, it
// lacks what becomes the program's own by its first store.
func (s *endSearch) hashNow() uint64 {
	if !s.hashing {
		return s.hashSinceStart()
	}
	return s.m.Mem.Sum() + s.hashOwned(true)
}

// hashOwned is what the hash gains by the private pages that the recorder counted, of those that the program has written
// since the search began, or those that it has not: one stopped in the page fault of a store owns
// its page already, and the store comes after the end.
func (s *endSearch) hashOwned(written bool) uint64 {
	if !s.asked {
		s.owned, s.asked = s.ownedPages(), true
	}
	var sum uint64
	for _, p := range s.owned {
		if s.m.Mem.IsWritten(p.addr) == written {
			sum += p.hash
		}
	}
	return sum
}

// ownedPages returns the pages of hashUnwritten that weigh something. A loop whose registers
// are the same each time asks millions of times, so it looks once: until the end the log has nothing more, and what is
// not written stays what it is.
func (s *endSearch) ownedPages() (list []ownedPage) {
	m := s.m
	then := m.iv.start.Open()
	defer then.Close()
	dropped := m.Mem.Dropped()
	var now, old mem.Page
	var known mem.Mask
	look := pageCharge{m: m, what: "pages at the end that were not written"}
	for _, e := range m.iv.End.Pages {
		if s.err = look.at(m.Mem.IsWritten(e.Addr)); s.err != nil {
			return nil
		}
		if r, ok := m.Mem.Find(e.Addr); !ok || r.Shared || m.Mem.IsWritten(e.Addr) {
			continue
		}
		now, old = mem.Page{}, mem.Page{}
		m.Mem.PeekRaw(e.Addr, &now, &known)
		hash := checkpoint.HashPage(e.Addr, now[:])
		if !m.iv.hasDropped(dropped, e.Addr) { // else hashDropped has subtracted it
			peekPrivate(then, e.Addr, &old)
			hash -= checkpoint.HashPage(e.Addr, old[:])
		}
		if hash != 0 {
			list = append(list, ownedPage{e.Addr, hash})
		}
	}
	return list
}

// hasDropped reports whether the interval began with a private page at addr and gave it up: it lies in one of the sorted ranges
// dropped.
func (iv *interval) hasDropped(dropped [][2]uint64, addr uint64) bool {
	i := sort.Search(len(dropped), func(i int) bool { return dropped[i][1] > addr })
	return i < len(dropped) && dropped[i][0] <= addr && len(iv.src.Range(addr, addr+mem.PageSize)) > 0
}

// hashSinceStart returns the additive hash of what the interval has changed so far:
// of private pages that were written, what they hold minus what was private at
// their address at the start; of shared pages, at each of their addresses, what
// they hold minus what they held. The recorder's memHash has the whole rule.
func (s *endSearch) hashSinceStart() uint64 {
	m := s.m
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
	return sum - s.hashDropped(then)
}

// peekPrivate reads the page at a unless it is shared: then it is left alone. Bytes that are not known are zeros.
func peekPrivate(s *mem.Space, a uint64, page *mem.Page) {
	if r, ok := s.Find(a); ok && !r.Shared {
		var known mem.Mask
		s.PeekRaw(a, page, &known)
	}
}

// hashDropped is the hash of the private pages the interval began with that were
// unmapped, dropped or replaced since and have not been written again.
func (s *endSearch) hashDropped(then *mem.Space) uint64 {
	m := s.m
	var sum uint64
	var old mem.Page
	for _, d := range m.Mem.Dropped() {
		rows := m.iv.src.Range(d[0], d[1])
		look := pageCharge{m: m, what: fmt.Sprintf("pages given up at %#x, look %d", d[0], s.misses)}
		for _, e := range rows {
			if s.err = look.at(m.Mem.IsWritten(e.Addr)); s.err != nil {
				return 0
			}
			r, ok := m.Mem.Find(e.Addr)
			if ok && !r.Shared && m.Mem.IsWritten(e.Addr) {
				continue
			}
			old = mem.Page{}
			peekPrivate(then, e.Addr, &old)
			sum += checkpoint.HashPage(e.Addr, old[:])
		}
	}
	return sum
}
