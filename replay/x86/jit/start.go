//go:build linux && amd64

package jit

import "vplay/replay/x86"

// How an engine begins and ends. To begin costs two milliseconds (the tables by row once, a megabyte of jump
// cache), and the interpreter executes a million instructions in four. So it has the first ones.

// warmup is Engine.Warmup as it begins.
const warmup = 1 << 20

// minRun is Engine.MinRun as it begins.
const minRun = 1 << 8

// Engine returns a new engine for c. Memory is taken when that is worth it, and while all is taken
// the interpreter executes. Close gives it back.
func (p *Pool) Engine(c *x86.CPU) *Engine {
	e := &Engine{Threshold: threshold, Warmup: warmup, MinRun: minRun, minChanged: minChanged, pool: p, NoGS: !p.setsGS, sameCPU: host().IsLike(c.ID)}
	e.vectors = e.sameCPU
	e.t = translator{e: e, c: c}
	return e
}

// Eager has all code translated at first sight, however little it is worth: for tests.
func (e *Engine) Eager() { e.Threshold, e.Warmup, e.MinRun, e.minChanged, e.All = 0, 0, 0, 0, true }

// starts takes memory when enough was executed and there is some, and reports whether it did.
func (e *Engine) starts() bool {
	if e.Warmup != 0 || e.pool == nil {
		return false
	}
	if e.chunk = e.pool.take(); e.chunk == 0 {
		return false
	}
	e.t.layout, e.t.rows = x86.Layout(), facts()
	e.slice = minSlice
	e.windows, e.checked = e.pool.windowsOf(e.chunk), map[uint64]bool{}
	e.mapping = noPage
	e.windows.refused, e.refusals = false, map[uint64]int{}
	e.countBlocks()
	e.drop()
	return true
}

// IsWanted implements x86.PooledEngine: half of all memory is for engines that execute.
func (e *Engine) IsWanted() bool { return e.chunk != 0 && e.pool.available() < chunks/2 }

// interpret executes by the interpreter.
func (e *Engine) interpret(c *x86.CPU, limit uint64) x86.Exit {
	before := c.Retired
	var by x86.Engine = x86.BlockEngine{}
	if t := e.tracer(); t != nil {
		by = t
	}
	x := by.Run(c, limit)
	e.Warmup -= min(e.Warmup, c.Retired-before)
	return x
}

// Close gives the engine back, with its code when it may be used again, else its memory. It must not be used any more.
func (e *Engine) Close() {
	if e.pool == nil || e.idle {
		return
	}
	if e.chunk != 0 && e.of != nil && e.log == nil {
		e.leave()
		e.pool.keep(e)
		return
	}
	e.free()
}

// free gives the engine's memory back.
func (e *Engine) free() {
	if e.chunk != 0 {
		e.windows.clear()
		clear(e.seen()[:len(e.all)])
		e.pool.used.Add(-e.counted)
		e.pool.give(e.chunk, chunkSize)
	}
	e.pool, e.chunk = nil, 0
}

// drop forgets all code.
func (e *Engine) drop() {
	e.dropTrace()
	e.pages = map[uint64]*page{}
	e.entries.clear()
	e.sites.clear()
	e.edges.clear()
	e.clearSeen()
	e.all, e.placed, e.refused = nil, nil, nil
	e.away = e.chunk + hotChecked
	if e.direct {
		e.away = e.chunk + hotDirect
	}
	e.t.assembler = assembler{buf: e.pool.rw[:e.away], n: e.chunk + tableSize}
	e.t.away = assembler{buf: e.pool.rw[:e.chunk+chunkSize-lateSize], n: e.away}
	e.t.cool = false
	clear(e.pool.rw[e.chunk : e.chunk+jumpTables])
	e.clearCache(0)
	e.count()
}

// count tells the pool how much code there is.
func (e *Engine) count() {
	a, b := &e.t.assembler, &e.t.away
	if e.t.cool {
		a, b = b, a
	}
	n := int64(a.n - e.chunk - tableSize + b.n - e.away)
	e.pool.used.Add(n - e.counted)
	e.counted = n
}
