package differential

import "testing"

// TestEdgeOrder: which of two faults of an operand that reaches the end of the canonical
// addresses each vendor raises. AMD's are measured (TestEdges), Intel's are the order of the
// SDM (vol. 3A, Priority Among Concurrent Events): #GP before #PF.
func TestEdgeOrder(t *testing.T) {
	pf := func(a uint64, write bool) Trap { return Trap{Taken: true, Vector: trapPF, Addr: a, Write: write} }
	gp := Trap{Taken: true, Vector: trapGP}
	for _, c := range []struct {
		what, line string
		amd, intel Trap
	}{
		{"VMOVUPS, 64 bytes stored", "62 f1 7c 48 11 00 ; rax=7fffffffffe0", pf(0x7fffffffffe0, true), gp},
		{"VMOVUPS, 64 bytes loaded", "62 f1 7c 48 10 00 ; rax=7fffffffffe0", gp, gp},
		{"VMOVUPS, 32 bytes stored", "62 f1 7c 28 11 00 ; rax=7ffffffffff0", gp, gp},
		{"VMOVUPS stored with a mask", "62 f1 7c 49 11 00 ; rax=7fffffffffe1 k1=ffff", pf(0x7fffffffffe1, true), gp},
		{"VMOVUPS loaded with a mask", "62 f1 7c 49 10 00 ; rax=7fffffffffe1 k1=ffff", pf(0x7fffffffffe1, false), gp},
		{"VMOVUPS, elements below the end", "62 f1 7c 49 11 00 ; rax=7fffffffffe1 k1=70", pf(0x7ffffffffff1, true), pf(0x7ffffffffff1, true)},
		{"VPCOMPRESSB", "62 f2 7d 08 63 00 ; rax=7ffffffffff9", pf(0x7ffffffffff9, true), gp},
		{"VPCOMPRESSB with a mask", "62 f2 7d 09 63 00 ; rax=7ffffffffff9 k1=ffff", pf(0x7ffffffffff9, true), gp},
		{"VPCOMPRESSB, what is left ends below", "62 f2 7d 09 63 00 ; rax=7ffffffffff9 k1=fe00", pf(0x7ffffffffff9, true), pf(0x7ffffffffff9, true)},
		{"VPEXPANDB with a mask", "62 f2 7d 09 62 00 ; rax=7ffffffffff9 k1=ffff", pf(0x7ffffffffff9, false), gp},
		{"VCVTPS2PH", "62 f3 7d 08 1d 00 00 ; rax=7ffffffffff9", gp, gp},
		{"VCVTPS2PH with a mask", "62 f3 7d 09 1d 00 00 ; rax=7ffffffffff9 k1=f", pf(0x7ffffffffff9, true), gp},
		{"no element", "62 f1 7c 49 11 00 ; rax=7fffffffffe1", Trap{}, Trap{}},
	} {
		k, _, err := ParseLine(c.line)
		if err != nil {
			t.Fatal(err)
		}
		if o := NewEmulator(amd).Run(k); o.Trap != c.amd {
			t.Errorf("%s: %v on AMD, want %v", c.what, o.Trap, c.amd)
		}
		if o := NewEmulator(intel).Run(k); o.Trap != c.intel {
			t.Errorf("%s: %v on Intel, want %v", c.what, o.Trap, c.intel)
		}
	}
}
