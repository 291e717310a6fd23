package x86

import (
	"math/rand/v2"
	"testing"
)

// TestTranscendentalRate: the emulator rounds correctly, so the CPU must agree
// with it nearly always; other tests forgive the last bit. Measured with 20,000
// cases each, results that differ, and C1 bits about as often: AMD EPYC of
// family 25 model 17, 2026-11-20: 0.3 % (FCOS) to 3.2 % (FYL2XP1). Intel Xeon
// of family 6 model 207, 2026-11-21: FCOS and FSIN 1.7 %, FPATAN 2.4 %, FSINCOS
// 3.2 %, FPTAN 4.6 %, F2XM1 7.4 %, FYL2X 7.5 %, FYL2XP1 12.8 %.
func TestTranscendentalRate(t *testing.T) {
	oraclePath(t)
	l := hostLayout(t)
	for i := range Rows() {
		row := &Rows()[i]
		if !row.Attr("approx") {
			continue
		}
		r := rand.New(rand.NewPCG(9, uint64(row.Encoding.Second)))
		cases := make([]fpuCase, *x87Cases)
		for k := range cases {
			fc := &cases[k]
			randState(r, fc)
			le.PutUint16(fc.img[:], fpuCWInit)
			le.PutUint16(fc.img[2:], 0)
			fc.img[4] = 3
			for j := range 2 {
				a := F80{M: r.Uint64() | f80Int, E: uint16(f80Bias-5+r.IntN(5)) | uint16(r.IntN(2))<<15}
				switch {
				case j == 0 && row.Mnemonic == "FYL2X":
					a.E &= 0x7fff
				case j == 0 && row.Mnemonic == "FYL2XP1":
					a.E -= 2
				}
				a.put(fc.img[32+16*j:])
			}
			fc.code = x87Code(r, row)
			fc.mem = make([]byte, 128)
		}
		want := runOracle(t, cases)
		results, c1 := 0, 0
		for k := range cases {
			got, w := emulate(t, &cases[k], &l), &want[k]
			if f80At(got.img[32:]) != f80At(w.img[32:]) || f80At(got.img[48:]) != f80At(w.img[48:]) {
				results++
			} else if got.img[3]&2 != w.img[3]&2 {
				c1++
			}
		}
		t.Logf("%s: %d results, %d C1 of %d differ", row.Mnemonic, results, c1, len(cases))
		limit := len(cases) / 10
		if l.Vendor == VendorIntel {
			limit = len(cases) / 5
		}
		if results > limit || c1 > limit {
			t.Errorf("%s: more than %d differ", row.Mnemonic, limit)
		}
	}
}
