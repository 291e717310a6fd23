package x86

import "testing"

// TestX87PointersIntel: what the manual says about Intel's pointers, which no
// test on an AMD CPU can show.
func TestX87PointersIntel(t *testing.T) {
	masked, unmasked := uint16(0x37f), uint16(0x37b) // ZE
	tests := []struct {
		name            string
		noSel, dataOnly bool
		cw              uint16
		fop             uint16
		fdp             uint64
		fcs, fds        uint16
	}{
		{"old, masked", false, false, masked, 0, oracleData, 0x33, 0x2b},
		{"old, unmasked", false, false, unmasked, 0x037, oracleData, 0x33, 0x2b},
		{"new, masked", true, true, masked, 0, 0, 0, 0},
		{"new, unmasked", true, true, unmasked, 0x037, oracleData, 0, 0},
	}
	for _, tt := range tests {
		l := DefaultLayout(VendorIntel, 7)
		l.NoSelectors, l.DataOnException = tt.noSel, tt.dataOnly
		c := New(&oracleBus{data: make([]byte, 64)}, &CPUIdentity{Vendor: VendorIntel, XCR0: 7, Layout: l})
		copy(c.Bus.(*oracleBus).code[:], []byte{0xd9, 0xe8, 0xd8, 0x37}) // fld1; fdiv dword [rdi]
		c.RIP, c.R[RDI], c.Seg[CS], c.Seg[DS] = oracleCode, oracleData, 0x33, 0x2b
		c.FPU.setControl(tt.cw)
		for range 2 {
			if e := c.Step(); e != ExitNone {
				t.Fatalf("%s: exit %d", tt.name, e)
			}
		}
		f := &c.FPU
		if f.FIP != oracleCode+2 || f.FOP != tt.fop || f.FDP != tt.fdp || f.FCS != tt.fcs || f.FDS != tt.fds {
			t.Errorf("%s: fip %x fop %x fdp %x fcs %x fds %x", tt.name, f.FIP, f.FOP, f.FDP, f.FCS, f.FDS)
		}
	}
}
