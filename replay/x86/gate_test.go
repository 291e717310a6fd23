package x86

import "testing"

// TestGFNIGate: an AMD CPU before Zen 4 has no GFNI, and #UD comes before any
// fault of the operand.
func TestGFNIGate(t *testing.T) {
	for _, code := range []string{
		"\x66\x0f\x38\xcf\xc1", "\x66\x0f\x3a\xce\xc1\x05", "\x66\x0f\x3a\xcf\x00\x05",
		"\xc4\xe2\x71\xcf\xc2", "\xc4\xe3\xf1\xce\xc2\x05", "\xc4\xe3\xf1\xcf\x00\x05",
	} {
		for _, has := range []bool{false, true} {
			c, _ := program([]byte(code)...)
			leaf := CPUIDLeaf{Leaf: 7}
			if has {
				leaf.ECX = 1 << 8
			}
			c.ID = &CPUIdentity{Vendor: VendorAMD, Family: 0x19, Model: 1, XCR0: 7, Leaves: []CPUIDLeaf{leaf}}
			c.R[RAX] = testData
			if e := c.Step(); (e == ExitFault && c.Fault.Kind == FaultUD) == has {
				t.Errorf("% x, GFNI %v: exit %v, fault %v", code, has, e, c.Fault.Kind)
			}
		}
	}
}
