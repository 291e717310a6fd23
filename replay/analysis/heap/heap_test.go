package heap

import (
	"slices"
	"testing"

	"vplay/replay/mem"
)

// TestMarksOfBlocks gives and takes blocks, and looks which bytes are marked around them.
func TestMarksOfBlocks(t *testing.T) {
	const a = 0x10000
	marked := func(x *Tracker, from, to uint64) (out []uint64) {
		for ; from < to; from++ {
			if _, ok := x.marks.Next(from, from+1); ok {
				out = append(out, from-a)
			}
		}
		return out
	}
	rangeOf := func(from, to uint64) (out []uint64) {
		for ; from < to; from++ {
			out = append(out, from)
		}
		return out
	}
	for _, c := range []struct {
		size    uint64
		headers bool
		end     uint64 // of the gap
	}{{40, true, 48}, {24, true, 32}, {25, true, 48}, {0, true, 32}, {1, true, 32}, {41, true, 64}, {20, false, 24}, {24, false, 24}} {
		x := &Tracker{headers: c.headers}
		x.Reset()
		x.give(Block{Addr: a, Size: c.size})
		if got := marked(x, a, a+100); !slices.Equal(got, rangeOf(c.size, c.end)) {
			t.Errorf("%+v: %d are marked", c, got)
		}
		if got := marked(x, a-16, a); (len(got) == 8) != c.headers {
			t.Errorf("%+v: %d in front are marked", c, got)
		}
		x.take(x.blocks[a], Call{})
		if got := marked(x, a, a+100); !slices.Equal(got, rangeOf(0, c.end)) {
			t.Errorf("%+v: %d are marked when it was freed", c, got)
		}
		x.give(Block{Addr: a, Size: 8}) // a part of it again
		if got := marked(x, a, a+8); len(got) > 0 || len(x.FreedBlocks()) > 0 {
			t.Errorf("%+v: %d are marked when it was handed out again", c, got)
		}
	}
	x := &Tracker{}
	x.Reset()
	for i := range uint64(maxFreed + 10) {
		x.take(Block{Addr: a + 64*i, Size: 16}, Call{})
	}
	if _, isKept := x.marks.Next(a, a+10*64); isKept || len(x.freed) != maxFreed || len(x.last) != maxFreed {
		t.Errorf("%d freed blocks are kept, the oldest: %v", len(x.freed), isKept)
	}
	for _, b := range []Block{{Addr: a, Size: ^uint64(0)}, {Addr: 0, Size: 1}, {Addr: mem.MaxUser - 8, Size: 100}} {
		if x.give(b); len(x.blocks) > 0 {
			t.Errorf("%+v is a block", b)
		}
	}
}

// TestReadable names functions, and holds the tables to each other.
func TestReadable(t *testing.T) {
	for name, want := range map[string]string{"_Znwm": "operator new", "_Znam": "operator new[]", "_ZdlPvm": "operator delete", "_ZdaPv": "operator delete[]", "free": "free", "brk": "brk"} {
		if got := Readable(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	calls, code := Text()
	for _, name := range calls {
		if !slices.Contains(code, name) || slices.Contains(copying, name) {
			t.Errorf("%s is called, and its code: %v", name, slices.Contains(code, name))
		}
	}
	var x extents
	for _, s := range []span{{30, 40}, {10, 20}, {30, 40}, {50, 50}} {
		x.add(s.start, s.end)
	}
	for a, want := range map[uint64]bool{9: false, 10: true, 19: true, 20: false, 30: true, 40: false, 50: false} {
		if x.has(a) != want {
			t.Errorf("%d is in %v: %v", a, x.list, !want)
		}
	}
}
