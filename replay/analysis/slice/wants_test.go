package slice

import (
	"reflect"
	"testing"

	"vplay/replay/x86"
)

// TestFaultWants: a call through a table asks for the pointer to the table where the table is
// what cannot be read, and else for its entry.
func TestFaultWants(t *testing.T) {
	const text, table = 0x6c69626973656874, 0x559833089
	rax, rbx := Location{Reg: x86.RAX, Len: 8}, Location{Reg: x86.RBX, Len: 8}
	entry := Location{IsMemory: true, Addr: table + 0x10, Len: 8}
	for _, c := range []struct {
		name     string
		code     []byte
		rax, rbx uint64
		addr     uint64
		want     []Location
	}{
		{"call *0x10(%rax), unmapped", []byte{0xff, 0x50, 0x10}, table, 0, table + 0x10, []Location{rax}},
		{"call *0x10(%rax), its end unmapped", []byte{0xff, 0x50, 0x10}, table, 0, table + 0x13, []Location{rax}},
		{"call *0x10(%rax), not canonical", []byte{0xff, 0x50, 0x10}, text, 0, 0, []Location{rax}},
		{"call *0x10(%rax), its target", []byte{0xff, 0x50, 0x10}, table, 0, 0, []Location{entry, {Reg: x86.RAX, Len: 8, IsAddress: true}}},
		{"jmp *(%rax,%rbx,8)", []byte{0xff, 0x24, 0xd8}, table, 2, table + 0x10, []Location{rax, rbx}},
		{"call *%rax", []byte{0xff, 0xd0}, text, 0, 0, []Location{rax}},
		{"mov (%rbx),%rcx", []byte{0x48, 0x8b, 0x0b}, 0, 8, 8, []Location{rbx}},
	} {
		cpu := &x86.CPU{}
		cpu.R[x86.RAX], cpu.R[x86.RBX] = c.rax, c.rbx
		in, err := x86.DecodeInst(c.code, 0x1000, cpu.ID)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := FaultWants(cpu, &in, true, c.addr); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestRun: bytes without a gap are one piece, over the ends of the 64 that a mask has, too.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		add  [][2]uint64 // address and mask
		want uint64
	}{
		{"none", nil, noArg},
		{"a word", [][2]uint64{{0x1000, 0xff << 40}}, 0x1000 + 40},
		{"over the end", [][2]uint64{{0x1000, 0xff << 56}, {0x1040, 0xff}}, 0x1000 + 56},
		{"all", [][2]uint64{{0x1000, ^uint64(0)}, {0x1040, ^uint64(0)}}, 0x1000},
		{"a gap", [][2]uint64{{0x1000, 0xff00ff}}, noArg},
		{"a gap between two", [][2]uint64{{0x1000, 0xff}, {0x1040, 0xff}}, noArg},
	} {
		var r run
		for _, a := range c.add {
			r.add(a[0], a[1])
		}
		if got := r.start(); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}
