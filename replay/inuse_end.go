package replay

import (
	"maps"
	"slices"

	"vplay/checkpoint"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// What the solver's unknown bytes meet: loads, XRSTOR, and the pages at the interval's end.
// Which answers are tried in which order is in inuse_solve.go.

// read is called when the instruction at RIP cannot load the unknown byte at addr.
// It is true when the instruction was executed, or can be now.
func (v *solver) read(addr uint64) (bool, error) {
	if area, is := v.m.CPU.AtXRSTOR(); is && addr-area < areaHead && v.restores(area) {
		return true, v.restore(area)
	}
	key, _ := v.m.Mem.Key(addr)
	cover := v.covers(key, int(addr%mem.PageSize))
	for _, p := range slices.Backward(cover) {
		open := v.saves[p.save].open()
		if p.component != 0 {
			open &= p.component
		}
		if open != 0 {
			v.choose(p.save, open&-open)
			return true, nil
		}
	}
	return false, nil
}

// Offsets in an XSAVE area (SDM vol. 1, 13.4.1 and 13.4.2).
const (
	areaMXCSR    = 24
	areaMXCSREnd = 32
	areaXMM      = 160
	areaXMMEnd   = 416
	areaFormat   = x86.XSaveHeader + 15 // its top bit: the compacted format
	areaHead     = x86.XSaveHeader + 64
)

// restores reports whether an XRSTOR from an area leads to the same registers
// whatever the answers that are open: each component that may be in use has its
// initial state there, and those that need not be loaded do not matter.
func (v *solver) restores(area uint64) bool {
	header, isKnown := v.m.Mem.RawByte(area + x86.XSaveHeader)
	if !isKnown {
		key, _ := v.m.Mem.Key(area + x86.XSaveHeader)
		cover := v.covers(key, int((area+x86.XSaveHeader)%mem.PageSize))
		if len(cover) != 1 || cover[0].component != 0 {
			return false
		}
		n := cover[0].save
		s := &v.saves[n]
		if s.Area != area {
			return false
		}
		header |= byte(s.bits)
		for _, p := range s.Parts {
			if s.open()&p.Component != 0 && !v.isInitial(n, p) {
				return false
			}
		}
	}
	format, isKnown := v.m.Mem.RawByte(area + areaFormat)
	if !isKnown {
		return false
	}
	for o := range uint64(areaXMMEnd) {
		if _, isKnown := v.m.Mem.RawByte(area + o); isKnown {
			continue
		}
		component := byte(1)
		if o >= areaXMM || o >= areaMXCSR && o < areaMXCSREnd {
			component = 2
		}
		if header&component != 0 || o >= areaMXCSR && o < areaMXCSREnd && format>>7 == 0 {
			return false
		}
	}
	return true
}

// isInitial reports whether part p of save n is in its initial state in memory, if
// its component counts as in use.
func (v *solver) isInitial(n int, p x86.InUsePart) bool {
	for i, want := range p.Bytes {
		a := p.Addr + uint64(i)
		if b, isKnown := v.m.Mem.RawByte(a); isKnown {
			if b != want {
				return false
			}
			continue
		}
		key, _ := v.m.Mem.Key(a)
		cover := v.covers(key, int(a%mem.PageSize))
		if len(cover) == 0 || cover[len(cover)-1].save != n {
			return false
		}
	}
	return true
}

// restore executes an XRSTOR that restores allows, with no component in use that
// need not be.
func (v *solver) restore(area uint64) error {
	var lent []uint64
	for o := range uint64(areaHead) {
		b, isKnown := v.m.Mem.RawByte(area + o)
		if isKnown {
			continue
		}
		if o == x86.XSaveHeader {
			key, _ := v.m.Mem.Key(area + o)
			for _, p := range v.covers(key, int((area+o)%mem.PageSize)) {
				b |= byte(v.saves[p.save].bits)
			}
		}
		v.m.Mem.Inject(area+o, []byte{b})
		lent = append(lent, area+o)
	}
	before := v.m.CPU.Retired
	x := v.m.CPU.Step()
	for _, a := range lent {
		v.m.Mem.Unlearn(a, 1)
	}
	if v.m.CPU.Retired != before {
		v.m.step = 0
	}
	if x == x86.ExitFault {
		return v.m.onFault()
	}
	return nil
}

// openPage is a page with open bytes that the recording knows the end of.
type openPage struct {
	at   uint64
	open []openByte
	ref  checkpoint.PageRef
	want *mem.Page // nil: only the hash is known
	mask *mem.Mask // the bytes of want that are known; nil: all
}

// wants returns what the recording has of byte o of the page, false where it has not.
func (p *openPage) wants(o int) (byte, bool) {
	if p.want == nil || p.mask != nil && !p.mask.Has(o) {
		return 0, false
	}
	return p.want[o], true
}

// openPages returns the pages with bytes in question that were recorded at the end.
func (v *solver) openPages(inQuestion func(key uint64) []openByte) []openPage {
	var out []openPage
	for _, key := range slices.Sorted(maps.Keys(v.pieces)) {
		open := inQuestion(key)
		if len(open) == 0 {
			continue
		}
		for _, at := range v.m.addresses(key) {
			entries := v.m.iv.End.Pages
			i, found := slices.BinarySearchFunc(entries, at, func(e checkpoint.PageEntry, a uint64) int {
				if e.Addr < a {
					return -1
				}
				return int(min(e.Addr-a, 1))
			})
			if !found {
				continue
			}
			p := openPage{at: at, open: open, ref: entries[i].Ref}
			var want mem.Page
			if mask, err := v.m.s.Rec.Page(p.ref, &want); err == nil {
				p.want, p.mask = &want, (*mem.Mask)(mask)
			}
			out = append(out, p)
			break
		}
	}
	return out
}

// resolve answers what is open by the pages at the interval's end. Nothing in use
// can have stored other than what a byte has, unless something was stored later; what
// then is open may have been in use, and so it is: if the bytes have an explanation,
// that is one. It is false where a page is known by its hash alone and no
// content has it.
func (v *solver) resolve(pages []openPage) bool {
	for changed := true; changed; {
		changed = false
		for i := range pages {
			if p := &pages[i]; p.want != nil {
				for _, u := range p.open {
					if b, ok := p.wants(u.off); ok {
						changed = v.infer(&u, b) || changed
					}
				}
			}
		}
	}
	for i := range pages {
		if pages[i].want == nil && !v.byHash(&pages[i]) {
			return false
		}
	}
	for i := range v.saves {
		s := &v.saves[i]
		s.bits |= s.open()
		s.decided |= s.Maybe
	}
	return true
}

// infer answers what follows from a byte's value at the end, and reports whether
// anything did.
func (v *solver) infer(u *openByte, want byte) (changed bool) {
	for _, c := range slices.Backward(u.cover) {
		s := &v.saves[c.save]
		switch {
		case c.component == 0:
			changed = changed || s.open() != 0
			s.bits |= uint64(want) & s.open()
			s.decided |= s.Maybe
			return changed
		case s.open()&c.component != 0 && c.bytes[u.off-c.off] != want:
			s.decided |= c.component
			changed = true
		case s.open()&c.component != 0, s.bits&c.component != 0:
			return changed // stored here, or maybe
		}
	}
	return changed
}

// byHash tries the answers that a page depends on until its content has the hash
// that was recorded, and reports whether it found any.
func (v *solver) byHash(p *openPage) bool {
	type variable struct {
		save      *save
		component uint64
	}
	var vars []variable
	for _, u := range p.open {
		for _, c := range u.cover {
			s := &v.saves[c.save]
			for open := s.open(); open != 0; open &= open - 1 {
				x := variable{s, open & -open}
				if (c.component == 0 || c.component == x.component) && !slices.Contains(vars, x) {
					vars = append(vars, x)
				}
			}
		}
	}
	for _, x := range vars {
		x.save.decided |= x.component
	}
	for try := range uint64(maxByHash) {
		bits := try / 2
		if bits>>len(vars) != 0 {
			break
		}
		if try%2 == 1 { // from both ends: most often all were in use, or none
			bits = ^bits
		}
		for i, x := range vars {
			x.save.bits &^= x.component
			if bits>>i&1 != 0 {
				x.save.bits |= x.component
			}
		}
		if page, known := v.filled(p); checkpoint.RefOfPartial((*[512]byte)(&known), &page) == p.ref {
			return true
		}
	}
	return false
}

// filled returns a page by the present answers, and which of its bytes are known then.
func (v *solver) filled(p *openPage) (page mem.Page, known mem.Mask) {
	v.m.Mem.Raw(p.at, &page, &known)
	for _, u := range p.open {
		page[u.off], _ = v.value(u.cover, u.off, u.raw)
		known.AddRange(u.off, 1)
	}
	return page, known
}

// settle is called at the interval's end and answers all that is open there.
func (v *solver) settle() error {
	if len(v.assumed) > 0 && !v.holds() {
		return v.m.diverged("memory that depends on which state components were in use (XINUSE)", "", "as assumed")
	}
	pages := v.openPages(v.unknownBytes)
	v.settled = v.undecided()
	if !v.resolve(pages) {
		return v.m.diverged("memory that depends on which state components were in use (XINUSE)", "its hash", "no content that has it")
	}
	for i := range pages {
		p := &pages[i]
		page, _ := v.filled(p)
		for _, u := range p.open {
			v.m.Mem.Inject(p.at+uint64(u.off), page[u.off:u.off+1])
		}
	}
	return nil
}

// hashOpen is what the hash of memory lacks because bytes are open, if this is the
// interval's end.
func (v *solver) hashOpen() uint64 {
	pages := v.openPages(v.openOrDoubtful)
	if len(pages) == 0 {
		return 0
	}
	v.reopen()
	defer v.reassume()
	was := v.undecided()
	defer was.restore(v)
	if !v.resolve(pages) {
		return 0
	}
	var sum uint64
	for i := range pages {
		p := &pages[i]
		var raw mem.Page
		var known mem.Mask
		v.m.Mem.Raw(p.at, &raw, &known)
		page, _ := v.filled(p)
		key, _ := v.m.Mem.Key(p.at)
		for _, a := range v.m.addresses(key) {
			sum += checkpoint.HashPage(a, page[:]) - checkpoint.HashPage(a, raw[:])
		}
	}
	return sum
}

// undecided is what resolve is about to answer.
type undecided map[int]uint64

func (v *solver) undecided() undecided {
	u := undecided{}
	for i := range v.saves {
		if open := v.saves[i].open(); open != 0 {
			u[i] = open
		}
	}
	return u
}

// restore takes these answers back.
func (u undecided) restore(v *solver) {
	for i, open := range u {
		if i < len(v.saves) {
			v.saves[i].decided &^= open
			v.saves[i].bits &^= open
		}
	}
}
