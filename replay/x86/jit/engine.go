//go:build linux && amd64

package jit

import (
	"vplay/replay/x86"
)

// Engine is an x86.Engine for one processor. What is cold it has the interpreter
// execute, block by block.
type Engine struct {
	// Threshold is how often the interpreter executes a block before it is
	// translated.
	Threshold uint8
	// All has units translated that are not worth it, and of pages that change often, too: for tests.
	All bool
	// Faults are the places where generated code faulted, which is a mistake of the
	// translator: those units are interpreted since.
	Faults []Fault
	// Stats counts what happened.
	Stats Stats

	pool    *Pool
	chunk   int // offset of this engine's memory
	sameCPU bool
	vectors bool // vector rows are emitted
	t       translator

	all     []*unit // since code was last dropped, by unit.id
	units   map[uint64]*unit
	pages   map[uint64]*page
	entries [1 << 14]entry
	sites   []site
	edges   []edge
	refused map[uint64]bool // not to be translated, until all is dropped

	running bool // Run is
	stale   bool // code may have changed since the pages' identities were asked for
	sieve   *x86.Sieve
	want    [16]uint64 // its registers, as they were compiled in
}

// entry is a place of the table by address, of what is executed now and then.
type entry struct {
	pc   uint64
	unit *unit
	heat uint8
}

// runSlice is how many instructions may pass before the interrupt is looked at.
const runSlice = 50_000

// Engine returns a new engine for c, or nil when all memory is taken. Close gives it back.
func (p *Pool) Engine(c *x86.CPU) *Engine {
	at := p.take()
	if at == 0 {
		return nil
	}
	e := &Engine{Threshold: 8, pool: p, chunk: at, sameCPU: host().IsLike(c.ID)}
	e.vectors = e.sameCPU && c.ID.Vendor == x86.VendorAMD // Intel's XINUSE would have to follow
	e.t = translator{e: e, c: c, layout: x86.Layout(), rows: facts()}
	e.drop()
	return e
}

// Close gives the engine's memory back. It must not be used any more.
func (e *Engine) Close() {
	if e.pool != nil {
		e.pool.give(e.chunk, chunkSize)
		e.pool = nil
	}
}

// drop forgets all code.
func (e *Engine) drop() {
	e.units, e.pages, e.refused = map[uint64]*unit{}, map[uint64]*page{}, map[uint64]bool{}
	clear(e.entries[:])
	e.sites, e.edges = e.sites[:0], e.edges[:0]
	e.clearSeen()
	e.all = nil
	e.t.assembler = assembler{buf: e.pool.rw[:e.chunk+hotSize], n: e.chunk + 16*cacheEntries + maxUnits}
	e.t.away = assembler{buf: e.pool.rw[:e.chunk+chunkSize], n: e.chunk + hotSize}
	e.t.cool = false
	clear(e.pool.rw[e.chunk : e.chunk+16*cacheEntries])
	e.clearCache(0)
}

// Run implements x86.Engine.
func (e *Engine) Run(c *x86.CPU, limit uint64) x86.Exit {
	if c.Flags()&x86.FlagAC != 0 || !e.fits(c) {
		return x86.BlockEngine{}.Run(c, limit)
	}
	e.running = true
	x := e.run(c, limit)
	e.running = false
	e.reportSeen(c)
	return x
}

// run is Run without the report of what was executed.
func (e *Engine) run(c *x86.CPU, limit uint64) x86.Exit {
	limit = min(limit, c.Retired+runSlice)
	e.followSieve(c)
	for {
		if e.stale {
			e.validate(c)
		}
		var x x86.Exit
		goesOn := true
		if u := e.unitAt(c); u != nil && limit-c.Retired >= uint64(len(u.insts)) {
			x, goesOn = e.execute(c, u, limit)
		} else {
			x = c.RunBlock(limit)
		}
		if x != x86.ExitNone || !goesOn || c.MustLook(limit) || !e.fits(c) {
			return x
		}
	}
}

