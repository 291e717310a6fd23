//go:build linux && amd64

package jit

import (
	"testing"

	"vplay/replay/x86"
)

// loading is a Bus that answers each load itself, and calls f for it.
type loading struct {
	*textBus
	f func()
}

func (b *loading) Probe(uint64, int, x86.Access) x86.Fault { return x86.Fault{} }

func (b *loading) Read(_ uint64, p []byte) x86.Fault {
	clear(p)
	b.f()
	return x86.Fault{}
}

// TestInterruptAtHandler: generated code that a handler was called from is left behind it when there is an interrupt:
// the handler may have been slow, and the slice has room for many.
func TestInterruptAtHandler(t *testing.T) {
	pool, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	bus := &loading{textBus: &textBus{}}
	copy(bus.text[:], []byte{0x8b, 0x07, 0xff, 0xc1, 0xeb, 0xfa}) // mov eax, [rdi]; inc ecx; jmp back
	c := x86.New(bus, host())
	c.RIP, c.R[x86.RDI] = textAt, 1<<32
	e := pool.Engine(c)
	defer e.Close()
	e.Eager()
	c.SetEngine(e)
	loads := 0
	bus.f = func() {
		if loads++; loads == 1000 {
			c.Interrupt()
		}
	}
	if x := c.Run(1 << 20); x != x86.ExitAttention || c.Retired != 999*3+1 || c.RIP != textAt+2 || loads != 1000 {
		t.Errorf("exit %d behind %d instructions at %#x, %d loads", x, c.Retired, c.RIP, loads)
	}
	if e.Stats.Handled < 900 {
		t.Errorf("%d instructions of generated code were a handler's", e.Stats.Handled)
	}
}
