package sys

import (
	"context"
	"errors"
	"strings"
	"testing"

	"vplay/checkpoint"
	"vplay/replay/mem"
)

// zeros is a recording in which all captured memory is zero.
type zeros struct{}

func (zeros) PageAt(uint64, *mem.Page, *mem.Mask) (mem.Content, bool) { return mem.Zero, true }
func (zeros) ObjectPage(uint32, uint64, *mem.Page, *mem.Mask) mem.Content {
	return mem.Zero
}

const page = mem.PageSize

// newSpace returns a space with two pages at 0x10000 that may be written and a stack below
// 0x80000 that grows.
func newSpace(t *testing.T) *mem.Space {
	t.Helper()
	pool := mem.NewPool()
	t.Cleanup(func() { _ = pool.Close() })
	s := mem.NewSpace(pool, zeros{})
	s.MapAll([]mem.Region{
		{Start: 0x10000, End: 0x12000, Prot: mem.ProtRead | mem.ProtWrite},
		{Start: 0x7f000, End: 0x80000, Prot: mem.ProtRead | mem.ProtWrite, GrowsDown: true},
	})
	s.Begin()
	t.Cleanup(s.Close)
	return s
}

// apply applies an event that is told to cost nothing.
func apply(s *mem.Space, e *checkpoint.Event) error {
	return Effects(context.Background(), func(int64) error { return nil }, s, e, nil)
}

// look returns the bytes at addr, or "" where they cannot be read.
func look(s *mem.Space, addr uint64, n int) string {
	b := make([]byte, n)
	if got, _ := s.Peek(addr, b); got < n {
		return ""
	}
	return string(b)
}

// TestEffects applies the changes of the map one after the other: each sees what those
// before it have left, and writes come last.
func TestEffects(t *testing.T) {
	s := newSpace(t)
	steps := []struct {
		what string
		e    checkpoint.Event
		at   uint64
		want string // "" when nothing can be read there
	}{
		{"a write", checkpoint.Event{Writes: []checkpoint.MemWrite{{Addr: 0x10ffe, Data: []byte("abcd")}}}, 0x10ffe, "abcd"},
		{"a write to memory that is mapped by the same event", checkpoint.Event{
			Maps:   []checkpoint.MapOp{{Kind: checkpoint.MapOpMap, Start: 0x20000, End: 0x22000, Map: checkpoint.Mapping{Prot: checkpoint.ProtRead}}},
			Writes: []checkpoint.MemWrite{{Addr: 0x20010, Data: []byte("read-only")}},
		}, 0x20010, "read-only"},
		{"a move", checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpMove, Start: 0x10000, End: 0x12000, New: 0x30000, NewEnd: 0x32000}}}, 0x30ffe, "abcd"},
		{"the place that was moved from", checkpoint.Event{}, 0x10ffe, ""},
		{"a drop", checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpDrop, Start: 0x30000, End: 0x31000}}}, 0x30ffe, "\x00\x00cd"},
		{"an unmapping", checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpUnmap, Start: 0x31000, End: 0x32000}}}, 0x31000, ""},
		{"the stack, extended by the kernel", checkpoint.Event{Writes: []checkpoint.MemWrite{{Addr: 0x7eff0, Data: []byte("frame")}}}, 0x7eff0, "frame"},
	}
	for _, c := range steps {
		if err := apply(s, &c.e); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := look(s, c.at, max(1, len(c.want))); got != c.want {
			t.Errorf("%s: %q at %#x, want %q", c.what, got, c.at, c.want)
		}
	}
	protect := checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpProtect, Start: 0x20000, End: 0x21000, Prot: checkpoint.ProtRead | checkpoint.ProtExec}}}
	if err := apply(s, &protect); err != nil {
		t.Fatal(err)
	}
	if r := s.Regions(); len(r) == 0 || r[0].Start != 0x20000 || r[0].End != 0x21000 || r[0].Prot != mem.ProtRead|mem.ProtExec {
		t.Errorf("the map begins with %+v", r)
	}
}

// TestBadEffects: what a log cannot have recorded is an error that says where, and an event
// that changes the map without end is stopped by whoever pays for it.
func TestBadEffects(t *testing.T) {
	for _, c := range []struct {
		e    checkpoint.Event
		want string
	}{
		{checkpoint.Event{Writes: []checkpoint.MemWrite{{Addr: 0x90000, Data: []byte("x")}}}, "nothing is mapped at 0x90000"},
		{checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpUnmap, Start: 0x10001, End: 0x11000}}}, "0x10001-0x11000"},
		{checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpUnmap, Start: 0x11000, End: 0x10000}}}, "no range"},
		{checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpMap, Start: mem.MaxUser, End: mem.MaxUser + page}}}, "no range"},
		{checkpoint.Event{Maps: []checkpoint.MapOp{{Kind: checkpoint.MapOpMove, Start: 0x10000, End: 0x11000, New: 1, NewEnd: page}}}, "no range"},
	} {
		if err := apply(newSpace(t), &c.e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.e, err, c.want)
		}
	}
	many := checkpoint.Event{}
	for range 100 {
		many.Maps = append(many.Maps, checkpoint.MapOp{Kind: checkpoint.MapOpMap, Start: 0x10000, End: 0x12000})
	}
	poor, asked := errors.New("no more"), 0
	err := Effects(t.Context(), func(int64) error { asked++; return poor }, newSpace(t), &many, nil)
	if !errors.Is(err, poor) || asked != 1 {
		t.Errorf("%v, after %d questions", err, asked)
	}
	writes := checkpoint.Event{Writes: make([]checkpoint.MemWrite, 5000)}
	for i := range writes.Writes {
		writes.Writes[i].Addr = 0x10000
	}
	asked, most := 0, int64(0)
	err = Effects(t.Context(), func(n int64) error { asked++; most = max(most, n); return nil }, newSpace(t), &writes, nil)
	if err != nil || asked != 4 || most < 4096 {
		t.Errorf("%v, after %d questions, for %d bytes at most", err, asked, most)
	}
	err = Effects(t.Context(), func(int64) error { return poor }, newSpace(t), &writes, nil)
	if !errors.Is(err, poor) {
		t.Errorf("5,000 writes that nobody pays for: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Effects(ended, func(int64) error { return nil }, newSpace(t), &many, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, though the request has ended", err)
	}
}
