package replay

import (
	"vplay/checkpoint"
	"vplay/replay/x86"
)

// The emulated CPU: what the recording says of the one it was made on.

// identity converts the recorded CPU's description for the processor.
func identity(id *checkpoint.Identity) *x86.CPUIdentity {
	v := x86.VendorIntel
	if id.Vendor == "AuthenticAMD" || id.Vendor == "HygonGenuine" {
		v = x86.VendorAMD
	}
	cpu := &x86.CPUIdentity{
		Vendor: v, Family: id.Family, Model: id.Model, Stepping: id.Stepping, XCR0: id.XCR0,
		TSCAux: id.TSCAux, Leaves: leaves(id.CPUID), Real: leaves(id.CPUIDReal), Edited: id.Faulting,
		Learnt: new(x86.Learnt),
	}
	cpu.Layout = x86.LayoutFromCPUID(v, id.XCR0, cpu.Own)
	if id.Faulting && len(id.CPUIDReal) == 0 {
		// Recorded by a version that did not keep what it edited away in leaf 7.
		d := x86.DefaultLayout(v, id.XCR0)
		cpu.Layout.NoSelectors, cpu.Layout.DataOnException, cpu.Layout.Narrow = d.NoSelectors, d.DataOnException, d.Narrow
	}
	return cpu
}

func leaves(l []checkpoint.CPUIDLeaf) []x86.CPUIDLeaf {
	var out []x86.CPUIDLeaf
	for _, l := range l {
		out = append(out, x86.CPUIDLeaf{Leaf: l.Leaf, Subleaf: l.Subleaf, EAX: l.EAX, EBX: l.EBX, ECX: l.ECX, EDX: l.EDX})
	}
	return out
}
