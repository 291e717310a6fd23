package debug

import (
	"context"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"vplay/checkpoint"
	"vplay/loader"
	"vplay/replay"
	"vplay/replay/mem"
)

// Overwrite is what ended a program because something had overwritten it, and what did:
// a return address that leads nowhere, the guard of a stack frame, a header of the heap.
type Overwrite struct {
	What        string            `json:"what"`
	Slot        uint64            `json:"slot"`  // its address
	Value       uint64            `json:"value"` // what stands there
	Position    string            `json:"position,omitempty"`
	Instruction string            `json:"instruction,omitempty"`
	Stack       []loader.Location `json:"stack,omitempty"` // of the write, innermost first
	Why         string            `json:"why,omitempty"`   // the write is not known
	IsFreed     bool              `json:"freed,omitempty"` // not overwritten: freed, at the position
}

// ReturnAddress is What of a return address.
const ReturnAddress = "return address"

// overwriteTime bounds the search for the write, in which the end of the recording is
// replayed.
const overwriteTime = 5 * time.Second

// badReturn returns the slot of the stack whose content a return instruction has
// gone to, or is about to go to, where no code is.
func badReturn(f *replay.FinalImage) (slot, value uint64, ok bool) {
	st, m := &f.Current().State, Memory{Space: f.Mem}
	if !isCode(f.Maps, st.RIP) { // the return instruction has been executed
		slot = st.R[4] - 8
		value, ok = m.Word(slot)
		return slot, value, ok && value == st.RIP
	}
	var b [15]byte
	n := m.ReadMemory(st.RIP, b[:])
	if in, err := x86asm.Decode(b[:n], 64); err != nil || in.Op != x86asm.RET {
		return 0, 0, false
	}
	slot = st.R[4]
	value, ok = m.Word(slot)
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

// FindOverwrite looks for what overwrote that which ended the program of f; nil when it
// did not end so. r resolves the addresses of the final image, files has the
// files of the program's modules, message is what the C library said (see AbortMessage).
// memory bounds the snapshots of the search, in bytes. Why says what went wrong.
func FindOverwrite(ctx context.Context, s *replay.Session, f *replay.FinalImage, r *loader.Resolver, files *loader.ModuleFiles, message string, memory int64) *Overwrite {
	o := smashedGuard(f, r)
	if slot, value, ok := badReturn(f); ok {
		o = &Overwrite{What: ReturnAddress, Slot: slot, Value: value}
	}
	if o == nil && message == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, overwriteTime)
	defer cancel()
	t, err := replay.NewProcessTimeline(s, f.PID, memory)
	if err == nil {
		defer t.Close()
		var c *replay.Cursor
		if c, err = t.NewCursor(); err == nil {
			defer c.Close()
			if o == nil {
				o, err = badBlock(ctx, c, s, f, r, files, message)
			}
			if err == nil && o != nil && !o.IsFreed {
				err = o.findWrite(ctx, c, s, files)
			}
		}
	}
	switch {
	case err == nil:
	case o == nil:
		return nil
	case ctx.Err() != nil:
		o.Why = "the write was not found within " + overwriteTime.String() + ": serve, then vplay last-write, finds it"
	default:
		o.Why = err.Error()
	}
	return o
}

// findWrite finds the last write, and fills in where it was.
func (o *Overwrite) findWrite(ctx context.Context, c *replay.Cursor, s *replay.Session, files *loader.ModuleFiles) error {
	found, err := c.Timeline().Find(ctx, &replay.Search{Watches: []mem.Watch{{Addr: o.Slot, Len: 8, Kind: mem.WatchWrite}}, Most: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		o.Why = "it was not written in the recorded time"
		return nil
	}
	if err := c.Seek(ctx, found[0].Pos); err != nil {
		return err
	}
	o.at(c, s, files)
	return nil
}

// at fills in where the cursor is.
func (o *Overwrite) at(c *replay.Cursor, s *replay.Session, files *loader.ModuleFiles) {
	m := c.Machine()
	st := &m.CPU.State
	o.Position, o.Instruction = c.Position().String(), Disassemble(Memory{Space: m.Mem}, st.RIP)
	r := loader.NewResolver(Regions(s.Rec, m.Mem), Memory{Space: m.Mem}, files)
	o.Stack = Backtrace(r, &checkpoint.Regs{R: st.R, RIP: st.RIP})
}
