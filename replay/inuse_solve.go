package replay

import (
	"fmt"
	"slices"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// The solver runs an interval with the answers left open. What depends on one is a
// byte that is not known (mem.Space.Unlearn): a store makes it known, and most are
// soon stored to. Three things need an answer:
//
//   - A load of such a byte, but not XRSTOR's where both answers give the same
//     registers, and XGETBV. A snapshot is taken, and the answer tried that was right
//     last. When the replay fails later, the other one is tried from that snapshot, the
//     newest first.
//   - A position that may be a forced end: its hash is of memory.
//   - The end: the recording has the content of each page written, or its hash.
//
// An answer that nothing ever asks for is arbitrary.

// Bounds of a search for answers. Each failure takes back one answer.
const (
	maxFailures = 1 << 10
	maxRedone   = 1 << 30 // instructions executed again
	maxChoices  = 1 << 12 // that can be taken back
	maxSaves    = 1 << 17 // instructions that ask
	maxByHash   = 1 << 16 // contents of a page whose hashes are tried
)

// solver looks for the answers of an interval.
type solver struct {
	m      *Machine
	saves  []save
	pieces map[uint64][]piece // by the page's key, in the order of saves
	stored map[string][]byte  // what saves store, each once
	trail  []choice
	likely uint64 // the components that counted as in use last

	settled undecided // what the end answered

	assumed   []*assumption // that are in force
	disproved bool          // one was wrong: none is made any more
	partial   uint64        // accesses to pages with unknown bytes up to the last one

	failures int
	redone   uint64

	best   map[uint64]uint64 // the answers that led to the end, or furthest
	reason string
	far    checkpoint.Position
}

// save is an instruction that asked.
type save struct {
	x86.InUse
	at            checkpoint.Position
	rip           uint64
	pages         []uint64 // keys
	decided, bits uint64   // components with an answer, and which are in use
}

// open returns the components without an answer.
func (s *save) open() uint64 { return s.Maybe &^ s.decided }

// piece is a stretch of bytes on one page that depend on a save.
type piece struct {
	save      int
	component uint64 // 0: the byte that shows the components
	off       int    // in the page
	bytes     []byte // stored if the component counts as in use
	known     bitSet // which bytes were known before
}

// bitSet is a set of small numbers.
type bitSet []uint64

func (b bitSet) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitSet) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }

// choice is an answer that was tried when something depended on it.
type choice struct {
	snapshot  *Snapshot
	saves     int // their number then
	save      int
	component uint64
	at        checkpoint.Position
	rip       uint64
	last      bool        // the other answer was tried before
	assumed   *assumption // instead of an answer for one component
}

func newSolver(s *Session, k *Snapshot) *solver {
	v := &solver{m: s.machineAt(k, s.Engine), pieces: map[uint64][]piece{}, stored: map[string][]byte{}}
	v.m.solver = v
	return v
}

// solve runs to the end with every combination of answers that something depends
// on, within bounds. On failure best has the answers that led furthest and reason
// says what could not be decided; the error is then the first attempt's.
func (v *solver) solve(interrupted func() bool) error {
	defer func() {
		for i := range v.trail {
			v.trail[i].snapshot.Release()
		}
	}()
	var first error
	for {
		err := v.m.finish(interrupted)
		if err == nil {
			v.keepBest()
			v.reason = ""
			return nil
		}
		if !Unmatched(err) {
			return err
		}
		if first == nil {
			first = err
		}
		if at := v.m.Position(); len(v.assumed) == 0 && (v.best == nil || v.far.Compare(at) < 0) {
			v.far = at
			v.keepBest()
			v.explain()
		}
		if !v.back() {
			return first
		}
	}
}

// keepBest notes the present answers.
func (v *solver) keepBest() {
	v.best = map[uint64]uint64{}
	for i := range v.saves {
		if s := &v.saves[i]; s.bits != 0 {
			v.best[s.at.Instr] = s.bits
		}
	}
}

