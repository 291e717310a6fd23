package abi

import (
	"slices"
	"testing"
)

// TestBlocks: a vector that lies in its own buffer, and a message's header likewise. What the call
// wrote there names other buffers.
func TestBlocks(t *testing.T) {
	vector := func() *fakeMemory { return fourPages().words(pa, pa, 32, pb, 20) }
	message := func() *fakeMemory { return fourPages().words(pb, 0, 0, pc, 2, 0, 0, 0).words(pc, pb, 56, pa, 10) }
	for _, c := range []struct {
		name    string
		m       *fakeMemory
		nr      int64
		args    [6]uint64
		ret     int64
		written uint64 // where the call writes over what it was told
		want    []Range
	}{
		{"readv", vector(), SYS_READV, argv(0, pa, 2), 40, pa, ranges(pa, 32, pb, 20)},
		{"preadv2", vector(), SYS_PREADV2, argv(0, pa, 2), 40, pa, ranges(pa, 32, pb, 20)},
		{"process_vm_readv", vector(), SYS_PROCESS_VM_READV, argv(1, pa, 2), 40, pa, ranges(pa, 32, pb, 20)},
		{"recvmsg", message(), SYS_RECVMSG, argv(0, pb), 60, pb, ranges(pb, 56, pb, 56, pa, 10)},
	} {
		blocks := Blocks(c.m, c.nr, c.args)
		after := c.m.words(c.written, 0, 0, pd, 1, pd, 8, 0)
		got, err := OutputsBy(nil, after, NewOverlay(after, blocks), c.nr, c.args, c.ret)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	if b := Blocks(vector(), SYS_WRITEV, argv(1, pa, 2)); b != nil {
		t.Errorf("writev, which only reads: %v", b)
	}
}

// TestScatters: every row with a vector that is written by is known to Blocks.
func TestScatters(t *testing.T) {
	for nr := range int64(1 << 10) {
		s, known := Lookup(nr)
		if !known {
			continue
		}
		for i := range s.Args {
			if a := &s.Args[i]; a.Kind == KindIovOut && !scatters[s.NR] {
				t.Errorf("%s", s.Name)
			}
		}
	}
}
