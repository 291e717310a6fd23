package script

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"vplay/dwarf"
	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay"
	"vplay/replay/debug"
	"vplay/replay/mem"
)

// Names of the recorded program at a moment: which code has a name, and what an address is called.

// names resolves names and addresses of one memory map; it is made anew when that has changed.
type names struct {
	res     *loader.Resolver
	files   *loader.ModuleFiles
	regions mem.AddressMap
	memory  debug.Memory // of whatever machine is looked at

	known map[uint64]loader.Location // what was asked before, of the same modules
}

// at returns the resolver for where a machine stands.
func (n *names) at(r *run, m *replay.Machine) *loader.Resolver {
	n.memory.Space = m.Mem
	files := r.filesOf(m.Interval())
	if n.res == nil || n.files != files || n.regions != m.Mem.AddressMap() {
		before, same := n.res, n.files == files
		n.files, n.regions = files, m.Mem.AddressMap()
		n.res = loader.NewResolver(debug.Regions(r.rec, m.Mem), &n.memory, files)
		if before == nil || !same || !slices.EqualFunc(before.Modules(), n.res.Modules(), sameModule) {
			n.known = map[uint64]loader.Location{}
		}
	}
	return n.res
}

// sameModule reports whether a and b are the same file at the same place.
func sameModule(a, b *image.Module) bool {
	return a.Base == b.Base && a.End == b.End && a.Path == b.Path && a.BuildID == b.BuildID
}

// maxKnown is how many locations are kept.
const maxKnown = 1 << 16

// locate returns what is known of an address; looking it up takes longer than most callbacks. n.at comes before it.
func (n *names) locate(addr uint64) loader.Location {
	l, ok := n.known[addr]
	if !ok {
		if l = n.res.At(addr); l.Module == "" || n.res.Module(addr) == nil { // that may be mapped later
			return l
		}
		if len(n.known) >= maxKnown {
			clear(n.known)
		}
		n.known[addr] = l
	}
	return l
}

// filesOf returns the files of the program that an interval is of.
func (r *run) filesOf(id uint32) *loader.ModuleFiles { return r.images[r.imageOf(id)].files }

// imageOf returns which of the programs that the process was an interval is of, from 0.
func (r *run) imageOf(id uint32) int {
	return sort.Search(len(r.images)-1, func(i int) bool { return r.images[i].last >= id })
}

// spot is where a place of the script's is in the program.
type spot struct {
	addr    uint64
	name    string // as the script asked for it
	inlined bool   // a copy of the function in another one: there is no call
}

// addresses returns the places of p that are named by number.
func (p *place) addresses() (out []spot) {
	for _, name := range p.names {
		if a, ok := number(name); ok {
			out = append(out, spot{addr: a, name: name})
			p.found.Store(true)
		}
	}
	return out
}

// number reads a name that is an address.
func number(name string) (addr uint64, ok bool) {
	addr, err := strconv.ParseUint(strings.TrimPrefix(name, "*"), 0, 64)
	return addr, err == nil
}

// in returns where p is in a module whose file is d. What an IFUNC has chosen stands for its resolver.
func (p *place) in(mod *image.Module, d *dwarf.Module, chosen map[uint64]uint64) (out []spot) {
	for _, name := range p.names {
		if _, ok := number(name); ok {
			continue
		}
		if p.kind == "line" {
			file, line, _ := splitLine(name)
			out = append(out, linesIn(mod, d, file, line)...)
			continue
		}
		functions := d.Functions(name)
		if len(functions) == 0 && d.IsInlined(name) {
			p.onlyInlined.Store(true)
		}
		for _, entry := range functions {
			a := entry + mod.Bias
			if c, ok := chosen[a]; ok {
				a = c
			}
			if p.body {
				a = d.Body(a-mod.Bias) + mod.Bias
			}
			out = append(out, spot{addr: a, name: name})
		}
		if p.inlined {
			for _, site := range d.InlineSites(name) {
				out = append(out, spot{site + mod.Bias, name, true})
			}
		}
	}
	if len(out) > 0 {
		p.found.Store(true)
	}
	return out
}

// linesIn returns where the code of a source line begins.
func linesIn(mod *image.Module, d *dwarf.Module, file string, line int) (out []spot) {
	if !d.HasLines() {
		return nil
	}
	for _, at := range d.Places(file, line) {
		if at.Line == line { // else the line has no code, and that is the next one that has
			out = append(out, spot{addr: at.Addr + mod.Bias})
		}
	}
	return out
}

// global evaluates an expression of what is global, in the first module that knows it, and returns where that is.
func (n *names) global(expr string) (w mem.Watch, err error) {
	v, err := n.globalValue(expr)
	if err != nil {
		return w, err
	}
	addr, _ := v.Address()
	return mem.Watch{Addr: addr, Len: uint64(v.Size())}, nil
}

// globalValue evaluates an expression of what is global, in the first module that knows it; the value is in memory.
func (n *names) globalValue(expr string) (v dwarf.Value, err error) {
	err = errNothingKnown
	for _, mod := range n.res.Modules() {
		d := n.res.File(mod)
		if d == nil {
			continue
		}
		env := &dwarf.Env{Frame: dwarf.Frame{PC: mod.Bias, Module: d, Bias: mod.Bias}, Mem: &n.memory}
		v, e := env.Eval(expr, -1)
		if e != nil {
			if err == errNothingKnown { //nolint:errorlint // it is never wrapped
				err = e
			}
			continue
		}
		if _, ok := v.Address(); !ok || v.Size() <= 0 {
			err = errNoPlace
			continue
		}
		return v, nil
	}
	return v, err
}
