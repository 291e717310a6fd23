package x86

// Which CPU has an instruction that not all have. Rows name the CPUID bit in
// their fourth field; most names there are of instructions that every CPU this
// package knows has, and are not asked about. Those that are stand here.

// cpuidBit is a bit of a CPUID answer (SDM vol. 2A, CPUID; AMD APM vol. 3,
// appendix E) and whether the newest CPUs of each vendor have it, which is
// taken for an identity without answers.
type cpuidBit struct {
	leaf uint32
	sub  uint32
	reg  uint8 // 0 to 3: eax, ebx, ecx, edx
	bit  uint8

	intel, amd bool
}

var cpuidBits = map[string]cpuidBit{
	"RDRAND":    {1, 0, 2, 30, true, true},
	"RTM":       {7, 0, 1, 11, true, false},
	"RDSEED":    {7, 0, 1, 18, true, true},
	"INVPCID":   {7, 0, 1, 10, true, true},
	"UMIP":      {7, 0, 2, 2, true, true},
	"GFNI":      {7, 0, 2, 8, true, true},
	"OSPKE":     {7, 0, 2, 4, true, true},
	"WAITPKG":   {7, 0, 2, 5, true, false},
	"RDPID":     {7, 0, 2, 22, true, true},
	"MOVDIRI":   {7, 0, 2, 27, true, false},
	"MOVDIR64B": {7, 0, 2, 28, true, false},
	"SERIALIZE": {7, 0, 3, 14, true, false},
	"TSXLDTRK":  {7, 0, 3, 16, true, false},
	"PTWRITE":   {0x14, 0, 1, 4, true, false},
	"MONITORX":  {0x80000001, 0, 2, 29, false, true},
	"3DNOW":     {0x80000001, 0, 3, 31, false, false},
	"CLZERO":    {0x80000008, 0, 1, 0, false, true},
	"RDPRU":     {0x80000008, 0, 1, 4, false, true},
	"VMX":       {1, 0, 2, 5, false, false},
	"XOP":       {0x80000001, 0, 2, 11, false, false},
	"LWP":       {0x80000001, 0, 2, 15, false, false},
	"FMA4":      {0x80000001, 0, 2, 16, false, false},
	"TBM":       {0x80000001, 0, 2, 21, false, false},

	"VAES":                {7, 0, 2, 9, true, true},
	"VPCLMULQDQ":          {7, 0, 2, 10, true, true},
	"AVX512F":             {7, 0, 1, 16, true, true},
	"AVX512ER":            {7, 0, 1, 27, false, false},
	"AVX512PF":            {7, 0, 1, 26, false, false},
	"AVX512_IFMA":         {7, 0, 1, 21, true, true},
	"AVX512_VBMI":         {7, 0, 2, 1, true, true},
	"AVX512_VBMI2":        {7, 0, 2, 6, true, true},
	"AVX512_VNNI":         {7, 0, 2, 11, true, true},
	"AVX512_BITALG":       {7, 0, 2, 12, true, true},
	"AVX512_VPOPCNTDQ":    {7, 0, 2, 14, true, true},
	"AVX512_4VNNIW":       {7, 0, 3, 2, false, false},
	"AVX512_4FMAPS":       {7, 0, 3, 3, false, false},
	"AVX512_VP2INTERSECT": {7, 0, 3, 8, false, true},
	"AVX512_FP16":         {7, 0, 3, 23, true, false},
	"AVX512_BF16":         {7, 1, 0, 5, true, true},
	"AMX_TILE":            {7, 0, 3, 24, true, false},
	"AMX_BF16":            {7, 0, 3, 22, true, false},
	"AMX_INT8":            {7, 0, 3, 25, true, false},
	"AMX_FP16":            {7, 1, 0, 21, true, false},
	"AVX_VNNI":            {7, 1, 0, 4, true, true},
	"AVX_IFMA":            {7, 1, 0, 23, true, false},
	"AVX_VNNI_INT8":       {7, 1, 3, 4, true, false},
	"AVX_NE_CONVERT":      {7, 1, 3, 5, true, false},
	"AVX_VNNI_INT16":      {7, 1, 3, 10, true, false},
	"SHA512":              {7, 1, 0, 0, true, false},
	"SM3":                 {7, 1, 0, 1, true, false},
	"SM4":                 {7, 1, 0, 2, true, false},
	"RAO_INT":             {7, 1, 0, 3, false, false},
	"CMPCCXADD":           {7, 1, 0, 7, true, false},
}

// hiddenOnZen5 are instructions that every AMD CPU from Zen 5 on has. A hypervisor can hide their bits, but not have
// them fault: family 26 model 2 in a virtual machine, 2026-11-26, executes both and has neither bit.
var hiddenOnZen5 = map[string]bool{"MOVDIRI": true, "MOVDIR64B": true}

// Has reports whether the CPU has the instructions of CPUID bit name. It is
// unknown where the recorded answers of the leaf were edited and the CPU's own
// were not kept, or where they do not have the subleaf that the leaf says exists.
func (id *CPUIdentity) Has(name string) (has, known bool) {
	b, ok := cpuidBits[name]
	if !ok {
		return true, true
	}
	if id.isZen5() && hiddenOnZen5[name] {
		return true, true
	}
	missing := false
	for _, l := range [][]CPUIDLeaf{id.Real, id.Leaves} {
		for i := range l {
			switch {
			case l[i].Leaf != b.leaf:
			case l[i].Subleaf == b.sub:
				v := [4]uint32{l[i].EAX, l[i].EBX, l[i].ECX, l[i].EDX}[b.reg]
				return v>>b.bit&1 != 0, true
			case l[i].Subleaf == 0 && l[i].EAX >= b.sub:
				missing = true
			}
		}
		if missing {
			return false, false
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
