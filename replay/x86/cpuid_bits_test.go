package x86

import "testing"

// TestHiddenBits: what a hypervisor hides of a CPU and cannot take away is executed all the same.
func TestHiddenBits(t *testing.T) {
	leaves := []CPUIDLeaf{{Leaf: 7}}
	for _, c := range []struct {
		id   CPUIdentity
		name string
		want bool
	}{
		{CPUIdentity{Vendor: VendorAMD, Family: 0x1a, Model: 2, Leaves: leaves}, "MOVDIRI", true},
		{CPUIdentity{Vendor: VendorAMD, Family: 0x1a, Model: 2, Leaves: leaves}, "MOVDIR64B", true},
		{CPUIdentity{Vendor: VendorAMD, Family: 0x1a, Model: 2, Leaves: leaves}, "SERIALIZE", false},
		{CPUIdentity{Vendor: VendorAMD, Family: 0x19, Model: 0x11, Leaves: leaves}, "MOVDIRI", false},
		{CPUIdentity{Vendor: VendorIntel, Family: 6, Model: 143, Leaves: leaves}, "MOVDIRI", false},
	} {
		if has, known := c.id.Has(c.name); has != c.want || !known {
			t.Errorf("%s of vendor %d, family %d: %t, known %t", c.name, c.id.Vendor, c.id.Family, has, known)
		}
	}
}
