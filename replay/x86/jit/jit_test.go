//go:build linux && amd64

package jit

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"vplay/replay/x86"
)

// TestOpen: there is executable memory, and a fault in it comes back.
func TestOpen(t *testing.T) {
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
}

// TestFault: a unit whose code faults is named, and the instruction that faulted and those behind it are
// executed all the same.
func TestFault(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		code []byte
	}{
		{"SIGSEGV", []byte{0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}}, // mov rax, [0]
		{"SIGILL", []byte{0x0f, 0x0b}},
		{"SIGFPE", []byte{0xf7, 0x34, 0x24}}, // div dword [rsp]: rax as it was at first, 0
	} {
		t.Run(x.name, func(t *testing.T) {
			bus := &textBus{}
			copy(bus.text[:], []byte{0xff, 0xc0, 0xff, 0xc3, 0xff, 0xc1, 0xeb, 0xf8}) // inc eax; inc ebx; inc ecx; jmp -8
			c := x86.New(bus, host())
			e := pool.Engine(c)
			defer e.Close()
			e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
			c.SetEngine(e)
			c.RIP = textAt
			begin(e)
			u := e.make(c, textAt, 0)
			copy(e.pool.rw[u.host[1]:], x.code)
			if exit := c.Run(4000); exit != x86.ExitLimit || c.Retired != 4000 {
				t.Errorf("exit %d behind %d instructions", exit, c.Retired)
			}
			if c.R[x86.RAX] != 1000 || c.R[x86.RBX] != 1000 || c.R[x86.RCX] != 1000 {
				t.Errorf("rax %d, rbx %d, rcx %d", c.R[x86.RAX], c.R[x86.RBX], c.R[x86.RCX])
			}
			if len(e.Faults) != 1 || e.Faults[0].PC != textAt+2 || len(e.Faults[0].Bytes) != 2 {
				t.Errorf("faults %+v", e.Faults)
			}
		})
	}
}

// TestPoolIsBounded: there are engines as long as there is memory, and again when it was given back.
func TestPoolIsBounded(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	var l []*Engine
	c := x86.New(&textBus{}, host())
	for {
		e := pool.Engine(c)
		e.Warmup = 0
		if !e.starts() {
			break
		}
		l = append(l, e)
	}
	if n, most, _, _ := pool.Usage(); len(l) != chunks || n != chunks || most != chunks {
		t.Errorf("%d engines, %d of %d, want %d", len(l), n, most, chunks)
	}
	for _, e := range l {
		e.Close()
	}
	if n, _, bytes, _ := pool.Usage(); n != 0 || bytes != 0 {
		t.Errorf("%d engines have %d bytes of code behind Close", n, bytes)
	}
	e := pool.Engine(c)
	begin(e)
	e.Close()
	e.Close()
}

// begin has e translate from now on.
func begin(e *Engine) {
	if e.Warmup = 0; !e.starts() {
		panic("there is no memory for code")
	}
}

// TestFullMemory: when the memory for code is full, all code is dropped and execution goes on.
func TestFullMemory(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	bus := &textBus{}
	copy(bus.text[:], []byte{0x83, 0xc0, 0x01, 0xeb, 0xfb}) // add eax, 1; jmp -5
	c := x86.New(bus, host())
	e := pool.Engine(c)
	defer e.Close()
	e.Eager()
	c.SetEngine(e)
	c.RIP = textAt
	begin(e)
	for i := range uint64(400) {
		part := &e.t.assembler
		if i%2 == 1 {
			part = &e.t.away // that of the ways out
		}
		part.n = len(part.buf) - int(i/2) // so much is left
		if u := e.entries.unit(textAt); u != nil {
			e.forget(u)
		}
		if exit := c.Run(c.Retired + 200); exit != x86.ExitLimit || c.R[x86.RAX] != 100*(i+1) {
			t.Fatalf("exit %d, rax %d in turn %d", exit, c.R[x86.RAX], i)
		}
	}
	if e.Stats.Resets == 0 {
		t.Error("it was never full")
	}
}

// TestChanged: a set of changed pages has each page that was added, or stands for all.
func TestChanged(t *testing.T) {
	var s changed
	for turn := range 3 {
		if s.any() {
			t.Errorf("turn %d: %x is not empty", turn, s)
		}
		for i := range uint64(20) {
			s.add(i / 2 * pageSize)
			if s[0] != x86.AllPages && !slices.Contains(s, i/2*pageSize) {
				t.Errorf("turn %d: page %d was added, and is not in %x", turn, i/2, s)
			}
		}
		if len(s) != 1 || s[0] != x86.AllPages {
			t.Errorf("turn %d: many pages are %x", turn, s)
		}
		s = s[:0]
	}
}

