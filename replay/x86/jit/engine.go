//go:build linux && amd64

package jit

import (
	"time"

	"vplay/replay/x86"
)

// Engine is an x86.Engine for one processor. What is cold it has the interpreter
// execute, block by block.
type Engine struct {
	// Threshold is how often the interpreter executes a block before it is
	// translated. Coming to it from generated code counts as arrival times.
	Threshold uint8
	// All has units translated that are not worth it, and of pages that change often, too: for tests.
	All bool
	// Warmup is how many instructions the interpreter executes before anything is translated and memory
	// taken: what ends soon must not pay for that.
	Warmup uint64
	// MinRun is how many instructions a run must have room for: shorter ones, such as those of steps backward, are the
	// interpreter's, which looks at the pages of code that it comes to and no others.
	MinRun uint64
	// NoGS says that the base of GS is not used (stack.go), because the host does not keep it. Tests may choose that, before anything is executed.
	NoGS bool
	// Faults are the places where generated code faulted, which is a mistake of the
	// translator: those units are interpreted since.
	Faults []Fault
	// Stats counts what happened.
	Stats Stats

	pool    *Pool
	chunk   int // offset of this engine's memory; 0: none was taken yet
	away    int // offset of the part of it for ways out
	sameCPU bool
	vectors bool   // vector rows are emitted
	traps   bool   // and some may raise floating-point exceptions
	changed uint64 // when that was chosen, in instructions
	// minChanged is how many instructions there are at least until it is chosen again: all is translated anew then.
	minChanged uint64
	t          translator

	all     []*unit // since code was last dropped, by unit.id
	pages   map[uint64]*page
	entries table
	sites   list[site]
	edges   list[edge]
	slice   uint64    // how many instructions may pass before the interrupt is looked at
	sliced  time.Time // when the last slice ended, if another one follows

	cleared uint64 // how often clearSeen was called: from 1 on
	counted int64  // bytes of code that Pool.Usage knows of

	of   *x86.CPUIdentity // whose processors may have it one after the other; nil: one processor alone (reuse.go)
	idle bool             // no processor has it

	fetched [maxUnit * maxInst]byte // see text

	log *traceLog // of who is told of what is executed; nil: nobody

	windows *windows        // of its part of the pool
	direct  bool            // code is made that does not check accesses
	checked map[uint64]bool // but for instructions at these addresses
	refused *site           // that is to be one of them
	// refusals are how many accesses to a page failed that could not be mapped; retries says that those that are checked are
	// to be tried again, and retried how often they were.
	refusals map[uint64]int
	retries  bool
	retried  int
	// mapping is the page that is about to be mapped: what was there need not be taken out first.
	mapping  uint64
	faults   uint64  // accesses to pages that were not in their windows,
	executed uint64  // and instructions meanwhile
	costly   bool    // see isCostly,
	wait     uint64  // and for how many instructions this time
	placed   []*unit // with versions, by where their code is

	running bool    // Run is
	stale   changed // code of which pages may have changed since their identities were asked for
	sieve   *x86.Sieve
	want    [16]uint64 // its registers, as they were compiled in
	exact   bool       // CPU.OnCode was set then

	conditions *x86.Conditions // that were compiled in
}

// noPage is the address of no page.
const noPage = 1

// Generated code runs for about sliceTime before the interrupt is looked at: garbage collection waits for that.
// The first slice has minSlice instructions.
const (
	sliceTime = 100 * time.Microsecond
	minSlice  = 50_000
	maxSlice  = 1 << 18
)

// threshold is Engine.Threshold as it begins. To translate an instruction takes a microsecond, as long as to
// interpret it some hundred times.
const threshold = 64

// arrival is what coming to a block from generated code counts for: to leave that costs as much as a few blocks.
const arrival = 8

// Run implements x86.Engine.
func (e *Engine) Run(c *x86.CPU, limit uint64) x86.Exit {
	if e.chunk == 0 && !e.starts() || limit-c.Retired < e.MinRun || c.Flags()&x86.FlagAC != 0 || !e.chooses(c) {
		return e.interpret(c, limit)
	}
	e.running = true
	end := c.Retired + e.slice
	before := c.Retired
	x := e.run(c, limit)
	e.executed += c.Retired - before
	if c.Retired >= end {
		e.pace()
	} else {
		e.sliced = time.Time{}
	}
	e.running = false
	if n := c.Host[wordPartial]; n != 0 {
		c.Host[wordPartial] = 0
		c.CountPartial(n)
	}
	e.reportSeen(c)
	return x
}

// pace is called at the end of a slice, and chooses the next one by how long it was.
func (e *Engine) pace() {
	now := time.Now()
	if !e.sliced.IsZero() {
		switch took := now.Sub(e.sliced); {
		case took > sliceTime:
			e.slice = max(e.slice/2, minSlice)
		case took < sliceTime/2:
			e.slice = min(2*e.slice, maxSlice)
		}
	}
	e.sliced = now
}

