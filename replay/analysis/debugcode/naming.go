package debugcode

import (
	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// What names mean where a region is called: the values of variables, and the addresses that modules are at.

// naming resolves names of one memory map; it is made anew when that has changed.
type naming struct {
	res     *loader.Resolver
	regions mem.AddressMap
	memory  debug.Memory // of whatever machine is looked at
	isNew   bool         // nobody has asked for it by renew

	known  map[exprAt]*dwarf.Expression
	fflush uint64 // the program's, 0 where there is none
}

// exprAt is a name at a place of a file.
type exprAt struct {
	d    *dwarf.Module
	pc   uint64 // file virtual address
	name string
}

// at returns the resolver for where a machine stands.
func (n *naming) at(p *Program, m *replay.Machine) *loader.Resolver {
	n.memory.Space = m.Mem
	if n.res == nil || n.regions != m.Mem.AddressMap() {
		n.regions = m.Mem.AddressMap()
		n.res = loader.NewResolver(debug.Regions(p.s.Rec, m.Mem), &n.memory, p.files)
		n.isNew = true
	}
	return n.res
}

// renew is at, and reports whether the map is another one than it was at the last call.
func (n *naming) renew(p *Program, m *replay.Machine) (res *loader.Resolver, isNew bool) {
	res = n.at(p, m)
	if isNew, n.isNew = n.isNew, false; isNew {
		n.fflush, _ = res.Lookup("fflush")
	}
	return res, isNew
}

// bound is a frame of the program in which names are evaluated.
type bound struct {
	n     *naming
	st    *x86.State
	e     *dwarf.Env
	whole *dwarf.Env // with its caller; nil before it is needed
}

// bound returns the frame that the program is in.
func (n *naming) bound(c *caller, st *x86.State) *bound {
	res := n.at(c.p, c.view)
	regs := loader.Regs(st)
	d, bias, _ := res.Find(st.RIP)
	b := &bound{n: n, st: st, e: &dwarf.Env{Frame: dwarf.Frame{Regs: loader.DwarfRegs(&regs), PC: st.RIP, Module: d, Bias: bias}, Mem: &n.memory}}
	n.equip(b.e, st)
	return b
}

// equip gives a frame what it needs beyond its general registers.
func (n *naming) equip(e *dwarf.Env, st *x86.State) {
	e.Vector = loader.Vector(st)
	e.TLS = func(m *dwarf.Module, offset uint64) (uint64, bool) { return n.res.ThreadLocal(m, st.FSBase, offset) }
}

// maxKnown is how many expressions are kept.
const maxKnown = 1 << 12

// local returns the value of a variable of the frame. Its callers are looked for only where its value depends on them: that takes
// longer than most regions.
func (b *bound) local(name string) (v dwarf.Value, err error) {
	key := exprAt{b.e.Module, b.st.RIP - b.e.Bias, name}
	x := b.n.known[key]
	if x == nil {
		if x, err = b.e.Prepare(name, 0); err != nil {
			return v, err
		}
		if b.n.known == nil || len(b.n.known) >= maxKnown {
			b.n.known = map[exprAt]*dwarf.Expression{}
		}
		b.n.known[key] = x
	}
	if v, err = x.Eval(b.e); err == nil && v.Err() == nil {
		return v, nil
	}
	if b.whole == nil {
		regs := loader.Regs(b.st)
		envs := dwarf.Envs(b.n.res.Backtrace(&regs, callers), &b.n.memory)
		if len(envs) == 0 {
			return v, err
		}
		for _, e := range envs {
			b.n.equip(e, b.st)
		}
		b.whole = envs[0]
	}
	if v, err = x.Eval(b.whole); err == nil {
		err = v.Err()
	}
	return v, err
}

// callers is how many frames a value may depend on: what a register was at a function's entry, in terms of the caller's, whose
// own may be as much.
const callers = 8

// global returns the value of a variable outside of functions; ok is false where its module is not mapped.
func (n *naming) global(c *caller, s *symbol, st *x86.State) (v dwarf.Value, ok bool) {
	var mod *image.Module
	for _, m := range n.res.Modules() {
		if keyOf(m) == s.module {
			mod = m
		}
	}
	if mod == nil {
		return v, false
	}
	d := n.res.File(mod)
	if d == nil {
		return v, false
	}
	e := &dwarf.Env{Frame: dwarf.Frame{PC: s.unit + mod.Bias, Module: d, Bias: mod.Bias}, Mem: &n.memory}
	n.equip(e, st)
	return e.Global(s.program)
}
