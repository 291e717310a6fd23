package deviate

import (
	"path"

	"vplay/loader"
	"vplay/loader/image"
	"vplay/replay/analysis/controlflow"
	"vplay/replay/debug"
	"vplay/replay/x86"
)

// What is the same in two runs? Addresses are not: modules lie elsewhere. Of a module that is
// the same file in all runs it is the place in the file. Of one that is another build it is the source line, and lines
// move, too: with the functions that stand between them.

// place is what an address is in all runs: of a file, or a line of a source file.
type place struct {
	in string // build-id or path of a module, or name of a source file
	n  uint64 // offset or line
}

// names tells what the addresses of a run are. The cursor stays at the run's end.
type names struct {
	res   *loader.Resolver
	other map[string]bool // modules, by name, that are not the same file in all runs
	known map[uint64]place
	where map[uint64]loader.Location
	coded map[place]bool // see hasCode
}

func newNames(g *debug.Cursor) *names {
	return &names{res: g.Names(), other: map[string]bool{}, known: map[uint64]place{}, where: map[uint64]loader.Location{}, coded: map[place]bool{}}
}

// builds returns the build of each module, by its name.
func (n *names) builds() map[string]string {
	out := map[string]string{}
	for _, mod := range n.res.Modules() {
		out[path.Base(mod.Path)] = buildOf(mod)
	}
	return out
}

// buildOf tells files apart: the build-id, or where there is none what else is known.
func buildOf(mod *image.Module) string {
	if mod.BuildID != "" {
		return mod.BuildID
	}
	return mod.Path
}

// at returns the location of an address.
func (n *names) at(pc uint64) loader.Location {
	l, ok := n.where[pc]
	if !ok {
		l = n.res.At(pc)
		n.where[pc] = l
	}
	return l
}

// isOwn reports whether the source line of an address is known.
func (n *names) isOwn(pc uint64) bool { return n.at(pc).Line > 0 }

// isOther reports whether the module at an address is another file in another run.
func (n *names) isOther(pc uint64) bool {
	mod := n.res.Module(pc)
	return mod != nil && n.other[path.Base(mod.Path)]
}

// place returns what an address is in all runs.
func (n *names) place(pc uint64) place {
	p, ok := n.known[pc]
	if ok {
		return p
	}
	mod := n.res.Module(pc)
	switch {
	case mod == nil:
		p = place{"", pc}
	case !n.other[path.Base(mod.Path)]:
		p = place{buildOf(mod), pc - mod.Base}
	default:
		p = lineOf(path.Base(mod.Path), n.at(pc))
	}
	n.known[pc] = p
	return p
}

// lineOf returns the place of a location in a module that is another file in another run.
func lineOf(module string, l loader.Location) place {
	if l.Line > 0 {
		return place{path.Base(l.File), uint64(l.Line)}
	}
	return place{module + ":" + l.Function, 0}
}

// hasCode reports whether a module that is another file in another run has code of a line.
func (n *names) hasCode(p place) bool {
	has, ok := n.coded[p]
	if ok {
		return has
	}
	for _, mod := range n.res.Modules() {
		if !n.other[path.Base(mod.Path)] {
			continue
		}
		if d := n.res.File(mod); d != nil {
			for _, at := range d.Places(p.in, int(p.n)) {
				has = has || at.Line == int(p.n)
			}
		}
	}
	n.coded[p] = has
	return has
}

// lastLine returns the line at which the function at pc ends, 0 where that is not known.
func (n *names) lastLine(pc uint64) int {
	mod := n.res.Module(pc)
	if mod == nil || n.res.File(mod) == nil {
		return 0
	}
	_, high, ok := n.res.File(mod).Extent(pc - mod.Bias)
	if !ok {
		return 0
	}
	return n.at(mod.Bias + high - 1).Line
}

// address returns where a place of a file is in this run.
func (n *names) address(p place) (uint64, bool) {
	for _, mod := range n.res.Modules() {
		if !n.other[path.Base(mod.Path)] && buildOf(mod) == p.in {
			return mod.Base + p.n, true
		}
	}
	return 0, false
}

// lines returns the places of the instructions of a basic block, and where functions were inlined there the
// places of the calls.
func (n *names) lines(first, last uint64, c *controlflow.Code) (out []place) {
	var seen loader.Location
	c.Each(first, last, func(pc uint64, _ *x86.Inst) {
		l := n.at(pc)
		if l.Line == seen.Line && l.File == seen.File && l.Inlined == seen.Inlined {
			return
		}
		seen = l
		mod := n.res.Module(pc)
		if mod == nil {
			return
		}
		for _, l := range n.res.Stack(pc) {
			out = append(out, lineOf(path.Base(mod.Path), l))
		}
	})
	return out
}
