//go:build linux && amd64

package jit

import "vplay/replay/x86"

// Engines that are used again. A recording is replayed by many processors, one for each interval and each worker of a
// search, which execute the same program. Generated code knows neither the processor nor its memory, only guest addresses
// and the bytes there. So an engine that is closed keeps its code for the next processor of the same recording: what
// stands on pages whose bytes are the same there goes on, the rest is dropped.

// maxIdle is how many engines are kept. Those beyond, and the oldest where memory is needed, are given up.
const maxIdle = 4

// Reuse is Engine, but for an engine that a processor with this same c.ID has left, where there is one.
func (p *Pool) Reuse(c *x86.CPU) *Engine {
	p.mu.Lock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if e := p.idle[i]; e.of == c.ID {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			p.mu.Unlock()
			return e
		}
	}
	p.mu.Unlock()
	e := p.Engine(c)
	e.of = c.ID
	return e
}

// Maker returns what makes engines by Reuse, with all code translated at first sight (Eager) where all says so, and what gives each
// back. done is called before that.
func (p *Pool) Maker(all bool, done func(*Engine)) func(*x86.CPU) (x86.Engine, func()) {
	return func(c *x86.CPU) (x86.Engine, func()) {
		e := p.Reuse(c)
		if all {
			e.Eager()
		}
		return e, func() {
			done(e)
			e.Close()
		}
	}
}

// keep keeps an engine that no processor has, and frees the oldest where there are too many.
func (p *Pool) keep(e *Engine) {
	p.mu.Lock()
	p.idle = append(p.idle, e)
	isFull := len(p.idle) > maxIdle
	p.mu.Unlock()
	if isFull {
		p.freeIdle()
	}
}

// freeIdle frees the engine that is idle longest.
func (p *Pool) freeIdle() {
	p.mu.Lock()
	var e *Engine
	if len(p.idle) > 0 {
		e = p.idle[0]
		p.idle = append(p.idle[:0], p.idle[1:]...)
	}
	p.mu.Unlock()
	if e != nil {
		e.free()
	}
}

// isTaken reports whether engines have all memory.
func (p *Pool) isTaken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free) == 0
}

// available is for how many more engines there is memory.
func (p *Pool) available() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free) + len(p.idle)
}

// leave forgets what is its processor's alone.
func (e *Engine) leave() {
	c := e.t.c
	for _, u := range e.all {
		if !u.dead && (u.cut || u.sifts || c.HasBreakpoint(u.pc) || e.sieve != nil && e.sieve.PC == u.pc) {
			e.forget(u)
		}
	}
	e.entries.keepUnits()
	e.sieve, e.conditions, e.Faults, e.idle, e.stale = nil, nil, nil, true, e.stale[:0]
	e.clearSeen()
	e.refused, e.retries, e.retried = nil, false, 0
	clear(e.refusals)
	e.windows.clear() // its memory is not kept
	e.windows.refused = false
	e.t.c = nil // its memory is not kept
}

// adopt begins with another processor, and drops the code of pages that are others there.
func (e *Engine) adopt(c *x86.CPU) {
	e.t.c, e.idle = c, false
	for base, p := range e.pages {
		p.changes = 0
		if len(p.units) == 0 {
			delete(e.pages, base)
			continue
		}
		if c.Bus.CodeID(base) == p.id {
			continue
		}
		for _, u := range p.units {
			e.forget(u)
		}
	}
}
