package main

import "vplay/replay/debug"

// The lines of info about what ended the program: something that was overwritten, or a
// block freed twice. It only prints: package replay/debug finds what did it.

// printOverwrite writes the lines of info about what ended the program.
func printOverwrite(o *debug.Overwrite, line lineWriter) {
	switch {
	case o.What == debug.ReturnAddress:
		line("returns to", "%#x, from %#x on the stack: no code is there", o.Value, o.Slot)
	case o.IsFreed:
		line("freed twice", "%s", o.What)
	default:
		line("overwritten", "%s: %#x%s at %#x", o.What, o.Value, debug.AsText(o.Value), o.Slot)
	}
	if o.Why != "" {
		line("", "%s", o.Why)
		return
	}
	for i, l := range o.Stack[:min(len(o.Stack), shownWriters)] {
		switch {
		case i == 0 && o.IsFreed:
			line("before", "at %s by %s", o.Position, l)
		case i == 0:
			line("written", "at %s by %#x %s: %s %s", o.Position, l.Addr, l, o.Instruction, l.Source())
		default:
			line("", "called from %s %s", l, l.Source())
		}
	}
}

// shownWriters is how many calls that led to the write info lists.
const shownWriters = 4
