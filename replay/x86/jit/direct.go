//go:build linux && amd64

package jit

import "vplay/replay/x86"

// Accesses without a check: the guest's address and what is added for its part are the host's address (windows.go). What
// may not be accessed faults, and comes to Go as a site's way out does. What is added comes from the table of windows, or is a number
// in the code that the part is compared with: then nobody waits for a load, but flags are lost.
//
//	base     rorx rax, base, 40; movzx eax, al; mov r15, [rsp+8*rax+table]; the instruction with [r15+base+disp]
//	guessed  mov r15, added; rorx rax, base, 40; cmp al, part; jne other; the instruction with [r15+base+disp]
//	address  lea r15, ea; rorx rax, r15, 40; movzx eax, al; mov rax, [rsp+8*rax+table]; lea r15, [r15+rax]; the instruction with [r15]
//	guessed  lea r15, ea; rorx rax, r15, 40; cmp al, part; mov rax, added; jne other; lea r15, [r15+rax]; the instruction with [r15]
//	indexed  lea rax, ea; mov r15, added; rorx rax, rax, 40; cmp al, part; jne other; lea r15, [r15+base]; the instruction with [r15+index*scale+disp]
//	other    movzx eax, al; mov r15 or rax, [rsp+8*rax+table]; and back
//
// What is in r15 is good for other accesses from the same base, while that keeps its value or is a stack pointer that moves by known distances: it
// is kept in the word of an anchor, too. It may lead out of its part by that, which is what the guards
// of windows are for.

// checkedAfter is how often an access of a unit must fail because of a page that may not be mapped, before there is
// a unit in its place that checks each access.
const checkedAfter = 8

// refusedAfter is how many accesses to a page must fail before each place that makes one is believed at once, and maxRetries how often
// those that are checked are tried again. So many pages and so many places are remembered.
const (
	refusedAfter = 16
	maxRetries   = 8
	maxRefusals  = 1 << 12
	maxPlaces    = 1 << 16
)

// directBase is what is known of the accesses from one base register.
type directBase struct {
	slot   int8 // of the anchor that keeps what is added, -1 where there is one access alone
	isLive bool // the anchor has been set
}

// noBase says that r15 has nothing that is added to a base register.
const noBase = -1

// findBases finds the base registers from which there are several accesses, in place of findReaches.
func (t *translator) findBases() {
	t.within, t.changed, t.lookups = noBase, 0, t.lookups[:0]
	var n [16]int
	for i := range t.u.insts {
		t.i, t.in = i, &t.u.insts[i]
		t.f = &t.rows[t.in.Row]
		if base, _, ok := t.accessed(); ok && !t.isBeside(base) && t.emitted(t.in) && t.isDirect() {
			n[base]++
		}
	}
	slot := int8(0)
	for i := range t.reaches {
		if t.reaches[i].n > 0 {
			slot++
		}
	}
	for r := range t.bases {
		t.bases[r] = directBase{slot: -1}
		if n[r] > 1 && slot < maxAnchors {
			t.bases[r].slot = slot
			slot++
		}
	}
}

// isDirect reports whether the access of the instruction may go without a check.
func (t *translator) isDirect() bool {
	if !t.direct || t.spillsRCX() || t.isChecked(t.i) {
		return false
	}
	base, _, ok := t.accessed()
	return !ok || t.checkedBases>>base&1 == 0
}

// isChecked reports whether accesses of instruction i have failed often.
func (t *translator) isChecked(i int) bool { return t.e.checked[t.u.pc+uint64(t.at[i])] }

// findChecked finds the base registers whose accesses are all checked, because one of them is: so that they are one reach.
func (t *translator) findChecked() {
	t.checkedBases = 0
	if !t.direct || len(t.e.checked) == 0 {
		return
	}
	for i := range t.u.insts {
		t.i, t.in = i, &t.u.insts[i]
		t.f = &t.rows[t.in.Row]
		if t.isChecked(i) {
			t.u.checks = true
			if base, _, ok := t.accessed(); ok {
				t.checkedBases |= 1 << base
			}
		}
	}
}

// directSite notes that the instruction may fault at an access.
func (t *translator) directSite() {
	s := t.site()
	x := t.e.sites.at(s.id)
	x.direct, x.native = true, s.flags.native && !s.flags.saved
}

