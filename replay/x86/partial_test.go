package x86

import (
	"bytes"
	"testing"
)

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

// unknownBus knows no byte of data from an address on.
type unknownBus struct {
	*testBus
	end uint64
}

func (u unknownBus) Translate(uint64, Access) (*[pageSize]byte, bool) { return nil, false }

func (u unknownBus) Probe(a uint64, n int, k Access) Fault {
	if k == Load && a+uint64(n) > u.end {
		return Fault{Kind: FaultNotCaptured, Access: k, Addr: u.end}
	}
	return u.testBus.Probe(a, n, k)
}

// TestXRSTORUnknownEnd: AMD looks whether the last byte of an area can be loaded. A recording need not
// have it, for nothing depends on what it holds.
func TestXRSTORUnknownEnd(t *testing.T) {
	c, bus := program(0x0f, 0xae, 0x2f) // xrstor (%rdi)
	c.Bus = unknownBus{bus, testData + xsaveExtended}
	c.ID = &CPUIdentity{Vendor: VendorAMD, XCR0: 7, Layout: DefaultLayout(VendorAMD, 7)}
	c.R[RDI], c.R[RAX] = testData, 7 // in the area nothing is in use
	c.V[3][2] = 5
	wantExit(t, c, c.Step(), ExitNone, testText+3, 1)
	if c.V[3][2] != 0 {
		t.Error("the upper half of ymm3 was not initialised")
	}
	c, _ = program(0x0f, 0xae, 0x2f)
	c.ID = &CPUIdentity{Vendor: VendorAMD, XCR0: 7, Layout: DefaultLayout(VendorAMD, 7)}
	c.R[RDI], c.R[RAX] = testTop-640, 7
	wantExit(t, c, c.Step(), ExitFault, testText, 0)
	if c.Fault.Kind == FaultNotCaptured {
		t.Errorf("fault %+v behind the end of memory", c.Fault)
	}
}

// TestStepReportsCode: a step reports the bytes of its instruction to OnCode and no more, else
// an index says of code behind it that it may have been executed; all that was looked at where
// there is no instruction.
func TestStepReportsCode(t *testing.T) {
	for _, tt := range []struct {
		code []byte
		size uint64
	}{
		{[]byte{0x90}, 1},
		{[]byte{0x48, 0x89, 0xc3}, 3},                  // mov %rax, %rbx
		{bytes.Repeat([]byte{0x66}, maxInst), maxInst}, // too long
	} {
		c, _ := program(tt.code...)
		var from, to uint64
		c.OnCode = func(a, b uint64) { from, to = a, b }
		c.Step()
		if from != testText || to-from != tt.size {
			t.Errorf("% x: [%#x, %#x)", tt.code, from, to)
		}
	}
}
