package replay

import (
	"slices"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// A page with unknown bytes is accessed byte by byte, and some of them may stay
// unknown for long: the padding in stack frames, where XSAVE stored while the stack
// was deeper. A program that works on such a page replays fifty times slower. So when
// that has gone on for a while, all that is open is answered at once, with what the recorded end has
// in place of those bytes or else what was right last, and the page is whole again. The bytes are noted: those that have the
// assumed value at the end may not have been stored to since, so that the recorded page
// tells whether the answers were right. Where they were not, the replay goes back and
// takes the answers that the page tells, once; if it fails then, it goes on from there
// the slow way.

// patience is how many accesses to pages with unknown bytes there are before an
// assumption: a tenth of a second.
const patience = 1 << 21

// assumption is an answer to all that was open at a position.
type assumption struct {
	bytes     map[uint64][]assumedByte // that were unknown, by the page's key
	saves     []assumedSave
	corrected bool     // it is the second one at its position
	better    []uint64 // what the pages at the end say the bits of saves are, if not as assumed
}

type assumedByte struct {
	off          int  // in the page
	raw, assumed byte // what the byte has if nothing open stored to it, and by the assumption
}

// assumedSave is a save that was open.
type assumedSave struct {
	save       int
	open, bits uint64 // the components, and those that are in use by the assumption
}

// assume makes an assumption when unknown bytes have made the replay slow.
func (v *solver) assume() {
	if v.disproved || v.m.Mem.PartialAccesses-v.partial < patience {
		return
	}
	v.partial = v.m.Mem.PartialAccesses
	a := &assumption{}
	votes := v.votes()
	for i := range v.saves {
		if open := v.saves[i].open(); open != 0 {
			a.saves = append(a.saves, assumedSave{i, open, votes[i].bits(open, v.likely)})
		}
	}
	if len(a.saves) > 0 {
		v.keepAssumption(a)
	}
}

// vote counts, for the components of a save (bits of XSTATE_BV, those that programs have for the most part), the bytes that say that it was
// in use, and those that say that it was not. Zeros that say that it was are apart: half a stack is zeros, whoever stored them.
type vote struct{ yes, zeros, no counts }

// counts counts by component.
type counts [8]int

// headerVotes is what the byte that shows the components counts for.
const headerVotes = 64

// votes asks the bytes that are open what the recorded pages have in their places at the end: most of those that are not stored to
// again say which save was the last to store there. Others say nothing, or that a component was not in use.
func (v *solver) votes() []vote {
	out := make([]vote, len(v.saves))
	for _, p := range v.openPages(v.unknownBytes) {
		for _, u := range p.open {
			if b, ok := p.wants(u.off); ok {
				v.count(out, &u, b)
			}
		}
	}
	return out
}

// count counts what byte u says, which is b at the end.
func (v *solver) count(out []vote, u *openByte, b byte) {
	for _, p := range slices.Backward(u.cover) {
		s := &v.saves[p.save]
		if p.component == 0 {
			if rest := ^byte(s.Maybe); b&rest == u.raw&rest {
				out[p.save].yes.add(uint64(b)&s.Maybe, headerVotes)
				out[p.save].no.add(^uint64(b)&s.Maybe, headerVotes)
			}
			return
		}
		stored := p.bytes[u.off-p.off]
		if stored == u.raw {
			continue
		}
		if stored == b {
			says := &out[p.save].yes
			if b == 0 {
				says = &out[p.save].zeros
			}
			says.add(p.component, 1)
			return
		}
		out[p.save].no.add(p.component, 1)
	}
}

func (c *counts) add(components uint64, n int) {
	for i := range c {
		if components>>i&1 != 0 {
			c[i] += n
		}
	}
}

// bits returns those of the components open that were in use by the votes, or where these say little by likely. A byte that is stored to
// later says no, so a few that say yes are enough; but where much was stored later, zeros are as likely as not.
func (x *vote) bits(open, likely uint64) (bits uint64) {
	const few, most = 8, 4
	bits = likely & open &^ (1<<len(x.yes) - 1) // those there are no votes for
	for i := range x.yes {
		yes, zeros, no := x.yes[i], x.zeros[i], x.no[i]
		switch c := uint64(1) << i; {
		case open&c == 0:
		case yes >= few || yes > no || zeros > most*no:
			bits |= c
		case no <= most*zeros:
			bits |= likely & c
		}
	}
	return bits
}

// keepAssumption makes a, whose saves are open, as a choice that can be taken back.
func (v *solver) keepAssumption(a *assumption) {
	v.keepChoice(choice{assumed: a})
	unknown, at := map[uint64][]openByte{}, map[uint64]uint64{}
	for key := range v.pieces {
		at[key], unknown[key] = v.openBytes(key)
	}
	a.enforce(v)
	v.assumed = append(v.assumed, a)
	a.bytes = map[uint64][]assumedByte{}
	for key, list := range unknown {
		for _, u := range list {
			b, _ := v.value(u.cover, u.off, u.raw) // nothing is open any more
			v.m.Mem.Inject(at[key]+uint64(u.off), []byte{b})
			a.bytes[key] = append(a.bytes[key], assumedByte{u.off, u.raw, b})
		}
	}
}

// enforce makes the assumption's answers the solver's.
func (a *assumption) enforce(v *solver) {
	for _, x := range a.saves {
		s := &v.saves[x.save]
		s.decided |= x.open
		s.bits = s.bits&^x.open | x.bits
	}
}

// retract makes what was assumed open again.
func (a *assumption) retract(v *solver) {
	for _, x := range a.saves {
		s := &v.saves[x.save]
		s.decided &^= x.open
		s.bits &^= x.open
	}
}

// reopen retracts all assumptions, reassume enforces them again.
func (v *solver) reopen() {
	for _, a := range v.assumed {
		a.retract(v)
	}
}

func (v *solver) reassume() {
	for _, a := range v.assumed {
		a.enforce(v)
	}
}

// disprove goes back to where the newest choice, an assumption, was made, and makes a
// better one there, if there is one.
func (v *solver) disprove(c *choice) {
	a := c.assumed
	a.retract(v)
	v.m.Restore(c.snapshot)
	c.snapshot.Release()
	v.cut(c.saves)
	v.assumed = v.assumed[:len(v.assumed)-1]
	v.trail = v.trail[:len(v.trail)-1]
	v.partial = v.m.Mem.PartialAccesses
	if a.better == nil || a.corrected {
		v.disproved = true
		return
	}
	next := &assumption{saves: a.saves, corrected: true}
	for i := range next.saves {
		next.saves[i].bits = a.better[i]
	}
	v.keepAssumption(next)
}

// holds reports, at the interval's end, whether the recorded pages are as the
// assumptions have it. Where they are not, it notes what they say.
func (v *solver) holds() bool {
	wrong := false
	for _, p := range v.openPages(v.doubtful) {
		var raw mem.Page
		var known mem.Mask
		v.m.Mem.Raw(p.at, &raw, &known)
		for _, u := range p.open {
			b, ok := p.wants(u.off)
			wrong = wrong || ok && known.Has(u.off) && raw[u.off] != b
		}
		wrong = wrong || p.want == nil && known.All() && checkpoint.RefOf(&raw) != p.ref
	}
	if !wrong {
		return true
	}
	v.reopen()
	was := v.undecided()
	isResolved := v.resolve(v.openPages(v.openOrDoubtful))
	for _, a := range v.assumed {
		a.better = nil
		for _, x := range a.saves {
			if isResolved {
				a.better = append(a.better, v.saves[x.save].bits&x.open)
			}
		}
	}
	was.restore(v)
	v.reassume()
	return false
}

// openOrDoubtful returns the bytes of a page that are unknown, or were assumed.
func (v *solver) openOrDoubtful(key uint64) []openByte {
	return append(v.unknownBytes(key), v.doubtful(key)...)
}

// unknownBytes returns the bytes of a page that are unknown.
func (v *solver) unknownBytes(key uint64) []openByte {
	_, open := v.openBytes(key)
	return open
}

// doubtful returns the bytes of a page that may still be what an assumption made
// them: nothing has been stored to them since, or the same. The newest assumption
// counts.
func (v *solver) doubtful(key uint64) (out []openByte) {
	addrs := v.m.addresses(key)
	var raw mem.Page
	var known mem.Mask
	if len(addrs) == 0 || !v.m.Mem.Raw(addrs[0], &raw, &known) {
		return nil
	}
	seen := map[int]bool{}
	for _, a := range slices.Backward(v.assumed) {
		for _, b := range a.bytes[key] {
			if seen[b.off] || !known.Has(b.off) || raw[b.off] != b.assumed {
				continue
			}
			seen[b.off] = true
			if cover := v.covers(key, b.off); len(cover) > 0 {
				out = append(out, openByte{b.off, b.raw, cover})
			}
		}
	}
	return out
}

// hideDoubtful removes these bytes of the page at an address from those that are
// known.
func (v *solver) hideDoubtful(a uint64, known *mem.Mask) {
	if len(v.assumed) == 0 {
		return
	}
	key, ok := v.m.Mem.Key(a)
	if !ok {
		return
	}
	for _, u := range v.doubtful(key) {
		known[u.off/8] &^= 1 << (u.off % 8)
	}
}
