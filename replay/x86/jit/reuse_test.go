//go:build linux && amd64

package jit

import (
	"testing"

	"vplay/replay/x86"
)

// TestReuse: an engine that a processor has left goes on with its code for the next one, but for pages with other
// bytes there, and what the first processor was to stop at is no matter.
func TestReuse(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer pool.freeIdle()
	id := *host()
	loop := []byte{0xff, 0xc0, 0xeb, 0, 0xff, 0xc3, 0xeb, 0xf8} // inc eax; jmp +0; inc ebx; jmp -8
	for _, x := range []struct {
		name   string
		code   []byte
		breaks []uint64
		made   uint64 // units
		ebx    uint64
	}{
		{"first", loop, nil, 2, 1000},
		{"the same", loop, nil, 0, 1000},
		{"with a breakpoint", loop, []uint64{textAt + 4}, 0, 0},
		{"and none again", loop, nil, 1, 1000},
		{"other code", []byte{0xff, 0xc0, 0xeb, 0, 0xff, 0xcb, 0xeb, 0xf8}, nil, 2, 0xffff_fc18}, // dec ebx
		{"zeros", nil, nil, 1, 0},
		{"the first again", loop, nil, 2, 1000},
	} {
		bus := &mutableBus{}
		bus.c = x86.New(bus, &id)
		copy(bus.text[:], x.code)
		c := bus.c
		e := pool.Reuse(c)
		e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
		before := e.Stats.Units
		c.SetEngine(e)
		c.SetBreakpoints(x.breaks)
		c.RIP, c.R[x86.RAX] = textAt, 0
		exit := c.Run(4000)
		if want := map[bool]x86.Exit{true: x86.ExitBreak, false: x86.ExitLimit}[x.breaks != nil]; x.code != nil && exit != want || c.R[x86.RBX] != x.ebx {
			t.Errorf("%s: exit %d, ebx %#x", x.name, exit, c.R[x86.RBX])
		}
		if n := e.Stats.Units - before; n != x.made {
			t.Errorf("%s: %d units were made, want %d", x.name, n, x.made)
		}
		if err := linksAreKnown(e); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		c.SetEngine(x86.BlockEngine{})
		e.Close()
		e.Close()
	}
}

// TestIdleIsBounded: engines that nobody has give their memory to those that need it, and only so many are kept.
func TestIdleIsBounded(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	id := *host()
	begun := func() *Engine {
		e := pool.Reuse(x86.New(&textBus{}, &id))
		begin(e)
		return e
	}
	var l []*Engine
	for range chunks {
		l = append(l, begun())
	}
	for _, e := range l {
		e.Close()
	}
	if n, _, _, _ := pool.Usage(); n != maxIdle {
		t.Errorf("%d engines are kept", n)
	}
	other := *host()
	l = l[:0]
	for range chunks {
		e := pool.Reuse(x86.New(&textBus{}, &other))
		begin(e) // panics where the idle ones keep their memory
		l = append(l, e)
	}
	for _, e := range l {
		e.of = nil
		e.Close()
	}
	if n, _, bytes, _ := pool.Usage(); n != 0 || bytes != 0 {
		t.Errorf("%d engines are left, with %d bytes", n, bytes)
	}
}

// TestIsWanted: an engine that waits keeps its memory while there is enough for others.
func TestIsWanted(t *testing.T) {
	for _, x := range []struct {
		free, idle, chunk int
		want              bool
	}{{chunks / 2, 0, 4096, false}, {chunks/2 - 1, 0, 4096, true}, {chunks/2 - 1, 1, 4096, false}, {0, 0, 0, false}} {
		e := &Engine{chunk: x.chunk, pool: &Pool{free: make([]int, x.free), idle: make([]*Engine, x.idle)}}
		if got := e.IsWanted(); got != x.want {
			t.Errorf("%d free, %d idle, memory at %d: %t", x.free, x.idle, x.chunk, got)
		}
	}
}