// run is Run without the report of what was executed.
func (e *Engine) run(c *x86.CPU, limit uint64) x86.Exit {
	limit = min(limit, c.Retired+e.slice)
	e.followSieve(c)
	e.followConditions(c)
	for {
		e.forgetRefused()
		for e.stale.any() {
			e.validate(c)
		}
		var x x86.Exit
		goesOn := true
		switch u := e.unitAt(c); {
		case u == nil:
			isHot, before := false, c.Retired
			if x, isHot = c.RunCold(limit, arrival, e.tracer()); isHot {
				e.heated(c)
				if c.Retired == before {
					continue // nothing was executed
				}
			}
		case limit-c.Retired >= uint64(len(u.insts)) && e.hasStack(c):
			x, goesOn = e.execute(c, u, limit)
			e.drain(c)
		case e.log != nil:
			x = e.log.to.Run(c, limit)
		default:
			e.seen()[u.id] = 1
			x, goesOn = e.executePart(c, u, 0, limit)
		}
		if x != x86.ExitNone || !goesOn || c.MustLook(limit) || !e.fits(c) {
			return x
		}
	}
}

// fits reports whether the host may have the guest's MXCSR in the code there is.
func (e *Engine) fits(c *x86.CPU) bool {
	return !e.vectors || (e.traps || c.MXCSR&mxcsrMasks == mxcsrMasks) && c.MXCSR&^mxcsrAllowed == 0
}

// minChanged is Engine.minChanged as it begins.
const minChanged = 1 << 22

// chooses has the code be that for the guest's MXCSR, and reports whether it fits.
func (e *Engine) chooses(c *x86.CPU) bool {
	if traps := e.vectors && c.MXCSR&mxcsrMasks != mxcsrMasks; traps != e.traps && (len(e.all) == 0 || c.Retired-e.changed >= e.minChanged) {
		e.traps, e.changed = traps, c.Retired
		e.drop()
	}
	e.choosesDirect(c)
	return e.fits(c)
}

// Invalidate implements x86.Engine.
func (e *Engine) Invalidate(c *x86.CPU, page uint64) {
	x86.BlockEngine{}.Invalidate(c, page)
	if e.chunk == 0 {
		return
	}
	if page == x86.AllPages {
		e.clearSeen()
		e.faults += uint64(len(e.windows.mapped)) // that are to come
		e.windows.clear()
	} else {
		e.clearSeenOf(e.pages[page])
		if page != e.mapping {
			e.windows.drop(page)
		}
		e.mayMapAgain(page)
	}
	if page == x86.AllPages || e.pages[page] != nil {
		e.stale.add(page)
	}
}

// InvalidateRange implements x86.RangeInvalidator.
func (e *Engine) InvalidateRange(c *x86.CPU, start, end uint64) {
	x86.BlockEngine{}.Invalidate(c, x86.AllPages)
	if e.chunk == 0 {
		return
	}
	for base, p := range e.pages {
		if base >= start && base < end {
			e.clearSeenOf(p)
			e.stale.add(base)
		}
	}
	e.windows.dropRange(start, end)
	for a := range e.refusals {
		if a >= start && a < end {
			e.mayMapAgain(a)
		}
	}
}

// Breakpoint implements x86.Engine.
func (e *Engine) Breakpoint(c *x86.CPU, pc uint64) {
	x86.BlockEngine{}.Breakpoint(c, pc)
	if e.chunk == 0 {
		return
	}
	e.forgetAt(pc)
	*e.entries.at(pc) = entry{key: pc, used: true}
}

// Reset implements x86.Engine.
func (e *Engine) Reset(c *x86.CPU) {
	x86.BlockEngine{}.Reset(c)
	if e.chunk == 0 {
		return
	}
	if e.idle {
		e.adopt(c)
	} else {
		e.drop()
	}
	e.countBlocks()
}

// countBlocks has the interpreter count how often it executes a block.
func (e *Engine) countBlocks() {
	e.t.c.CountBlocks(e.Threshold, func(pc uint64) bool { return e.entries.unit(pc) != nil })
}

// unitAt returns the unit at RIP, or nil.
func (e *Engine) unitAt(c *x86.CPU) *unit {
	return e.entries.unit(c.RIP)
}

// executePart has the handlers execute the instructions of u from number i on, for not all of which there is room before limit, or
// which are for them this time.
func (e *Engine) executePart(c *x86.CPU, u *unit, i int, limit uint64) (x x86.Exit, goesOn bool) {
	for ; i < len(u.insts); i++ {
		if x, goesOn = c.Execute(&u.insts[i]); x != x86.ExitNone || !goesOn || e.stale.any() || c.Retired == limit {
			return x, goesOn
		}
		if i+1 == len(u.insts) || c.RIP != u.pc+uint64(u.at[i+1]) || u.sifts && c.HasBreakpoint(c.RIP) {
			break
		}
	}
	return x, goesOn
}

