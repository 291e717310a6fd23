package debug

import (
	"testing"

	"vplay/checkpoint"
)

// TestFullStack: an access below a stack, near the stack pointer, says that the stack is full, with
// a page that guards it and without.
func TestFullStack(t *testing.T) {
	const stack, rw = 0x7ffc00100000, checkpoint.ProtRead | checkpoint.ProtWrite
	free := []checkpoint.Mapping{{Start: 0x400000, End: 0x401000, Prot: rw}, {Start: stack, End: stack + 0x800000, Prot: rw}}
	guarded := append([]checkpoint.Mapping{{Start: stack - 0x1000, End: stack}}, free...)
	for _, c := range []struct {
		name     string
		maps     []checkpoint.Mapping
		addr, sp uint64
		want     bool
	}{
		{"a push", free, stack - 8, stack, true},
		{"a push, guarded", guarded, stack - 8, stack, true},
		{"a local variable", guarded, stack - 0x218, stack - 0x230, true},
		{"a large frame", free, stack - 0x9000, stack - 0x9008, true},
		{"a wild pointer", free, 0x1234, stack + 0x100, false},
		{"no pointer", free, 0, 0x1000, false},
		{"in the stack", free, stack + 8, stack, false},
		{"a stack pointer that is wild", free, 0x6000_0000_0000, 0x6000_0000_0008, false},
	} {
		if g, ok := fullStack(c.maps, c.addr, c.sp); ok != c.want || ok && g.Start != stack {
			t.Errorf("%s: %#x, %t, want %t", c.name, g.Start, ok, c.want)
		}
	}
}
