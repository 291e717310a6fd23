package loader

import (
	"vplay/checkpoint"
	"vplay/dwarf"
)

// Package dwarf's share in rebuilding the files of modules.

// NewSymbols returns a finder over dirs. With local it finds files of this machine,
// too, that lie where the recorded program had them. Nothing is read before Find.
func NewSymbols(dirs []string, local bool) *Symbols {
	return newSymbols(dirs, local, Unwind{unwindFunctions, dwarf.FunctionName})
}

func unwindFunctions(section []byte, addr uint64, budget *checkpoint.Budget) []Range {
	frames := dwarf.FrameRanges(section, addr, budget)
	out := make([]Range, len(frames))
	for i, f := range frames {
		out[i] = Range{f.Low, f.High}
	}
	return out
}

// Functions returns the functions of a module's unwind table, as far as that was
// captured: file virtual addresses, sorted.
func Functions(mod *Module, m Memory) []Range {
	b, addr := mod.UnwindTable(m)
	return unwindFunctions(b, addr, nil)
}