// heated makes the unit at RIP, where the interpreter left because it is hot, or has it the interpreter's for good.
func (e *Engine) heated(c *x86.CPU) {
	if e.unitAt(c) != nil {
		return
	}
	if u := e.make(c, c.RIP, 0); u == nil && e.entries.at(c.RIP).refused {
		c.NeverHot()
	}
}

// make translates the unit with that key, or returns nil. until is as for translator.translate.
func (e *Engine) make(c *x86.CPU, key, until uint64) *unit {
	pc := key
	if until != 0 {
		pc ^= singleKey
	}
	if len(e.all) >= maxUnits || e.sites.n > maxSites {
		e.Stats.Resets++
		e.drop()
	}
	p := e.page(c, pc&^(pageSize-1))
	if p == nil || !e.pool.mayTranslate() {
		e.entries.at(key).refused = true
		return nil
	}
	u := e.translate(pc, p, recipe{}, len(e.all), until)
	if e.t.full || e.t.away.full {
		e.Stats.Resets++
		e.drop()
		return nil
	}
	if u == nil {
		e.entries.at(key).refused = true
		return nil
	}
	e.count()
	e.all = append(e.all, u)
	*e.entries.at(key) = entry{key: key, unit: u, used: true}
	e.own(p, u)
	if u.next != nil {
		e.own(u.next, u)
	}
	return u
}

// own notes that u has bytes of p.
func (e *Engine) own(p *page, u *unit) {
	p.units[u.key] = u
}

// translate translates the unit at pc in p, number id, for flags that are saved, or made by r, or returns nil.
func (e *Engine) translate(pc uint64, p *page, r recipe, id int, until uint64) *unit {
	text := e.text(p.base, pc)
	if text == nil {
		return nil
	}
	began := e.t.n + e.t.away.n
	u := e.t.translate(pc, p, text, r, id, until)
	if u != nil {
		e.placed = append(e.placed, u)
		e.Stats.Units++
		e.Stats.Instructions += uint64(len(u.insts))
		e.Stats.Bytes += uint64(e.t.n + e.t.away.n - began)
	}
	return u
}

// text returns the page of code at base, up to the first byte from pc on that is not known or that a unit at pc
// cannot have; nil where nothing can be executed.
func (e *Engine) text(base, pc uint64) []byte {
	page, fast := e.t.c.Bus.Translate(base, x86.Exec)
	switch {
	case page == nil:
		return nil
	case fast:
		return page[:]
	}
	n, _ := e.t.c.Bus.Fetch(pc, e.fetched[:min(base+pageSize-pc, uint64(len(e.fetched)))])
	return page[:int(pc-base)+n]
}

// maxSites bounds the sites that are kept.
const maxSites = 1 << 20

// maxChanges is how often a page may change before it is left to the interpreter.
const maxChanges = 16

// page returns the page at base with its identity, or nil when its code is not to be
// translated.
func (e *Engine) page(c *x86.CPU, base uint64) *page {
	p := e.pages[base]
	if p == nil {
		if !canonical(base) {
			return nil
		}
		p = &page{base: base, units: map[uint64]*unit{}}
		e.pages[base] = p
	}
	if p.changes > maxChanges && !e.All {
		return nil
	}
	if len(p.units) == 0 {
		p.id = c.Bus.CodeID(base)
	}
	if p.id == 0 {
		return nil
	}
	return p
}

// changed is a set of pages, by address: x86.AllPages in it stands for all.
type changed []uint64

// maxChanged is how many pages are told apart.
const maxChanged = 8

func (s changed) any() bool { return len(s) != 0 }

// add adds a page, or all.
func (s *changed) add(page uint64) {
	l := *s
	switch n := len(l); {
	case page == x86.AllPages || n == maxChanged:
		*s = append(l[:0], x86.AllPages)
	case n == 0 || l[0] != x86.AllPages && l[n-1] != page:
		*s = append(l, page)
	}
}

// validate asks for the identities of the pages with code that may have changed, and drops the code of
// those that have. Asking may find that others have changed.
func (e *Engine) validate(c *x86.CPU) {
	var list [maxChanged]uint64
	n := copy(list[:], e.stale)
	e.stale = e.stale[:0]
	if list[0] == x86.AllPages {
		for _, p := range e.pages {
			e.compare(c, p)
		}
		return
	}
	for _, base := range list[:n] {
		if p := e.pages[base]; p != nil {
			e.compare(c, p)
		}
	}
}

// compare drops the code of p when that is another page by now.
func (e *Engine) compare(c *x86.CPU, p *page) {
	if len(p.units) == 0 || c.Bus.CodeID(p.base) == p.id {
		return
	}
	for _, u := range p.units {
		e.forget(u)
	}
	p.changes++
}