// explain says what the present attempt depends on.
func (v *solver) explain() {
	if len(v.trail) == 0 {
		return
	}
	c := &v.trail[len(v.trail)-1]
	s := &v.saves[c.save]
	var code [15]byte
	n, _ := v.m.Mem.Peek(c.rip, code[:])
	if in, err := x86.DecodeInst(code[:n], c.rip, v.m.CPU.ID); err == nil {
		n = int(in.Len)
	}
	v.reason = fmt.Sprintf("at %s the instruction at rip %#x [% x] read what depends on which state components the CPU counted as in use (XINUSE) at %s, rip %#x: that is not recorded, and no answer that was tried replays",
		c.at, c.rip, code[:n], s.at, s.rip)
}

// back goes to the newest choice that has another answer, and takes it. It is
// false when none is left, or too much was tried.
func (v *solver) back() bool {
	v.settled.restore(v)
	v.settled = nil
	v.reassume()
	for len(v.trail) > 0 && v.failures < maxFailures && v.redone < maxRedone {
		c := &v.trail[len(v.trail)-1]
		if c.assumed != nil {
			v.disprove(c)
			return true
		}
		s := &v.saves[c.save]
		was := s.bits & c.component
		s.decided, s.bits = s.decided&^c.component, s.bits&^c.component
		if c.last {
			c.snapshot.Release()
			v.trail = v.trail[:len(v.trail)-1]
			continue
		}
		v.failures++
		v.redone += v.m.CPU.Retired - c.snapshot.Pos.Instr
		v.m.Restore(c.snapshot)
		v.cut(c.saves)
		c.last = true
		v.decide(c.save, c.component, was^c.component)
		return true
	}
	return false
}

// cut forgets the saves from the nth on.
func (v *solver) cut(n int) {
	for i := n; i < len(v.saves); i++ {
		for _, key := range v.saves[i].pages {
			ps := v.pieces[key]
			for len(ps) > 0 && ps[len(ps)-1].save >= n {
				ps = ps[:len(ps)-1]
			}
			v.pieces[key] = ps
		}
	}
	v.saves = v.saves[:n]
}

// ask executes the instruction at RIP, which asks which components are in use. A
// save stores as if none were, which makes the bytes unknown that another answer
// would have given another value; XGETBV needs its answer at once.
func (v *solver) ask() x86.Exit {
	c := v.m.CPU
	n := len(v.saves) - 1
	if n+1 >= maxSaves {
		return c.StepInUse(0)
	}
	if n < 0 || v.saves[n].at.Instr != c.Retired { // else it is executed again, by another answer
		v.saves = append(v.saves, save{InUse: c.InUse(), at: v.m.Position(), rip: c.RIP})
		n++
	}
	s := &v.saves[n]
	if s.Area == 0 {
		for s.open() != 0 {
			v.choose(n, s.open()&-s.open())
		}
		return c.StepInUse(s.bits)
	}
	before := c.Retired
	x := c.StepInUse(0)
	if c.Retired == before {
		return x
	}
	v.add(n, 0, s.Area+x86.XSaveHeader, []byte{0})
	if s.Optional {
		for _, p := range s.Parts {
			v.add(n, p.Component, p.Addr, p.Bytes)
		}
	}
	return x
}

// add adds the pieces of a range of bytes and makes them unknown, but those that
// are known to have the value that would be stored.
func (v *solver) add(n int, component, addr uint64, b []byte) {
	for len(b) > 0 {
		base := addr &^ (mem.PageSize - 1)
		off := int(addr - base)
		size := min(len(b), mem.PageSize-off)
		p := piece{save: n, component: component, off: off, bytes: v.same(b[:size]), known: make(bitSet, (size+63)/64)}
		var raw mem.Page
		var known mem.Mask
		v.m.Mem.Need(addr, size) // they stay what they were where a component does not count as in use
		v.m.Mem.Raw(base, &raw, &known)
		from := 0
		for i := range size {
			if known.Has(off + i) {
				p.known.add(i)
			}
			if component == 0 || known.Has(off+i) && raw[off+i] != b[i] {
				continue
			}
			v.m.Mem.Unlearn(addr+uint64(from), i-from)
			from = i + 1
		}
		v.m.Mem.Unlearn(addr+uint64(from), size-from)
		key, _ := v.m.Mem.Key(base)
		if component == 0 {
			v.pieces[key] = v.withoutHeader(key, off)
		}
		v.pieces[key] = append(v.pieces[key], p)
		if s := &v.saves[n]; !slices.Contains(s.pages, key) {
			s.pages = append(s.pages, key)
		}
		b, addr = b[size:], addr+uint64(size)
	}
}

