package x86

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Which CPU has an instruction that not all have. Rows name the CPUID bit in
// their fourth field. Names that do not stand here are of instructions that every CPU
// has, or that are others where the bit is 0, as LZCNT is BSR. The decoder asks
// (decoder.present), so that an instruction that the CPU lacks is #UD whatever its operands are.

// cpuidBit is a bit of a CPUID answer (SDM vol. 2A, CPUID; AMD APM vol. 3,
// appendix E) and whether the newest CPUs of each vendor have it, which is
// taken for an identity without answers.
type cpuidBit struct {
	leaf uint32
	sub  uint32
	reg  uint8 // 0 to 3: eax, ebx, ecx, edx
	bit  uint8

	intel, amd bool

	// old says that CPUs have had it for long: one of which the recording does not tell is taken to have it.
	old bool
}

var cpuidBits = map[string]cpuidBit{
	"SSE3":      {1, 0, 2, 0, true, true, true},
	"PCLMULQDQ": {1, 0, 2, 1, true, true, true},
	"SSSE3":     {1, 0, 2, 9, true, true, true},
	"FMA":       {1, 0, 2, 12, true, true, true},
	"SSE4.1":    {1, 0, 2, 19, true, true, true},
	"SSE4.2":    {1, 0, 2, 20, true, true, true},
	"MOVBE":     {1, 0, 2, 22, true, true, true},
	"POPCNT":    {1, 0, 2, 23, true, true, true},
	"AES":       {1, 0, 2, 25, true, true, true},
	"AVX":       {1, 0, 2, 28, true, true, true},
	"F16C":      {1, 0, 2, 29, true, true, true},
	"BMI1":      {7, 0, 1, 3, true, true, true},
	"AVX2":      {7, 0, 1, 5, true, true, true},
	"BMI2":      {7, 0, 1, 8, true, true, true},
	"ADX":       {7, 0, 1, 19, true, true, true},
	"SHA":       {7, 0, 1, 29, true, true, true},
	"SSE4A":     {0x80000001, 0, 2, 6, false, true, true},

	"RDRAND":    {1, 0, 2, 30, true, true, false},
	"RTM":       {7, 0, 1, 11, true, false, false},
	"RDSEED":    {7, 0, 1, 18, true, true, false},
	"INVPCID":   {7, 0, 1, 10, true, true, false},
	"UMIP":      {7, 0, 2, 2, true, true, false},
	"GFNI":      {7, 0, 2, 8, true, true, false},
	"OSPKE":     {7, 0, 2, 4, true, true, false},
	"WAITPKG":   {7, 0, 2, 5, true, false, false},
	"RDPID":     {7, 0, 2, 22, true, true, false},
	"MOVDIRI":   {7, 0, 2, 27, true, false, false},
	"MOVDIR64B": {7, 0, 2, 28, true, false, false},
	"SERIALIZE": {7, 0, 3, 14, true, false, false},
	"TSXLDTRK":  {7, 0, 3, 16, true, false, false},
	"PTWRITE":   {0x14, 0, 1, 4, true, false, false},
	"MONITORX":  {0x80000001, 0, 2, 29, false, true, false},
	"3DNOW":     {0x80000001, 0, 3, 31, false, false, false},
	"CLZERO":    {0x80000008, 0, 1, 0, false, true, false},
	"RDPRU":     {0x80000008, 0, 1, 4, false, true, false},
	"VMX":       {1, 0, 2, 5, false, false, false},
	"XOP":       {0x80000001, 0, 2, 11, false, false, false},
	"LWP":       {0x80000001, 0, 2, 15, false, false, false},
	"FMA4":      {0x80000001, 0, 2, 16, false, false, false},
	"TBM":       {0x80000001, 0, 2, 21, false, false, false},

	"VAES":                {7, 0, 2, 9, true, true, false},
	"VPCLMULQDQ":          {7, 0, 2, 10, true, true, false},
	"AVX512F":             {7, 0, 1, 16, true, true, false},
	"AVX512ER":            {7, 0, 1, 27, false, false, false},
	"AVX512PF":            {7, 0, 1, 26, false, false, false},
	"AVX512_IFMA":         {7, 0, 1, 21, true, true, false},
	"AVX512_VBMI":         {7, 0, 2, 1, true, true, false},
	"AVX512_VBMI2":        {7, 0, 2, 6, true, true, false},
	"AVX512_VNNI":         {7, 0, 2, 11, true, true, false},
	"AVX512_BITALG":       {7, 0, 2, 12, true, true, false},
	"AVX512_VPOPCNTDQ":    {7, 0, 2, 14, true, true, false},
	"AVX512_4VNNIW":       {7, 0, 3, 2, false, false, false},
	"AVX512_4FMAPS":       {7, 0, 3, 3, false, false, false},
	"AVX512_VP2INTERSECT": {7, 0, 3, 8, false, true, false},
	"AVX512_FP16":         {7, 0, 3, 23, true, false, false},
	"AVX512_BF16":         {7, 1, 0, 5, true, true, false},
	"AMX_TILE":            {7, 0, 3, 24, true, false, false},
	"AMX_BF16":            {7, 0, 3, 22, true, false, false},
	"AMX_INT8":            {7, 0, 3, 25, true, false, false},
	"AMX_FP16":            {7, 1, 0, 21, true, false, false},
	"AVX_VNNI":            {7, 1, 0, 4, true, true, false},
	"AVX_IFMA":            {7, 1, 0, 23, true, false, false},
	"AVX_VNNI_INT8":       {7, 1, 3, 4, true, false, false},
	"AVX_NE_CONVERT":      {7, 1, 3, 5, true, false, false},
	"AVX_VNNI_INT16":      {7, 1, 3, 10, true, false, false},
	"SHA512":              {7, 1, 0, 0, true, false, false},
	"SM3":                 {7, 1, 0, 1, true, false, false},
	"SM4":                 {7, 1, 0, 2, true, false, false},
	"RAO_INT":             {7, 1, 0, 3, false, false, false},
	"CMPCCXADD":           {7, 1, 0, 7, true, false, false},
}

