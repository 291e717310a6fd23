package debug

import (
	"context"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"vplay/checkpoint"
	"vplay/dwarf"
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
		return slot, value, ok && value == st.RIP && (value != 0 || !isReturnAddress(f, m, st.R[4]))
	}
	var b [15]byte
	n := m.ReadMemory(st.RIP, b[:])
	if in, err := decode(b[:n]); err != nil || in.Op != x86asm.RET {
		return 0, 0, false
	}
	slot = st.R[4]
	value, ok = m.Word(slot)
	return slot, value, ok && !isCode(f.Maps, value)
}

// isReturnAddress reports whether the word at addr is what a call leaves there. Where it is on the
// top of the stack the program has not returned: it has called, or jumped to, where no code is. The
// word below is 0 more often than not, as a pointer to no function is.
func isReturnAddress(f *replay.FinalImage, m Memory, addr uint64) bool {
	var b [7]byte
	back, ok := m.Word(addr)
	at := back - uint64(len(b))
	return ok && isCode(f.Maps, at) && m.ReadMemory(at, b[:]) == len(b) && dwarf.EndsInCall(&b)
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

// Ending is the end of a program, to be looked at for its cause.
type Ending struct {
	Session *replay.Session
	Final   *replay.FinalImage
	Names   *loader.Resolver    // of the addresses of the final image
	Files   *loader.ModuleFiles // of the program's modules
	Message string              // what the C library said, see AbortMessage
	Memory  int64               // bounds the snapshots of a search, in bytes
}

// FindOverwrite looks for what overwrote that which ended the program; nil when it
// did not end so. Why says what went wrong.
func (e *Ending) FindOverwrite(ctx context.Context) *Overwrite {
	o := e.stackDamage()
	if o == nil && e.Message == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, overwriteTime)
	defer cancel()
	t, err := replay.NewProcessTimeline(e.Session, e.Final.PID, e.Memory)
	if err == nil {
		defer t.Close()
		if o, err = e.damage(ctx, t); err == nil && o != nil && !o.IsFreed {
			err = e.findWrite(ctx, t, o)
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

// stackDamage returns what of the stack ended the program by being overwritten, nil when nothing did.
func (e *Ending) stackDamage() *Overwrite {
	if slot, value, ok := badReturn(e.Final); ok {
		return &Overwrite{What: ReturnAddress, Slot: slot, Value: value}
	}
	return smashedGuard(e.Final, e.Names)
}

// damage returns what ended the program by being overwritten, or by being freed twice, without what
// did that to it; nil when nothing did. t is the timeline of the program.
func (e *Ending) damage(ctx context.Context, t *replay.Timeline) (*Overwrite, error) {
	o := e.stackDamage()
	if o != nil || e.Message == "" {
		return o, nil
	}
	c, err := t.NewCursor()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return e.badBlock(ctx, c)
}

// findWrite finds the last write to what was overwritten, and fills in where it was.
func (e *Ending) findWrite(ctx context.Context, t *replay.Timeline, o *Overwrite) error {
	found, err := t.Find(ctx, &replay.Search{Watches: []mem.Watch{{Addr: o.Slot, Len: 8, Kind: mem.WatchWrite}}, Most: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		o.Why = "it was not written in the recorded time"
		return nil
	}
	c, err := t.NewCursor()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Seek(ctx, found[0].Pos); err != nil {
		return err
	}
	e.place(o, c)
	return nil
}

// place fills in where the cursor is.
func (e *Ending) place(o *Overwrite, c *replay.Cursor) {
	m := c.Machine()
	st := &m.CPU.State
	o.Position, o.Instruction = c.Position().String(), Disassemble(Memory{Space: m.Mem}, st.RIP)
	r := loader.NewResolver(Regions(e.Session.Rec, m.Mem), Memory{Space: m.Mem}, e.Files)
	o.Stack = Backtrace(r, &checkpoint.Regs{R: st.R, RIP: st.RIP})
}