// directFrom makes place what is disp bytes from guest register base.
func (t *translator) directFrom(base uint8, disp int32) {
	if t.isBeside(base) {
		t.directSite()
		t.place = memory{base: stackPointer, index: none, segment: true, disp: disp}
		return
	}
	h, b := hostOf[base], &t.bases[base]
	if t.within != int(base) && !b.isLive {
		g := t.guessFrom(base)
		t.directSite()
		if h != none {
			t.lookUp(address, h, g)
		} else {
			t.mem(opMov, address, t.guest(base))
			t.inWindow(g)
		}
		if b.slot >= 0 {
			t.mem(opMovTo, address, t.word(wordAnchor+int(b.slot)))
			b.isLive = true
		}
	} else {
		t.directSite()
		if t.within != int(base) {
			t.overwrites(address)
			t.mem(opMov, address, t.word(wordAnchor+int(b.slot)))
		}
	}
	t.within = int(base)
	if t.place = at(address, disp); h != none {
		t.place.index = h
	}
}

// directOperand makes place the memory operand of the instruction.
func (t *translator) directOperand() {
	in := t.in
	if base, m, ok := t.accessed(); ok && t.f.stack == 0 {
		t.directFrom(base, m.at)
		return
	}
	w := t.e.windows
	if isAbsolute(in) && in.Seg != x86.FS && in.Seg != x86.GS && w.has(uint64(in.Disp)) {
		t.directSite()
		t.overwrites(address)
		t.load64(address, uint64(w.host(uint64(in.Disp))))
		t.place = at(address, 0)
		return
	}
	var g guess
	switch {
	case in.Seg == x86.FS:
		g = t.guessOf(t.c.FSBase)
	case in.Seg == x86.GS:
		g = t.guessOf(t.c.GSBase)
	case in.Base < 16:
		g = t.guessFrom(in.Base)
	default:
		g = t.guessOf(0)
	}
	t.directSite()
	if g.ok && t.directIndexed(g) {
		return
	}
	t.effective(address)
	switch in.Seg {
	case x86.FS:
		t.mem(opMov, scratch, at(rsp, t.layout.FSBase))
		t.mem(opLea, address, memory{base: address, index: scratch})
	case x86.GS:
		t.mem(opMov, scratch, at(rsp, t.layout.GSBase))
		t.mem(opLea, address, memory{base: address, index: scratch})
	}
	t.inWindow(g)
	t.place = at(address, 0)
}

// directIndexed makes place the memory operand, if it has an index. The part of its address is looked at beside the access: who waits for the index
// waits for nothing else. Its host's address is made of the same summands, so it is in the window, or faults, as any other.
func (t *translator) directIndexed(g guess) bool {
	in := t.in
	if in.Index == x86.NoReg || hostOf[in.Index] == none || in.Seg == x86.FS || in.Seg == x86.GS {
		return false
	}
	t.effective(scratch)
	t.overwrites(address)
	t.load64(address, t.e.windows.table[g.part])
	t.part(scratch)
	t.bytes(0x3c, g.part) // cmp al, part
	t.lookups = append(t.lookups, coldLookup{jump: t.jcc(ifNotEqual), back: t.n, to: address})
	switch {
	case in.Base == x86.NoReg:
	case hostOf[in.Base] != none:
		t.mem(opLea, address, memory{base: address, index: hostOf[in.Base]})
	default:
		t.mem(opAdd, address, t.guest(in.Base))
	}
	t.place = memory{base: address, index: hostOf[in.Index], scale: in.Scale, disp: int32(in.Disp)}
	return true
}

// isAbsolute reports whether the memory operand is at an address that is known.
func isAbsolute(in *x86.Inst) bool {
	return in.Base == x86.RIPReg || in.Base == x86.NoReg && in.Index == x86.NoReg
}

// guess is the part that an address is in for the most part, if flags may be lost to find out whether it is.
type guess struct {
	part uint8
	ok   bool
}

// guessFrom guesses by what guest register n has while the unit is translated, which is when it is about to be entered.
func (t *translator) guessFrom(n uint8) guess {
	a := t.c.R[n]
	if t.changed>>n&1 != 0 {
		a = 0
	}
	return t.guessOf(a)
}

// guessOf guesses the part of address a, or of any where a has no window, and makes the flags ready.
func (t *translator) guessOf(a uint64) guess {
	w := t.e.windows
	if !w.has(a) {
		a = w.likely()
	}
	if !w.has(a) || !t.mayCompare() {
		return guess{}
	}
	t.save()
	t.lost()
	return guess{partOf(a), true}
}

