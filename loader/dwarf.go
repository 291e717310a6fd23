package loader

import (
	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader/image"
)

// Package dwarf's share in rebuilding the files of modules.

// NewSymbols returns a finder over dirs. With local it finds files of this machine,
// too, that lie where the recorded program had them. Nothing is read before Find.
func NewSymbols(dirs []string, local bool) *image.Symbols {
	return image.NewSymbols(dirs, local, image.Unwind{Functions: unwindFunctions, Name: dwarf.FunctionName})
}

func unwindFunctions(section []byte, addr uint64, budget *checkpoint.Budget) []image.Range {
	frames := dwarf.FrameRanges(section, addr, budget)
	out := make([]image.Range, len(frames))
	for i, f := range frames {
		out[i] = image.Range{Start: f.Low, End: f.High}
	}
	return out
}

// Functions returns the functions of a module's unwind table, as far as that was
// captured: file virtual addresses, sorted.
func Functions(mod *image.Module, m image.Memory) []image.Range {
	b, addr := mod.UnwindTable(m)
	return unwindFunctions(b, addr, nil)
}