// TestBreakpointsKeepCode: a breakpoint has only the unit that it lies in translated again, and units that
// were joined to that one stop all the same.
func TestBreakpointsKeepCode(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	bus := &textBus{}
	copy(bus.text[:], []byte{0xff, 0xc0, 0xeb, 0, 0xff, 0xc3, 0xeb, 0, 0xff, 0xc1, 0xeb, 0xf4}) // three blocks in a loop
	c := x86.New(bus, host())
	e := pool.Engine(c)
	defer e.Close()
	e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
	c.SetEngine(e)
	c.RIP = textAt
	if exit := c.Run(600); exit != x86.ExitLimit || e.Stats.Units != 3 {
		t.Fatalf("exit %d, %+v", exit, e.Stats)
	}
	for _, set := range [][]uint64{{textAt + 4}, nil} {
		c.SetBreakpoints(set)
		before := e.Stats.Units
		exit := c.Run(c.Retired + 600)
		if want := x86.ExitBreak; set != nil && (exit != want || c.RIP != set[0] || c.Retired != 602) {
			t.Errorf("exit %d at %#x behind %d instructions", exit, c.RIP, c.Retired)
		}
		c.SkipBreak = true
		c.Run(c.Retired + 600)
		if n := e.Stats.Units - before; n != 1 {
			t.Errorf("breakpoints %#x: %d units were translated again", set, n)
		}
	}
}

// TestVersionsAreUnlinked: a loop whose unit has a version for its flags stops at a breakpoint that is set in it
// later, though the version's edges made the list of edges grow while an edge to it was linked.
func TestVersionsAreUnlinked(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	bus := &textBus{}
	copy(bus.text[:], []byte{
		0xff, 0xc0, 0xeb, 0, // again: inc eax; jmp 1f
		0x3d, 0, 0, 0, 0x7f, 0x72, 0xf5, // 1: cmp eax, 7f000000h; jb again
	})
	c := x86.New(bus, host())
	e := pool.Engine(c)
	defer e.Close()
	e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
	c.SetEngine(e)
	for room := range 8 {
		c.SetBreakpoints(nil)
		c.FlushCode()
		if e.chunk == 0 {
			begin(e)
		}
		e.edges.clear()
		for range listPart - room {
			e.edges.add(edge{unit: &unit{dead: true}})
		}
		c.RIP, c.R[x86.RAX] = textAt, 0
		if exit := c.Run(c.Retired + 4000); exit != x86.ExitLimit || len(e.all[0].versions) == 0 {
			t.Fatalf("exit %d, %+v", exit, e.Stats)
		}
		if err := linksAreKnown(e); err != nil {
			t.Errorf("with room for %d edges: %v", room, err)
		}
		c.SetBreakpoints([]uint64{textAt + 2})
		if exit := c.Run(c.Retired + 4000); exit != x86.ExitBreak || c.RIP != textAt+2 {
			t.Errorf("with room for %d edges: exit %d at %#x", room, exit, c.RIP)
		}
	}
}

// TestCutUnits: a unit that ends at a breakpoint is made anew when that goes. Else its versions were longer than
// itself, and a breakpoint that comes back was not seen in them.
func TestCutUnits(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	bus := &textBus{}
	copy(bus.text[:], []byte{
		0xff, 0xc0, 0xff, 0xc3, 0xeb, 0, // again: inc eax; inc ebx; jmp 1f
		0x3d, 0, 0, 0, 0x7f, 0x72, 0xf3, // 1: cmp eax, 7f000000h; jb again
	})
	c := x86.New(bus, host())
	e := pool.Engine(c)
	defer e.Close()
	e.Threshold, e.Warmup, e.MinRun = 0, 0, 0
	c.SetEngine(e)
	c.RIP = textAt
	for range 3 {
		c.SetBreakpoints([]uint64{textAt + 2})
		if exit := c.Run(c.Retired + 400); exit != x86.ExitBreak || c.RIP != textAt+2 {
			t.Fatalf("exit %d at %#x behind %d", exit, c.RIP, c.Retired)
		}
		c.SetBreakpoints(nil)
		if exit := c.Run(c.Retired + 4000); exit != x86.ExitLimit {
			t.Fatalf("exit %d", exit)
		}
	}
	for _, u := range e.all {
		for _, v := range u.versions {
			if v.end != u.end {
				t.Errorf("a version ends at %#x, its unit at %#x", v.end, u.end)
			}
		}
	}
}

// linksAreKnown looks for an edge that leads to a unit which does not know it, so that it would
// still lead there when that unit is gone.
func linksAreKnown(e *Engine) error {
	for id := range uint32(e.edges.n) {
		x := e.edges.at(id)
		if x.unit.dead || x.jump == 0 {
			continue
		}
		leads := x.jump + 4 + int(int32(binary.LittleEndian.Uint32(e.pool.rw[x.jump:])))
		switch {
		case leads == x.cold && x.to == nil:
		case x.to == nil || x.to.dead || !slices.Contains(x.to.in, id):
			return fmt.Errorf("edge %d from %#x to %#x is linked to a unit that does not know it", id, x.unit.pc, x.target)
		}
	}
	return nil
}
