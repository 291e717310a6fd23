package e2e

import (
	"testing"

	"vplay/tests/need"
)

// TestWideRegisters: gdb shows the registers of AVX-512, at the crash and before, and may
// change them in a diversion.
func TestWideRegisters(t *testing.T) {
	need.CPU(t, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")
	g := compile(t, "wideregs", "-O0", "-mavx512bw")
	addr := serve(t, g.record(t), "--symbols", g.dir+"/symbols")
	expect(t, gdb(t, addr, "p $zmm3.v8_int64", "p $k1", "p $k2", "p $zmm20.v8_int64", "p $ymm20.v4_int64", "p $xmm20.v2_int64",
		"info registers k1", "info registers zmm20", "reverse-stepi", "p $k1", "reverse-stepi", "reverse-stepi", "reverse-stepi", "p $zmm20.v8_int64"),
		`= \{1, 2, 3, 4, 5, 6, 7, 8\}`, `= 165`, `= 165`, `= \{2, 4, 6, 8, 10, 12, 14, 16\}`, `= \{2, 4, 6, 8\}`, `= \{2, 4\}`,
		`k1 +0xa5`, `zmm20 .*v8_int64 = \{0x2, 0x4, 0x6, 0x8, 0xa, 0xc, 0xe, 0x10\}`, `= 0`, `= \{0, 0, 0, 0, 0, 0, 0, 0\}`)
}
