package x86

import "testing"

// partialBus knows the bytes of a page up to an address; the others read as zero
// in the page that it hands out.
type partialBus struct {
	*testBus
	end uint64
}

func (p partialBus) Translate(a uint64, k Access) (*[pageSize]byte, bool) {
	page, _ := p.testBus.Translate(a, k)
	return page, false
}

func (p partialBus) Fetch(a uint64, b []byte) (int, Fault) {
	n := min(len(b), int(max(p.end, a)-a))
	if n, f := p.testBus.Fetch(a, b[:n]); f.Kind != FaultNone {
		return n, f
	}
	if n < len(b) {
		return n, Fault{Kind: FaultNotCaptured, Access: Exec, Addr: a + uint64(n)}
	}
	return n, Fault{}
}

// TestPartlyKnownCode runs off the end of what is known of a page of code. The
// bytes behind are zero there, which would be an instruction; it was executed once.
func TestPartlyKnownCode(t *testing.T) {
	for _, code := range [][]byte{
		{0x90, 0x90},       // between two instructions
		{0x90, 0x90, 0xb8}, // within one
	} {
		c, bus := program(code...)
		c.Bus = partialBus{bus, testText + uint64(len(code))}
		c.R[RAX] = testData
		wantExit(t, c, c.Run(100), ExitFault, testText+2, 2)
		if c.Fault.Kind != FaultNotCaptured || c.Fault.Addr != testText+uint64(len(code)) {
			t.Errorf("% x: fault %+v", code, c.Fault)
		}
	}
}