// fits reports whether the host may have the guest's MXCSR.
func (e *Engine) fits(c *x86.CPU) bool {
	return !e.vectors || c.MXCSR&mxcsrMasks == mxcsrMasks && c.MXCSR&^mxcsrAllowed == 0
}

// Invalidate implements x86.Engine.
func (e *Engine) Invalidate(c *x86.CPU, page uint64) {
	x86.BlockEngine{}.Invalidate(c, page)
	if page == x86.AllPages {
		e.clearSeen()
	}
	if page == x86.AllPages || e.pages[page] != nil {
		e.stale = true
	}
}

// Breakpoint implements x86.Engine.
func (e *Engine) Breakpoint(c *x86.CPU, pc uint64) {
	x86.BlockEngine{}.Breakpoint(c, pc)
	if p := e.pages[pc&^(pageSize-1)]; p != nil {
		for _, u := range p.units {
			if u.pc <= pc && pc < u.end {
				e.forget(u)
			}
		}
	}
	delete(e.refused, pc)
	if x := e.entry(pc); x.pc == pc {
		*x = entry{}
	}
}

// Reset implements x86.Engine.
func (e *Engine) Reset(c *x86.CPU) {
	x86.BlockEngine{}.Reset(c)
	e.drop()
}

// entry returns the place of pc in the table.
func (e *Engine) entry(pc uint64) *entry { return &e.entries[(pc^pc>>14)&uint64(len(e.entries)-1)] }

// unitAt returns the unit at RIP, which it makes when it is time, or nil.
func (e *Engine) unitAt(c *x86.CPU) *unit {
	pc := c.RIP
	x := e.entry(pc)
	if x.pc != pc || x.unit != nil && x.unit.dead {
		*x = entry{pc: pc, unit: e.units[pc]}
	}
	if x.unit != nil {
		return x.unit
	}
	if x.heat < e.Threshold {
		x.heat++
		return nil
	}
	if e.refused[pc] {
		return nil
	}
	x.unit = e.make(c, pc)
	return x.unit
}

// make translates the unit at pc, or returns nil.
func (e *Engine) make(c *x86.CPU, pc uint64) *unit {
	if len(e.all) >= maxUnits || len(e.sites) > maxSites || len(e.refused) > maxRefused {
		e.Stats.Resets++
		e.drop()
	}
	p := e.page(c, pc&^(pageSize-1))
	if p == nil || !e.pool.mayTranslate() {
		e.refused[pc] = true
		return nil
	}
	u := e.translate(pc, p, recipe{}, len(e.all))
	if e.t.full || e.t.away.full {
		e.Stats.Resets++
		e.drop()
		return nil
	}
	if u == nil {
		e.refused[pc] = true
		return nil
	}
	e.all = append(e.all, u)
	e.units[pc], p.units[pc] = u, u
	return u
}

// translate translates the unit at pc in p, number id, for flags that are saved, or made by r, or returns nil.
func (e *Engine) translate(pc uint64, p *page, r recipe, id int) *unit {
	text, fast := e.t.c.Bus.Translate(p.base, x86.Exec)
	if text == nil || !fast {
		return nil
	}
	began := e.t.n + e.t.away.n
	u := e.t.translate(pc, p, text[:], r, id)
	if u != nil {
		e.Stats.Units++
		e.Stats.Instructions += uint64(len(u.insts))
		e.Stats.Bytes += uint64(e.t.n + e.t.away.n - began)
	}
	return u
}

// Bounds of what is kept, beside the size of the memory for code.
const (
	maxSites   = 1 << 20
	maxRefused = 1 << 18
)

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

// validate asks for the identities of all pages with code, and drops the code of those that
// have changed.
func (e *Engine) validate(c *x86.CPU) {
	e.stale = false
	for base, p := range e.pages {
		if len(p.units) == 0 || c.Bus.CodeID(base) == p.id {
			continue
		}
		for _, u := range p.units {
			e.forget(u)
		}
		p.changes++
	}
}
