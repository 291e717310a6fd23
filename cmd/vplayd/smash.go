package main

import (
	"context"
	"encoding/binary"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/mem"
)

// overwrite is a return address that leads nowhere, and what wrote it last.
type overwrite struct {
	Slot        uint64            `json:"slot"`  // address on the stack
	Value       uint64            `json:"value"` // what stands there
	Position    string            `json:"position,omitempty"`
	Instruction string            `json:"instruction,omitempty"`
	Stack       []loader.Location `json:"stack,omitempty"` // of the write, innermost first
	Why         string            `json:"why,omitempty"`   // the write is not known
}

// overwriteTime bounds the search for the write, in which the end of the recording is
// replayed.
const overwriteTime = 5 * time.Second

// badReturn returns the slot of the stack whose content a return instruction has
// gone to, or is about to go to, where no code is.
func badReturn(f *replay.FinalImage) (slot, value uint64, ok bool) {
	st, m := &f.States[0], guest{f.Mem}
	word := func(a uint64) (uint64, bool) {
		var b [8]byte
		n := m.ReadMemory(a, b[:])
		return binary.LittleEndian.Uint64(b[:]), n == len(b)
	}
	if !isCode(f.Maps, st.RIP) { // the return instruction has been executed
		slot = st.R[4] - 8
		value, ok = word(slot)
		return slot, value, ok && value == st.RIP
	}
	var b [15]byte
	n := m.ReadMemory(st.RIP, b[:])
	if in, err := x86asm.Decode(b[:n], 64); err != nil || in.Op != x86asm.RET {
		return 0, 0, false
	}
	slot = st.R[4]
	value, ok = word(slot)
	return slot, value, ok && !isCode(f.Maps, value)
}

// isCode reports whether an address may be executed.
func isCode(maps []checkpoint.Mapping, addr uint64) bool {
	for i := range maps {
		if g := &maps[i]; addr >= g.Start && addr < g.End {
			return g.Prot&checkpoint.ProtExec != 0
		}
	}
	return false
}

// findOverwrite looks for the last write to the slot of a bad return address; nil when
// the recording does not end at one.
func findOverwrite(ctx context.Context, s *replay.Session, f *replay.FinalImage, symbols *loader.Symbols) *overwrite {
	slot, value, ok := badReturn(f)
	if !ok {
		return nil
	}
	o := &overwrite{Slot: slot, Value: value}
	ctx, cancel := context.WithTimeout(ctx, overwriteTime)
	defer cancel()
	t, err := replay.NewTimeline(s, defaultMemory<<20)
	if err != nil {
		o.Why = err.Error()
		return o
	}
	defer t.Close()
	c, err := t.NewCursor()
	if err != nil {
		o.Why = err.Error()
		return o
	}
	defer c.Close()
	found, err := t.Find(ctx, &replay.Search{Watches: []mem.Watch{{Addr: slot, Len: 8, Kind: mem.WatchWrite}}, Most: 1})
	if err == nil && len(found) > 0 {
		err = c.Seek(ctx, found[0].Pos)
	}
	switch {
	case isDone(ctx):
		o.Why = "the write was not found within " + overwriteTime.String() + ": serve, then vplay last-write, finds it"
	case err != nil:
		o.Why = err.Error()
	case len(found) == 0:
		o.Why = "it was not written in the recorded time"
	default:
		m := c.Machine()
		st := &m.CPU.State
		o.Position, o.Instruction = found[0].Pos.String(), disassemble(guest{m.Mem}, st.RIP)
		r := loader.NewResolver(regionsOf(s.Rec, m.Mem), guest{m.Mem}, symbols)
		o.Stack = backtrace(r, &checkpoint.Regs{R: st.R, RIP: st.RIP})
	}
	return o
}

// print writes the lines of info.
func (o *overwrite) print(line func(name, format string, args ...any)) {
	line("returns to", "%#x, from %#x on the stack: no code is there", o.Value, o.Slot)
	if o.Why != "" {
		line("", "%s", o.Why)
		return
	}
	for i, l := range o.Stack[:min(len(o.Stack), shownWriters)] {
		if i == 0 {
			line("written", "at %s by %#x %s: %s %s", o.Position, l.Addr, l, o.Instruction, l.Source())
		} else {
			line("", "called from %s %s", l, l.Source())
		}
	}
}

// shownWriters is how many calls that led to the write info lists.
const shownWriters = 4
