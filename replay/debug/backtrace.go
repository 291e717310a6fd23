package debug

import (
	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
)

// The calls that led to a place, by name, for commands that print them. Frames in which
// variables can be looked at are in symbols.go.

// Backtrace returns the calls that led to a thread's present place, inlined
// ones too, innermost first. Callers are named by where they go on.
func Backtrace(r *loader.Resolver, regs *checkpoint.Regs) []loader.Location {
	return BacktraceOf(r, regs, 64)
}

// BacktraceOf is Backtrace for a number of frames, inlined functions not counted.
func BacktraceOf(r *loader.Resolver, regs *checkpoint.Regs, limit int) []loader.Location {
	var out []loader.Location
	for _, frame := range r.Backtrace(regs, limit) {
		if frame.Signal {
			l := loader.Location{Addr: frame.PC, Function: loader.SignalFrame}
			if mod := r.Module(frame.PC); mod != nil {
				l.Module = mod.Path
			}
			out = append(out, l)
			continue
		}
		back := frame.Regs.V[dwarf.RIP] - frame.PC
		for _, l := range r.Stack(frame.PC) {
			l.Addr += back
			l.Offset += back
			out = append(out, l)
		}
	}
	return out
}