// mayCompare reports whether it costs nothing to lose the host's flags here.
func (t *translator) mayCompare() bool {
	s := &t.flags
	switch {
	case !s.native:
		return s.saved || s.recipe.kind != noRecipe
	case s.recipe.kind == noRecipe || !t.keeps():
		return false
	}
	for i := t.i; i < len(t.u.insts); i++ {
		f := &t.rows[t.u.insts[i].Row]
		switch {
		case f.reads || f.writes && f.partly:
			return false
		case f.writes:
			return true
		}
	}
	return true
}

// coldLookup is what follows on a guess that was wrong.
type coldLookup struct {
	jump, back int
	to         uint8
}

// part sets al to the part of the address in register r of the host.
func (t *translator) part(r uint8) {
	t.bytes(0xc4, 0xe3&^(r>>3<<5), 0xfb, 0xf0, 0xc0|r&7, windowShift) // rorx rax, r, 40
}

// lookUp sets register to to what is added to the address in register r of the host. scratch is lost.
func (t *translator) lookUp(to, r uint8, g guess) {
	if to != scratch {
		t.overwrites(to)
	}
	if g.ok && to != scratch {
		t.load64(to, t.e.windows.table[g.part])
	}
	t.part(r)
	if !g.ok {
		t.fromTable(to)
		return
	}
	t.bytes(0x3c, g.part) // cmp al, part
	jump := t.jcc(ifNotEqual)
	if to == scratch {
		t.load64(scratch, t.e.windows.table[g.part])
	}
	t.lookups = append(t.lookups, coldLookup{jump: jump, back: t.n, to: to})
}

// fromTable sets register to to what the table has for the part in al.
func (t *translator) fromTable(to uint8) {
	t.bytes(0x0f, 0xb6, 0xc0) // movzx eax, al
	t.mem(opMov, to, memory{base: rsp, index: scratch, scale: 3, disp: t.layout.HostTable})
}

// coldLookups emits what follows on wrong guesses.
func (t *translator) coldLookups() {
	for _, l := range t.lookups {
		t.patch(l.jump, t.n)
		t.fromTable(l.to)
		t.jmpTo(l.back)
	}
	t.lookups = t.lookups[:0]
}

// inWindow makes the host's address of the guest's in address.
func (t *translator) inWindow(g guess) {
	t.lookUp(scratch, address, g)
	t.overwrites(address)
	t.mem(opLea, address, memory{base: address, index: scratch})
}

// losesBases is called behind each instruction: what it has written is another base now.
func (t *translator) losesBases(isHandled bool) {
	if !t.direct {
		return
	}
	w := t.f.written(t.in)
	if isHandled {
		w = 0xffff
	} else if _, ok := stackMove(t.in, t.f); ok {
		w &^= 1 << x86.RSP
	}
	t.changed |= w
	for r := range t.bases {
		if w>>r&1 != 0 {
			t.bases[r].isLive = false
			if t.within == r {
				t.within = noBase
			}
		}
	}
}

// keptBase returns the base whose anchor is in address behind the instruction, if what leaves there can load it again; else noBase.
func (t *translator) keptBase() int {
	if t.within != noBase && !t.bases[t.within].isLive {
		t.within = noBase
	}
	return t.within
}

// Faults at such accesses.

// The numbers of #GP, which is for an address that is not canonical or an operand that is not aligned, and #PF, and the bit of
// its error code for a store (SDM volume 3, 4.7 and 6.15).
const (
	trapGP     = 13
	trapPF     = 14
	faultStore = 2
)

// directSite returns the number of the site of instruction i of u if generated code may have faulted there because of a page.
func (e *Engine) directSite(c *x86.CPU, u *unit, i int) (id uint32, ok bool) {
	if t := c.Host[wordFaultTrap]; t != trapPF && t != trapGP {
		return 0, false
	}
	id, ok = e.siteOf(u, i)
	return id, ok && e.sites.at(id).direct
}

// faultCost is how many instructions must have been executed for each fault, but for the first freeFaults, or else all accesses are checked
// for firstWait instructions, and twice as many each time again: a fault takes some 10 µs, and checks half a nanosecond for an instruction, or five where the pages that a loop
// works on have the same places in the translation cache. A program that begins comes to many new pages: those are a fifth of a second at most.
const (
	faultCost  = 1 << 15
	freeFaults = 1 << 14
	firstWait  = 1 << 31
)

