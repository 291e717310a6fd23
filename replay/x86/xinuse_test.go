package x86

import (
	"bytes"
	"slices"
	"testing"
)

// TestAskInUse executes XSAVEC and XGETBV with vector registers that are zero: the
// owner is asked where the state does not decide, and what it says is shown.
func TestAskInUse(t *testing.T) {
	xsavec := []byte{0x48, 0x0f, 0xc7, 0x27}              // xsavec64 (%rdi)
	xgetbv := []byte{0x0f, 0x01, 0xd0}                    // xgetbv
	const code, area, filler = 0x1000, 0x2000, byte(0xa5) // addresses
	for _, tt := range []struct {
		name      string
		vendor    Vendor
		set       func(c *CPU)
		maybe     uint64
		certainly uint64
	}{
		{"AMD, all initial", VendorAMD, func(*CPU) {}, 7, 0},
		{"AMD, XMM3", VendorAMD, func(c *CPU) { c.V[3][1] = 1 }, 5, 2},
		{"AMD, upper half", VendorAMD, func(c *CPU) { c.V[3][2] = 1 }, 3, 4},
		{"AMD, MXCSR", VendorAMD, func(c *CPU) { c.MXCSR |= 1 }, 5, 2},
		{"Intel, in use", VendorIntel, func(c *CPU) { c.NotInUse = 0 }, 0, 7},
		{"Intel, SSE not in use", VendorIntel, func(c *CPU) { c.NotInUse = xfeatModelled }, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for answer := range uint64(8) {
				b := newTestBus()
				b.add(code, pageSize, "rx")
				b.add(area, pageSize, "rw")
				b.put(code, slices.Concat(xsavec, xgetbv))
				b.put(area, bytes.Repeat([]byte{filler}, 1088))
				c := New(b, &CPUIdentity{Vendor: tt.vendor, XCR0: 7})
				c.AskInUse = true
				tt.set(c)
				c.RIP, c.R[RDI], c.R[RAX], c.R[RDX], c.R[RCX] = code, area, 7, 0, 1
				want := tt.certainly | tt.maybe&answer
				askedStep(t, c, tt.maybe, answer)
				if got, _ := c.load64(area + xsaveHeader); got != want {
					t.Errorf("XSAVEC, answer %d: XSTATE_BV %d, want %d", answer, got, want)
				}
				first, _ := c.load8(area + 160)
				if stored := first != filler; stored != (want&xfeatSSE != 0) {
					t.Errorf("XSAVEC, answer %d: XMM0 stored: %t", answer, stored)
				}
				askedStep(t, c, tt.maybe, answer)
				if c.R[RAX] != want {
					t.Errorf("XGETBV, answer %d: %d, want %d", answer, c.R[RAX], want)
				}
			}
		})
	}
}

// askedStep executes an instruction and gives an answer if it asks, which it must
// just where there is a doubt.
func askedStep(t *testing.T, c *CPU, maybe, answer uint64) {
	t.Helper()
	at := c.RIP
	x := c.Step()
	if maybe != 0 {
		if x != ExitInUse || c.RIP != at || c.Retired > 1 {
			t.Fatalf("exit %d at %#x, want to be asked", x, c.RIP)
		}
		if u := c.InUse(); u.Maybe != maybe {
			t.Errorf("asked about %d, want %d", u.Maybe, maybe)
		}
		x = c.StepInUse(answer)
	}
	if x != ExitNone || c.RIP == at {
		t.Fatalf("exit %d at %#x, fault %v", x, c.RIP, c.Fault)
	}
}

// TestWideInUse: what instructions of AVX-512 put in use on Intel, as an Intel Xeon of family 6 model 85 has it.
func TestWideInUse(t *testing.T) {
	for _, k := range []struct {
		name string
		code string
		want uint64
	}{
		{"vpaddd zmm20", "\x62\xe1\x7d\x48\xfe\xe0", xfeatMore},
		{"vpaddd zmm1", "\x62\xf1\x7d\x48\xfe\xc8", xfeatSSE | xfeatAVX | xfeatHigh},
		{"vsubss xmm3 with L'L of 512 bits", "\x62\xf1\x7e\x48\x5c\xd8", xfeatSSE},
		{"vsubps zmm1, rounding up, L'L of 256 bits", "\x62\xf1\x7c\x38\x5c\xc8", xfeatSSE | xfeatAVX | xfeatHigh},
		{"kmovw k1", "\xc5\xf8\x92\xc8", xfeatMask},
		{"vpscatterdd, no mask bit left", "\x62\xf2\x7d\x49\xa0\x04\x0f", xfeatMask},
	} {
		c, _ := program([]byte(k.code)...)
		c.ID = &CPUIdentity{Vendor: VendorIntel, Family: 6, Model: 85, XCR0: 0xe7}
		c.NotInUse = xfeatModelled
		c.R[RDI] = testData
		if e := c.Step(); e != ExitNone {
			t.Errorf("%s: exit %v, fault %+v", k.name, e, c.Fault)
		}
		if got := c.inUse(VendorIntel); got != k.want {
			t.Errorf("%s: in use %#x, want %#x", k.name, got, k.want)
		}
	}
}
