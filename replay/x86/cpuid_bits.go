package x86

// Which CPU has an instruction that not all have. Rows name the CPUID bit in
// their fourth field; most names there are of instructions that every CPU this
// package knows has, and are not asked about. Those that are stand here.

// cpuidBit is a bit of a CPUID answer (SDM vol. 2A, CPUID; AMD APM vol. 3,
// appendix E) and whether the newest CPUs of each vendor have it, which is
// taken for an identity without answers.
type cpuidBit struct {
	leaf uint32 // subleaf 0
	reg  uint8  // 0 to 3: eax, ebx, ecx, edx
	bit  uint8

	intel, amd bool
}

var cpuidBits = map[string]cpuidBit{
	"RDRAND":    {1, 2, 30, true, true},
	"RTM":       {7, 1, 11, true, false},
	"RDSEED":    {7, 1, 18, true, true},
	"INVPCID":   {7, 1, 10, true, true},
	"UMIP":      {7, 2, 2, true, true},
	"OSPKE":     {7, 2, 4, true, true},
	"WAITPKG":   {7, 2, 5, true, false},
	"RDPID":     {7, 2, 22, true, true},
	"MOVDIRI":   {7, 2, 27, true, false},
	"MOVDIR64B": {7, 2, 28, true, false},
	"SERIALIZE": {7, 3, 14, true, false},
	"TSXLDTRK":  {7, 3, 16, true, false},
	"PTWRITE":   {0x14, 1, 4, true, false},
	"FMA4":      {0x80000001, 2, 16, false, false},
	"MONITORX":  {0x80000001, 2, 29, false, true},
	"3DNOW":     {0x80000001, 3, 31, false, false},
	"CLZERO":    {0x80000008, 1, 0, false, true},
	"RDPRU":     {0x80000008, 1, 4, false, true},
}

// Has reports whether the CPU has the instructions of CPUID bit name. It is
// unknown where the recorded answers of the leaf were edited and the CPU's own
// were not kept.
func (id *CPUIdentity) Has(name string) (has, known bool) {
	b, ok := cpuidBits[name]
	if !ok {
		return true, true
	}
	for _, l := range [][]CPUIDLeaf{id.Real, id.Leaves} {
		for i := range l {
			if l[i].Leaf == b.leaf && l[i].Subleaf == 0 {
				v := [4]uint32{l[i].EAX, l[i].EBX, l[i].ECX, l[i].EDX}[b.reg]
				return v>>b.bit&1 != 0, true
			}
		}
		if id.Edited && len(id.Real) == 0 {
			return false, false
		}
	}
	if len(id.Leaves) > 0 {
		return false, true // The CPU does not have the leaf.
	}
	if id.Vendor == VendorAMD {
		return b.amd, true
	}
	return b.intel, true
}

// gate asks whether the CPU has the instruction: ExitNone when it does, else
// #UD, or a refusal where the recording does not tell.
func (c *CPU) gate(in *Inst) Exit {
	switch has, known := c.ID.Has(Rows()[in.Row].CPUID); {
	case !known:
		return c.refuse(in)
	case !has:
		return c.ud()
	}
	return ExitNone
}
