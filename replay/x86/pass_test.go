package x86

import "testing"

// TestPass goes past a breakpoint whose owner refuses it, by a direct and an
// indirect way there, and stops where he does not. What the owner sees is up to
// date.
func TestPass(t *testing.T) {
	// top: inc rcx; nop; BREAK: nop; jmp top
	falls := []byte{0x48, 0xff, 0xc1, 0x90, 0x90, 0xeb, 0xf9}
	// top: inc rcx; jmp rdx; BREAK: jmp top
	indirect := []byte{0x48, 0xff, 0xc1, 0xff, 0xe2, 0xeb, 0xf9}
	for _, x := range []struct {
		name                  string
		code                  []byte
		stop                  uint64
		perTurn, beforeInTurn uint64
	}{
		{"direct", falls, 4, 4, 2},
		{"indirect", indirect, 5, 3, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, _ := program(x.code...)
			c.R[RDX] = testText + x.stop
			c.SetBreakpoints([]uint64{testText + x.stop})
			turns := uint64(0)
			c.Pass = func() bool {
				turn := c.R[RCX] // one may be asked about twice
				if c.RIP != testText+x.stop || turn != turns && turn != turns+1 || c.Retired != (turn-1)*x.perTurn+x.beforeInTurn {
					t.Fatalf("asked at %#x, turn %d, after %d instructions, behind turn %d", c.RIP, turn, c.Retired, turns)
				}
				turns = turn
				return turn != 5000
			}
			wantExit(t, c, c.Run(1_000_000), ExitBreak, testText+x.stop, 4999*x.perTurn+x.beforeInTurn)
		})
	}
}

// TestOnCode: what is executed is reported, once until the translations are flushed,
// and what is not is not.
func TestOnCode(t *testing.T) {
	// dec rcx; jnz -5; jmp +1; ud2 (half of it jumped over); nop; hlt
	c, _ := program(0x48, 0xff, 0xc9, 0x75, 0xfb, 0xeb, 0x02, 0x0f, 0x0b, 0x90, 0xf4)
	reported := map[uint64]int{}
	c.OnCode = func(from, to uint64) {
		for a := from; a < to; a++ {
			reported[a-testText]++
		}
	}
	run := func() {
		c.R[RCX], c.RIP, c.Retired = 1000, testText, 0
		wantExit(t, c, c.Run(1_000_000), ExitFault, testText+10, 2002)
	}
	run()
	first := reported
	for _, o := range []uint64{0, 3, 5, 9, 10} {
		if first[o] == 0 {
			t.Errorf("offset %d was executed and not reported", o)
		}
	}
	if first[7] > 0 || first[0] > 3 {
		t.Errorf("reported %v", first)
	}
	reported = map[uint64]int{}
	run()
	if reported[0] > 1 {
		t.Errorf("reported again without a flush: %v", reported)
	}
	c.FlushTLB()
	reported = map[uint64]int{}
	run()
	if reported[0] == 0 || reported[9] == 0 {
		t.Errorf("not reported again behind a flush: %v", reported)
	}
}
