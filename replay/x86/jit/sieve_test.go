//go:build linux && amd64

package jit

import (
	"testing"

	"vplay/replay/x86"
)

// TestSieveBesidePass: generated code goes past the place that a search by state looks at by itself, also while the user's
// breakpoints have conditions, as gdb's session always has some breakpoints. Pass refused, and each turn of a loop
// left generated code to ask it.
func TestSieveBesidePass(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	bus := &textBus{}
	copy(bus.text[:], []byte{0xff, 0xc1, 0x90, 0xeb, 0xfb}) // inc ecx; nop; jmp back
	c := x86.New(bus, host())
	c.RIP = textAt
	c.SetBreakpoints([]uint64{textAt + 2})
	asked := 0
	c.Pass = func() bool { asked++; return false }
	e := pool.Engine(c)
	defer e.Close()
	e.Eager()
	c.SetEngine(e)

	const turns = 100_000
	c.Sieve = &x86.Sieve{PC: textAt + 2, R: c.R}
	c.Sieve.R[x86.RCX] = turns
	if x := c.Run(1 << 30); x != x86.ExitBreak || c.R[x86.RCX] != turns || c.RIP != textAt+2 {
		t.Errorf("exit %d at %#x in turn %d, want a stop in turn %d", x, c.RIP, c.R[x86.RCX], turns)
	}
	if asked > turns/100 {
		t.Errorf("Pass was asked %d times in %d turns", asked, turns)
	}
}
