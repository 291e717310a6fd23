//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"slices"
)

// Units are joined: an edge to the unit it leads to, and indirect branches by the jump cache.
// Code is patched only while nobody executes it: an engine is one processor's.

// link joins edge id to u. It returns false when the memory for code is full.
func (e *Engine) link(id uint32, u *unit) bool {
	x := e.edges.at(id)
	if x.unit.dead || x.to == u {
		return true
	}
	way := u.head
	if x.recipe.kind != noRecipe && u.sees {
		if v := e.version(x, u); v != nil {
			u, way = v, v.head
		} else {
			way = e.way(x, u)
		}
	}
	if e.t.full || e.t.away.full {
		return false
	}
	x.to = u
	u.in = append(u.in, id)
	if way == u.head && x.unit.id == u.id {
		way = u.again
	}
	e.patch(x.jump, way)
	return true
}

// patch has the jump whose displacement stands at p lead to another place.
func (e *Engine) patch(p, to int) {
	binary.LittleEndian.PutUint32(e.pool.rw[p:], uint32(to-p-4))
}

// maxVersions bounds the versions of a unit.
const maxVersions = 2

// version returns the version of u for the recipe of edge x, which leads backwards: such loops run without
// a store for flags. It returns nil where there is none.
func (e *Engine) version(x *edge, u *unit) *unit {
	if x.target > x.unit.pc || e.t.c.HasBreakpoint(u.pc) {
		return nil
	}
	for _, v := range u.versions {
		if v.enters == x.recipe {
			return v
		}
	}
	if len(u.versions) == maxVersions {
		return nil
	}
	v := e.translate(u.pc, u.page, x.recipe, u.id, 0)
	if v == nil || v.end != u.end { // Breakpoint looks at u alone
		return nil
	}
	u.versions = append(u.versions, v)
	return v
}

// way returns where edge x, which comes with a recipe, enters u: at its head, or where the flags are left to it before.
func (e *Engine) way(x *edge, u *unit) int {
	if x.passed && !u.needs {
		return u.head
	}
	t := &e.t
	t.toCold()
	defer t.toHot()
	at := t.n
	if u.needs || !x.recipe.passable() {
		t.cook(x.recipe)
		t.saveFlags()
	} else {
		t.pass(x.recipe)
	}
	if x.unit.id == u.id {
		t.jmpTo(u.again)
	} else {
		t.jmpTo(u.head)
	}
	return at
}

// remember has indirect branches to u find it.
func (e *Engine) remember(u *unit) {
	b := e.pool.rw[e.chunk:]
	i := int(u.pc & (cacheEntries - 1))
	if pc := binary.LittleEndian.Uint64(b[16*i:]); pc != u.pc && pc != noTarget(i) && pc != 0 {
		putCache(b[secondAt:], secondOf(pc), pc, binary.LittleEndian.Uint64(b[16*i+8:]))
	}
	putCache(b, i, u.pc, uint64(e.pool.address(u.head)))
}

// secondOf returns which of the second entries of the jump cache an address has.
func secondOf(pc uint64) int { return int(pc >> secondShift & (secondEntries - 1)) }

// noTarget is what entry i has that has no address: one that no lookup comes there with.
func noTarget(i int) uint64 { return uint64(i ^ 1) }

// forget takes u out: nothing leads there any more.
func (e *Engine) forget(u *unit) {
	u.dead = true
	if x := e.entries.at(u.key); x.unit == u {
		x.unit = nil
		delete(u.page.units, u.key)
		if u.next != nil {
			delete(u.next.units, u.key)
		}
	}
	for _, v := range u.versions {
		e.forget(v)
	}
	for _, id := range u.in {
		x := e.edges.at(id)
		if x.to == u {
			x.to = nil
			e.patch(x.jump, x.cold)
		}
	}
	for _, id := range u.edges {
		x := e.edges.at(id)
		if to := x.to; to != nil && to != u {
			to.in = slices.DeleteFunc(to.in, func(in uint32) bool { return in == id })
			x.to = nil
		}
	}
	e.clearCache(u.pc)
}

// forgetAt drops the units that have the instruction at pc, or end there because of a breakpoint.
func (e *Engine) forgetAt(pc uint64) {
	p := e.pages[pc&^(pageSize-1)]
	if p == nil {
		return
	}
	for _, u := range p.units {
		if u.pc <= pc && (pc < u.end || u.cut && pc == u.end) {
			e.forget(u)
		}
	}
}

// clearCache empties the jump cache's entries for pc: no lookup of the addresses they get comes there.
func (e *Engine) clearCache(pc uint64) {
	b := e.pool.rw[e.chunk:]
	i, j := int(pc&(cacheEntries-1)), secondOf(pc)
	putCache(b, i, noTarget(i), 0)
	putCache(b[secondAt:], j, noTarget(j)<<secondShift, 0)
}