// Has reports whether the CPU has the instructions of CPUID bit name. It is
// unknown where the recorded answers of the leaf were edited and the CPU's own
// were not kept, or where they do not have the subleaf that the leaf says exists.
func (id *CPUIdentity) Has(name string) (has, known bool) {
	b, ok := cpuidBits[name]
	if !ok {
		return true, true
	}
	if id.Learnt.has(name) {
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
		if missing || id.Edited && len(id.Real) == 0 {
			return b.old, b.old
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

// ungated are the handlers of rows that are not #UD where the CPU does not have their bit: another instruction,
// or one that asks by itself.
var ungated = map[string]bool{
	"intTzcnt": true, "intPtwrite": true, "intSGDT": true, "intSIDT": true, "intSMSW": true, "intSLDT": true, "intSTR": true,
}

// isGated reports whether not every CPU has the instructions of r.
func isGated(r *Row) bool {
	_, asks := cpuidBits[r.CPUID]
	return asks && !ungated[r.Handler]
}

// feature returns the name of the bit that says whether the CPU has the forms of r of 128 bits, or the wider ones. The
// narrow forms of what AVX2, VAES and VPCLMULQDQ make wider came with AVX.
func (r *Row) feature(isWide bool) string {
	if r.Encoding.VEX && !isWide {
		switch r.CPUID {
		case "AVX2", "VAES", "VPCLMULQDQ":
			return "AVX"
		}
	}
	return r.CPUID
}

// Lacks reports whether all instructions of row r are #UD on the CPU.
func (id *CPUIdentity) Lacks(r *Row) bool {
	if r.undefined && id.Vendor != VendorAMD {
		return true
	}
	has, known := id.Has(r.feature(false))
	return r.gated && (known && !has || r.isAVX512() && id.lacksState())
}

// isAVX512 reports whether r needs the state of AVX-512.
func (r *Row) isAVX512() bool { return r.evex.unit != 0 || r.File == "opmask" }

// present looks whether the CPU has the instruction: without its features, or where the system has not enabled the state
// of AVX-512, it is #UD.
func (d *decoder) present(r *Row, in *Inst) {
	if d.id == nil || !r.gated {
		return
	}
	name := r.feature(in.Flags&InstL != 0)
	has, known := d.id.Has(name)
	switch {
	case !known:
		in.Flags |= instUnsure
	case r.isAVX512() && d.id.lacksState():
		d.fail(decodeUD)
	case !has:
		if d.status == decodeOK {
			d.hidden = name
		}
		d.fail(decodeUD)
	}
}

// Learnt are CPUID bits of instructions that a CPU has turned out to execute though its answers do not have the bit, as those
// that a hypervisor has cleared. It may be used concurrently; nil has none.
type Learnt struct {
	mu   sync.Mutex
	bits atomic.Pointer[map[string]bool] // what it points to is never changed
}

func (l *Learnt) has(name string) bool {
	if l == nil {
		return false
	}
	m := l.bits.Load()
	return m != nil && (*m)[name]
}

func (l *Learnt) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := map[string]bool{name: true}
	if m := l.bits.Load(); m != nil {
		maps.Copy(now, *m)
	}
	l.bits.Store(&now)
}

// LearnHidden is for an owner who knows that the CPU has executed the instruction at RIP, which is #UD here. It reports
// whether that is for want of a CPUID bit alone. From then on the instructions of that bit are executed, by all
// processors whose identity has the same Learnt.
func (c *CPU) LearnHidden() bool {
	if c.ID.Learnt == nil {
		return false
	}
	b := c.scratch[:maxInst]
	n, _ := c.Bus.Fetch(c.RIP, b)
	d := newDecoder(b[:n], c.ID)
	if d.decode(c.RIP, new(Inst)); d.hidden == "" {
		return false
	}
	c.ID.Learnt.add(d.hidden)
	c.FlushCode()
	return true
}

// lacksState reports whether the system has not enabled the state of AVX-512.
func (id *CPUIdentity) lacksState() bool {
	const state = xfeatSSE | xfeatAVX | xfeatWide
	return id.XCR0 != 0 && id.XCR0&state != state // 0 where nobody said
}
