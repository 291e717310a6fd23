package x86

// What the emulated CPU says of itself by CPUID (SDM vol. 2A, CPUID; APM vol. 3,
// appendix E), and which generation of AMD's it is. Which instructions it has is in
// cpuid_bits.go.

// CPUIDLeaf is one answer of the CPUID instruction.
type CPUIDLeaf struct {
	Leaf, Subleaf      uint32
	EAX, EBX, ECX, EDX uint32
}

// CPUID returns what the emulated CPU answers for a leaf and subleaf: eax,
// ebx, ecx, edx. A leaf without subleaves ignores the subleaf; an unknown leaf
// is answered as the CPU does, with the highest basic leaf (Intel) or zeros
// (AMD); SDM vol. 2A, CPUID.
func (id *CPUIdentity) CPUID(leaf, subleaf uint32) [4]uint32 {
	var fallback *CPUIDLeaf
	for i := range id.Leaves {
		l := &id.Leaves[i]
		if l.Leaf != leaf {
			continue
		}
		if l.Subleaf == subleaf {
			return [4]uint32{l.EAX, l.EBX, l.ECX, l.EDX}
		}
		if l.Subleaf == 0 && !hasSubleaves(leaf) {
			fallback = l
		}
	}
	if fallback == nil && id.Vendor == VendorIntel && leaf < 0x80000000 {
		fallback = id.highestBasic()
	}
	if fallback == nil {
		return [4]uint32{}
	}
	return [4]uint32{fallback.EAX, fallback.EBX, fallback.ECX, fallback.EDX}
}

// Own returns what the CPU itself answers, where CPUID's answers are edited.
func (id *CPUIdentity) Own(leaf, subleaf uint32) [4]uint32 {
	for _, l := range id.Real {
		if l.Leaf == leaf && l.Subleaf == subleaf {
			return [4]uint32{l.EAX, l.EBX, l.ECX, l.EDX}
		}
	}
	return id.CPUID(leaf, subleaf)
}

// hasSubleaves lists the leaves whose answer depends on ecx.
func hasSubleaves(leaf uint32) bool {
	switch leaf {
	case 4, 7, 0xb, 0xd, 0xf, 0x10, 0x12, 0x14, 0x17, 0x18, 0x1a, 0x1b, 0x1d, 0x1f, 0x20, 0x23, 0x24,
		0x8000001d, 0x80000020, 0x80000026:
		return true
	}
	return false
}

func (id *CPUIdentity) highestBasic() *CPUIDLeaf {
	var top *CPUIDLeaf
	for i := range id.Leaves {
		l := &id.Leaves[i]
		if l.Leaf < 0x40000000 && l.Subleaf == 0 && (top == nil || l.Leaf > top.Leaf) {
			top = l
		}
	}
	return top
}

// zen4 has the models of family 25, by their upper half, that are Zen 4 and not
// Zen 3 (linux arch/x86/kernel/cpu/amd.c, bsp_init_amd).
var zen4 = map[uint32]bool{0x1: true, 0x6: true, 0x7: true, 0xa: true}

// isZen4 reports whether the CPU is AMD's Zen 4 or a later one; those before are
// taken to be like Zen 3.
func (id *CPUIdentity) isZen4() bool {
	return id.Vendor == VendorAMD && (id.Family > 0x19 || id.Family == 0x19 && zen4[id.Model>>4])
}

// isZen3 reports whether the CPU is AMD's Zen 3 or a later one.
func (id *CPUIdentity) isZen3() bool { return id.Vendor == VendorAMD && id.Family >= 0x19 }

// isZen5 reports whether the CPU is AMD's Zen 5 or a later one.
func (id *CPUIdentity) isZen5() bool { return id.Vendor == VendorAMD && id.Family >= 0x1a }

// IsLike reports whether two CPUs are taken to be alike in what the manuals leave undefined: they
// are of one maker and family, and of AMD's family 25 of one generation.
func (id *CPUIdentity) IsLike(other *CPUIdentity) bool {
	return id.Vendor == other.Vendor && id.Family == other.Family && id.isZen4() == other.isZen4()
}
