package debug

import (
	"context"

	"vplay/checkpoint"
	"vplay/dwarf"
	"vplay/loader"
	"vplay/replay"
)

// The calls that led to a place, by name, for commands that print them. Frames in which
// variables can be looked at are in symbols.go.

// BacktraceLimit is how many frames Backtrace has at most, inlined functions not counted.
const BacktraceLimit = 64

// Backtrace returns the calls that led to a thread's present place, inlined
// ones too, innermost first. Callers are named by where they go on.
func Backtrace(r *loader.Resolver, regs *checkpoint.Regs) []loader.Location {
	return BacktraceOf(r, regs, BacktraceLimit)
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

// Stacks returns the calls that led to positions of the present program, which are in order: at
// most limit frames of each, as BacktraceOf has them. The cursor stays. Errors: those of a
// movement; then the stacks from some position on are nil.
func (g *Cursor) Stacks(ctx context.Context, at []checkpoint.Position, limit int) ([][]loader.Location, error) {
	out := make([][]loader.Location, len(at))
	err := g.t.Look(ctx, at, func(i int, m *replay.Machine) {
		r := loader.NewResolver(Regions(g.s.Rec, m.Mem), Memory{Space: m.Mem}, g.moduleFiles())
		out[i] = BacktraceOf(r, &checkpoint.Regs{R: m.CPU.R, RIP: m.CPU.RIP}, limit)
	}, func(int, *replay.Machine) {})
	return out, err
}