// missed is called when an access at s has faulted. Its instruction is the handler's now; pages that it needs are mapped for the
// next time.
func (e *Engine) missed(c *x86.CPU, s *site) {
	e.Stats.Direct++
	e.faults++
	e.flagsAtFault(c, s)
	if e.mapFor(c, s) {
		return
	}
	e.Stats.Refused++
	s.failed++
	isKnown := false
	if a, ok := e.windows.guest(c.Host[wordFaultAddress]); ok && c.Host[wordFaultTrap] == trapPF {
		a &^= pageSize - 1
		if len(e.refusals) > maxRefusals {
			clear(e.refusals)
		}
		e.refusals[a]++
		isKnown = e.refusals[a] > refusedAfter
	}
	if isKnown || s.failed >= checkedAfter {
		e.refused = s
	}
}

// mayMapAgain is called when the page at a was flushed. If many accesses were refused there, they may be allowed now: those that are
// checked are tried again.
func (e *Engine) mayMapAgain(a uint64) {
	if e.refusals[a] <= refusedAfter || e.retried == maxRetries {
		return
	}
	delete(e.refusals, a)
	e.retried++
	e.retries = true
}

// flagsAtFault has the way out of s find the flags, which were the host's when that faulted.
func (e *Engine) flagsAtFault(c *x86.CPU, s *site) {
	if s.native {
		f := c.Host[wordFaultFlags]
		c.Host[wordFlags] = f&flagsLAHF<<flagsShift | f&x86.FlagOF>>11
	}
}

// mapFor maps the page that the access at s needs, or makes a window for it.
func (e *Engine) mapFor(c *x86.CPU, s *site) bool {
	if e.windows.refused {
		return false
	}
	if c.Host[wordFaultTrap] == trapPF {
		if a, ok := e.windows.guest(c.Host[wordFaultAddress]); ok {
			return e.mapAt(c, a, c.Host[wordFaultError]&faultStore != 0)
		}
	}
	in := &s.unit.insts[s.index]
	f := &e.t.rows[in.Row]
	isNew := false
	if in.Flags&x86.InstMem != 0 {
		isNew = e.windows.open(c.Address(in))
	}
	if f.written(in)>>x86.RSP&1 != 0 {
		isNew = e.windows.open(c.R[x86.RSP]) || isNew
	}
	if f.stack == leaves {
		isNew = e.windows.open(c.R[x86.RBP]) || isNew
	}
	return isNew
}

// mapAt maps the page at a.
func (e *Engine) mapAt(c *x86.CPU, a uint64, store bool) bool {
	a &^= pageSize - 1
	bus, fd := c.MappedBus()
	if bus == nil || a >= maxUser {
		return false
	}
	k := x86.Load
	if store {
		k = x86.Store
	}
	e.mapping = a
	m, ok := bus.Mapping(a, k)
	if e.mapping = noPage; !ok {
		e.windows.drop(a)
		return false
	}
	e.windows.fd = fd
	return e.windows.set(a, m)
}

// forgetRefused drops the unit one of whose accesses must be checked, and where some may be tried again, those that check any.
func (e *Engine) forgetRefused() {
	if e.retries {
		e.retries = false
		clear(e.checked)
		for _, u := range e.all {
			if u.checks && !u.dead {
				e.forget(u)
			}
		}
	}
	s := e.refused
	if e.refused = nil; s == nil {
		return
	}
	if len(e.checked) > maxPlaces {
		clear(e.checked)
	}
	u := s.unit
	e.checked[u.pc+uint64(u.at[s.index])] = true
	if v := e.entries.unit(u.pc); v != nil { // u may be a version
		e.forget(v)
	}
	if !u.dead {
		e.forget(u)
	}
}

// isCostly reports whether faults cost more than checks would, or did so lately: the guest comes to new pages all the time, or
// those that search in its past go back again and again. A program that collects garbage comes to all its pages, and then works
// on few.
func (e *Engine) isCostly() bool {
	switch {
	case e.costly && e.executed >= e.wait:
		e.costly, e.faults, e.executed = false, 0, 0
	case !e.costly && e.faults > freeFaults && e.executed/e.faults < faultCost:
		e.costly, e.executed, e.wait = true, 0, max(firstWait, 2*e.wait)
	}
	return e.costly
}

// choosesDirect has code be made that checks accesses, or code that does not.
func (e *Engine) choosesDirect(c *x86.CPU) {
	w := e.windows
	direct := false
	if e.log == nil && w.pool.dead != 0 && !w.refused && !e.isCostly() {
		bus, fd := c.MappedBus()
		direct = bus != nil && (w.fd == fd || len(w.mapped) == 0)
	}
	if direct == e.direct || direct && len(e.all) != 0 && c.Retired-e.changed < e.minChanged {
		return
	}
	e.direct, e.changed = direct, c.Retired
	e.drop()
	if !direct {
		w.clear()
	}
}
