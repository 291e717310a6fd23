package x86

import "testing"

// BenchmarkSSE measures handlers on registers, without decoding.
func BenchmarkSSE(b *testing.B) {
	for _, h := range []struct {
		name string
		fn   Handler
		imm  uint64
	}{
		{"pxor", pxor, 0},
		{"pcmpeqb", pcmpeqb, 0},
		{"pminub", pminub, 0},
		{"pmovmskb", pmovmskb, 0},
		{"paddb", paddb, 0},
		{"paddw", paddw, 0},
		{"pshufd", pshufd, 0x1b},
		{"punpcklbw", punpcklbw, 0},
		{"pshufb", pshufb, 0},
		{"movups", movups, 0},
		{"movdX", movdX, 0},
		{"addsd", addsd, 0},
		{"mulsd", mulsd, 0},
		{"addpd", addpd, 0},
		{"mulps", mulps, 0},
		{"sqrtsd", sqrtsd, 0},
		{"cvtsi2sd", cvtsi2sd, 0},
		{"cvttsd2si", cvttsd2si, 0},
		{"vpxor", vpxor, 0},
		{"vpcmpeqb", vpcmpeqb, 0},
		{"vpminub", vpminub, 0},
		{"vpaddw", vpaddw, 0},
		{"vpmovmskb", vpmovmskb, 0},
		{"vmovups", vmovups, 0},
		{"vaddpd", vaddpd, 0},
		{"vfmadd", vfmaScalar64, 0},
		{"vzeroupper", vzeroupper, 0},
		{"ucomisd", ucomisd, 0},
		{"aesenc", aesenc, 0},
		{"pclmulqdq", pclmulqdq, 0},
		{"pcmpistri", pcmpistri, 0x0c},
	} {
		b.Run(h.name, func(b *testing.B) {
			c := New(nil, &CPUIdentity{Vendor: VendorAMD})
			c.MXCSR |= uint32(mxPE)
			for i := range c.V {
				c.V[i] = Vec{0x3ff123453f89abcd, 0x3ff234563f9abcde, 0x3ff123453f89abcd, 0x3ff234563f9abcde}
			}
			in := &Inst{Reg: 1, RM: 2, Base: NoReg, Index: NoReg, Seg: NoSeg, VVVV: 2, Imm: h.imm, Opc: 0xb9, Flags: InstL}
			for b.Loop() {
				c.V[1] = c.V[3]
				h.fn(c, in)
			}
		})
	}
}
