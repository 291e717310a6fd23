//go:build linux && amd64

package jit

// Ways out of accesses that are not checked. Such an access leaves when it faults, as some thousands do of hundreds of thousands, so
// what it leaves by is made then, in lateSize bytes of the engine's memory that all share: the code of cc1, which is large, needs a
// third less memory so.

// lateSize is room for one way out, at the end of an engine's memory.
const lateSize = 256

// wayOut is what code must do that leaves at a site.
type wayOut struct {
	flags  flagState // before the instruction
	resume int32     // where it goes on behind it, 0 nowhere
	native bool      // with the flags in the host's,
	slot   int8      // and this anchor in address, -1 for none
}

// makeWayOut emits what leaves at x, whose number is id.
func (t *translator) makeWayOut(x *site, id uint32, w *wayOut) {
	x.cold = t.n
	if !x.native {
		t.leaveFlags(w.flags)
	}
	t.exit(exitSite, id)
	if x.after = int(w.resume); x.after == 0 || !w.native && w.slot < 0 {
		return
	}
	x.after = t.n
	if w.slot >= 0 {
		t.mem(opMov, address, t.word(wordAnchor+int(w.slot)))
	}
	if w.native {
		t.loadFlags()
	}
	t.jmpTo(int(w.resume))
}

// later notes how the code leaves at x, if it can wait until an access faults, and reports whether it can.
func (t *translator) later(s *coldSite, x *site, w *wayOut) bool {
	if !x.direct || s.n+s.m > 0 {
		return false
	}
	t.bad = t.bad || !x.native && !w.flags.saved && w.flags.recipe.kind == noRecipe
	x.way, x.late = *w, true
	return true
}

// leavesBy returns where code leaves at the site with that number, which it is about to do.
func (e *Engine) leavesBy(id uint32) int {
	x := e.sites.at(id)
	if x.late {
		e.makeLate(x, id)
	}
	return x.cold
}

// makeLate makes the way out at x, which is not there, and returns where its code ends.
func (e *Engine) makeLate(x *site, id uint32) (end int) {
	t := &e.t
	code, limit := t.assembler, e.chunk+chunkSize
	t.assembler = assembler{buf: e.pool.rw[:limit], n: limit - lateSize}
	t.makeWayOut(x, id, &x.way)
	end = t.n
	t.assembler = code
	return end
}
