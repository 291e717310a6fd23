package debug

import (
	"encoding/binary"
	"testing"

	"vplay/checkpoint"
	"vplay/replay"
	"vplay/replay/mem"
	"vplay/replay/x86"
)

// zeros is a recording in which all memory is zero.
type zeros struct{}

func (zeros) PageAt(uint64, *mem.Page, *mem.Mask) (mem.Content, bool) { return mem.Zero, true }
func (zeros) ObjectPage(uint32, uint64, *mem.Page, *mem.Mask) mem.Content {
	return mem.Zero
}

// TestBadReturn: a return to where no code is, before and after its instruction has been
// executed, and what only looks like one.
func TestBadReturn(t *testing.T) {
	const code, data, stack = 0x1000, 0x2000, 0x3800
	for _, c := range []struct {
		what      string
		text      string // at code
		rip       uint64
		word      uint64 // that the stack pointer points to
		below     uint64 // the one that was popped last
		wantSlot  uint64 // 0: none
		wantValue uint64
	}{
		{"ret to data", "\xc3", code, data, 0, stack, data},
		{"ret to nowhere", "\xc3", code, 0x6161616161616161, 0, stack, 0x6161616161616161},
		{"ret that drops arguments", "\xc2\x08\x00", code, data, 0, stack, data},
		{"ret to code", "\xc3", code, code + 8, 0, 0, 0},
		{"another instruction", "\x90", code, data, 0, 0, 0},
		{"in data, having returned there", "", data, 0, data, stack - 8, data},
		{"nowhere, having returned there", "", 0, data, 0, stack - 8, 0},
		{"nowhere, having called through a register", "\x90\x90\x90\x90\x90\xff\xd0", 0, code + 7, 0, 0, 0},
		{"nowhere, by a jump of a function that was called", "\x90\x90\xe8\x00\x00\x00\x00", 0, code + 7, 0, 0, 0},
		{"in data, by a jump", "", data, 0, code, 0, 0},
	} {
		pool := mem.NewPool()
		s := mem.NewSpace(pool, zeros{})
		f := &replay.FinalImage{Mem: s, Threads: make([]replay.Thread, 1), Maps: []checkpoint.Mapping{
			{Start: code, End: code + mem.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtExec},
			{Start: data, End: data + 2*mem.PageSize, Prot: checkpoint.ProtRead | checkpoint.ProtWrite},
		}}
		s.MapAll([]mem.Region{{Start: code, End: code + mem.PageSize, Prot: mem.ProtRead | mem.ProtExec}, {Start: data, End: data + 2*mem.PageSize, Prot: mem.ProtRead | mem.ProtWrite}})
		s.Begin()
		words := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, c.below), c.word)
		for addr, b := range map[uint64][]byte{code: []byte(c.text), stack - 8: words} {
			if fault := s.Inject(addr, b); fault.Kind != mem.FaultNone {
				t.Fatal(fault)
			}
		}
		st := &f.Current().State
		st.RIP, st.R[x86.RSP] = c.rip, stack
		slot, value, ok := badReturn(f)
		if ok != (c.wantSlot != 0) || ok && (slot != c.wantSlot || value != c.wantValue) {
			t.Errorf("%s: %#x at %#x, %t, want %#x at %#x", c.what, value, slot, ok, c.wantValue, c.wantSlot)
		}
		s.Close()
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}
