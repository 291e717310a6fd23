package x86

import "testing"

// BenchmarkX87 measures handlers alone, without decoding.
func BenchmarkX87(b *testing.B) {
	for _, bb := range []struct {
		name string
		code []byte
	}{
		{"FADD", []byte{0xd8, 0xc1}},
		{"FMUL", []byte{0xd8, 0xc9}},
		{"FDIV", []byte{0xd8, 0xf1}},
		{"FSQRT", []byte{0xd9, 0xfa}},
		{"FXCH", []byte{0xd9, 0xc9}},
		{"FCOMI", []byte{0xdb, 0xf1}},
		{"FSTM64", []byte{0xdd, 0x17}},
		{"FSIN", []byte{0xd9, 0xfe}},
		{"FYL2X", []byte{0xd9, 0xf1}},
		{"F2XM1", []byte{0xd9, 0xf0}},
		{"FPATAN", []byte{0xd9, 0xf3}},
		{"XSAVEC", []byte{0x0f, 0xc7, 0x27}},
		{"XRSTOR", []byte{0x0f, 0xae, 0x2f}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			bus := &oracleBus{data: make([]byte, 4096)}
			c := New(bus, &CPUIdentity{Vendor: VendorAMD, XCR0: 7, Layout: DefaultLayout(VendorAMD, 7)})
			c.RIP, c.R[RDI], c.R[RAX] = oracleCode, oracleData, 0xee
			c.FPU.R[0] = F80{M: 0xc90fdaa22168c234, E: f80Bias}
			c.FPU.R[1] = F80{M: 0xb17217f7d1cf79ab, E: f80Bias}
			if bb.name == "F2XM1" {
				c.FPU.R[0].E = f80Bias - 1
			}
			c.FPU.Tag = 3
			v := c.FPU
			var in Inst
			if s := decodeInst(bb.code, oracleCode, c.ID, &in); s != decodeOK {
				b.Fatal(s)
			}
			if bb.name == "XRSTOR" {
				bus.data[520+7] = 0x80
			}
			for b.Loop() {
				c.FPU = v
				if e := c.handler(&in)(c, &in); e != ExitNone {
					b.Fatal(e)
				}
			}
		})
	}
}
