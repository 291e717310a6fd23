package x86

import "testing"

// asking is a Bus that calls f when a translation of a data page is asked for.
type asking struct {
	*testBus
	f func(page uint64)
}

func (b asking) Translate(a uint64, k Access) (*[pageSize]byte, bool) {
	if b.f != nil && k != Exec && a >= testData {
		b.f(a)
	}
	return b.testBus.Translate(a, k)
}

// TestInterruptAtBus: whatever asks the Bus may take long, for a page may have to be read, decompressed or copied. So
// between two looks at Interrupt the Bus is asked at most once, by each engine.
func TestInterruptAtBus(t *testing.T) {
	// mov eax, [rdi]; add rdi, 4; inc ecx; jmp back
	loads := []byte{0x8b, 0x07, 0x48, 0x83, 0xc7, 0x04, 0xff, 0xc1, 0xeb, 0xf6}
	for _, engine := range []Engine{BlockEngine{}, StepEngine{}, &TraceEngine{}} {
		t.Run("new page", func(t *testing.T) {
			c, bus := program(loads...)
			c.Bus = asking{bus, func(a uint64) {
				if a == testData+pageSize {
					c.Interrupt()
				}
			}}
			c.SetEngine(engine)
			c.R[RDI] = testData
			const turn, turns = 4, pageSize / 4
			wantExit(t, c, c.Run(100_000), ExitAttention, testText+2, turn*turns+1)
		})
		t.Run("slow page", func(t *testing.T) {
			c, bus := program(loads...)
			n := 0
			bus.pages[testData].slow = true
			bus.onRead = func(uint64, int) {
				if n++; n == 100 {
					c.Interrupt()
				}
			}
			c.SetEngine(engine)
			c.R[RDI] = testData
			wantExit(t, c, c.Run(100_000), ExitAttention, testText+2, 4*99+1)
			if n != 100 {
				t.Errorf("%d loads", n)
			}
		})
	}
}

// TestInterruptRep: REP takes a page of iterations at once, and looks at Interrupt behind each page.
func TestInterruptRep(t *testing.T) {
	for _, x := range []struct {
		name string
		code []byte
	}{
		{"rep movsb", []byte{0xf3, 0xa4}},
		{"rep stosb", []byte{0xf3, 0xaa}},
		{"repe cmpsb", []byte{0xf3, 0xa6}},
		{"repne scasb", []byte{0xf2, 0xae}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, bus := program(x.code...)
			const pages = 40
			from, to := uint64(1<<32), uint64(2<<32)
			bus.add(from, pages*pageSize, "rw")
			bus.add(to, pages*pageSize, "rw")
			c.Bus = asking{bus, func(a uint64) {
				if a == to+2*pageSize {
					c.Interrupt()
				}
			}}
			c.R[RAX], c.R[RCX], c.R[RSI], c.R[RDI] = 1, pages*pageSize, from, to
			if e := c.Run(1); e != ExitAttention || c.RepIter == 0 || c.RepIter > 3*pageSize || c.Retired != 0 {
				t.Fatalf("exit %d after %d iterations", e, c.RepIter)
			}
			// It goes on from there.
			c.Interrupted()
			c.Bus = bus
			if e := c.Run(1); e != ExitLimit || c.R[RCX] != 0 || c.Retired != 1 || c.R[RDI] != to+pages*pageSize {
				t.Errorf("exit %d, %d left, rdi %#x", e, c.R[RCX], c.R[RDI])
			}
		})
	}
}
