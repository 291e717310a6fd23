package debug

import (
	"slices"
	"sort"

	"vplay/loader"
	"vplay/loader/image"
)

// Breakpoints in the resolvers of IFUNCs, which are left out. How the chosen
// implementations are found is in loader/image/ifunc.go.

// function is the function that an address is in, by entries: its own, and where it is
// the resolver of an IFUNC, that of the implementation it chose.
type function struct{ entry, chosen uint64 }

// withoutResolvers leaves out the breakpoints in resolvers of IFUNCs whose
// implementation has one too. A gdb that has a debug file of the C library sets
// both for "break strcpy", since that file has the symbol at its resolver and the
// rebuilt library at what was chosen. Nobody means the resolver, and gdb 13 dies of an
// internal error when it gets there.
func (g *Cursor) withoutResolvers(addrs []uint64) []uint64 {
	if len(addrs) < 2 {
		return addrs
	}
	if slices.ContainsFunc(addrs, func(a uint64) bool { _, known := g.functions[a]; return !known }) {
		g.findFunctions(addrs)
	}
	isEntered := func(entry uint64) bool {
		return slices.ContainsFunc(addrs, func(a uint64) bool { return g.functions[a].entry == entry })
	}
	return slices.DeleteFunc(slices.Clone(addrs), func(a uint64) bool {
		chosen := g.functions[a].chosen
		return chosen != 0 && isEntered(chosen)
	})
}

// findFunctions notes what functions addresses are in. Before the dynamic linker has
// run nothing is chosen yet, and the addresses of that module are asked again.
func (g *Cursor) findFunctions(addrs []uint64) {
	if g.functions == nil {
		g.functions = map[uint64]function{}
	}
	for _, a := range addrs {
		if _, known := g.functions[a]; !known {
			g.functions[a] = function{entry: a} // of no module
		}
	}
	for _, mod := range g.Modules() {
		isIn := func(a uint64) bool { return a >= mod.Base && a < mod.End }
		if !slices.ContainsFunc(addrs, isIn) {
			continue
		}
		chosen, ok := mod.Implementations(Memory{g.mem()})
		if !ok {
			for _, a := range addrs {
				if isIn(a) {
					delete(g.functions, a)
				}
			}
			continue
		}
		ranges := loader.Functions(mod, Memory{g.mem()})
		for _, a := range addrs {
			if isIn(a) {
				entry := entryOf(ranges, a-mod.Bias) + mod.Bias
				g.functions[a] = function{entry, chosen[entry]}
			}
		}
	}
}

// entryOf returns the start of the function that an address is in, or the address.
func entryOf(ranges []image.Range, addr uint64) uint64 {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End > addr })
	if i < len(ranges) && ranges[i].Start <= addr {
		return ranges[i].Start
	}
	return addr
}