// withoutHeader returns the pieces of a page without an older one of the byte that
// shows components, which a save to the same area stores anew. While a choice may be
// taken back it is needed.
func (v *solver) withoutHeader(key uint64, off int) []piece {
	ps := v.pieces[key]
	if len(v.trail) > 0 {
		return ps
	}
	for i := len(ps) - 1; i >= 0; i-- {
		if q := &ps[i]; q.component == 0 && q.off == off {
			v.saves[q.save].Parts = nil
			return slices.Delete(ps, i, i+1)
		}
	}
	return ps
}

// same returns b, or the equal bytes of an earlier save: there are few different.
func (v *solver) same(b []byte) []byte {
	if s, ok := v.stored[string(b)]; ok {
		return s
	}
	v.stored[string(b)] = b
	return b
}

// covers returns the pieces that byte o of a page, which is unknown, depends on:
// from the one that made it so.
func (v *solver) covers(key uint64, o int) []*piece {
	ps := v.pieces[key]
	var out []*piece
	for i := len(ps) - 1; i >= 0; i-- {
		p := &ps[i]
		if o < p.off || o >= p.off+len(p.bytes) {
			continue
		}
		out = append(out, p)
		if p.component == 0 || p.known.has(o-p.off) {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// value returns what an unknown byte, whose content is raw, is by the answers so
// far; ok is false where that is still open.
func (v *solver) value(cover []*piece, o int, raw byte) (b byte, ok bool) {
	b, ok = raw, true
	for _, p := range cover {
		s := &v.saves[p.save]
		switch stored := p.bytes[o-p.off]; {
		case p.component == 0:
			b, ok = raw&^byte(s.Maybe)|byte(s.bits), s.open() == 0
		case s.decided&p.component == 0:
			ok = ok && b == stored
		case s.bits&p.component != 0:
			b, ok = stored, true
		}
	}
	return b, ok
}

// choose answers for a component that something depends on now, with what was right
// last. The other answer is tried when this one fails.
func (v *solver) choose(n int, component uint64) {
	v.keepChoice(choice{save: n, component: component})
	v.decide(n, component, v.likely&component)
}

// keepChoice adds a choice, made now, to those that can be taken back.
func (v *solver) keepChoice(c choice) {
	if len(v.trail) == maxChoices {
		v.trail[0].snapshot.Release()
		v.trail = slices.Delete(v.trail, 0, 1)
	}
	c.snapshot, c.saves, c.at, c.rip = v.m.Save(), len(v.saves), v.m.Position(), v.m.CPU.RIP
	v.trail = append(v.trail, c)
}

// decide answers whether a component counts as in use in save n, and makes the
// bytes known that depend on nothing else.
func (v *solver) decide(n int, component, bits uint64) {
	s := &v.saves[n]
	s.decided |= component
	s.bits = s.bits&^component | bits
	v.likely = v.likely&^component | bits
	for _, key := range s.pages {
		at, open := v.openBytes(key)
		for _, u := range open {
			if b, ok := v.value(u.cover, u.off, u.raw); ok {
				v.m.Mem.Inject(at+uint64(u.off), []byte{b})
			}
		}
	}
}

// openByte is a byte that is unknown because of a save.
type openByte struct {
	off   int // in the page
	raw   byte
	cover []*piece
}

// openBytes returns these bytes of a page, and an address of the page.
func (v *solver) openBytes(key uint64) (at uint64, open []openByte) {
	var raw mem.Page
	var known mem.Mask
	addrs := v.m.addresses(key)
	if len(addrs) == 0 || !v.m.Mem.Raw(addrs[0], &raw, &known) {
		return 0, nil
	}
	for o := range raw {
		if known.Has(o) {
			continue
		}
		if cover := v.covers(key, o); len(cover) > 0 {
			open = append(open, openByte{o, raw[o], cover})
		}
	}
	return addrs[0], open
}
