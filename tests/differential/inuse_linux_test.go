//go:build linux && amd64

package differential

import (
	"encoding/binary"
	"testing"

	"vplay/replay/x86"
	"vplay/tests/need"
)

// modelledXState are the state components whose use the emulator keeps apart from their values.
const modelledXState = 7 | wideState

// TestInUse runs each row from XINUSE = 0 and compares XINUSE behind it, which
// Intel's CPUs keep apart from the values. Under a hypervisor the CPU's SSE bit
// can become set at any time, so one run of a case without it is enough.
func TestInUse(t *testing.T) {
	s := newSession(t)
	id := s.Emulator.ID()
	need.Machine(t, "an Intel CPU", id.Vendor == x86.VendorIntel)
	layout := x86.DefaultLayout(id.Vendor, id.XCR0)
	g := NewGenerator(1, id)
	for i := range x86.Rows() {
		row := &x86.Rows()[i]
		if i == 0 || WhyNotRun(row) != "" {
			continue
		}
		for range 6 {
			k := g.Case(i)
			k.In.V, k.In.MXCSR, k.In.Wide = [16]x86.Vec{}, 0x1f80, x86.Wide{}
			k.In.FPU.Reset()
			want, ok := nativeInUse(t, s.CPU, k)
			if !ok {
				continue
			}
			placed := s.Emulator.prepare(k)
			s.Emulator.cpu.NotInUse = modelledXState
			var o Outcome
			s.Emulator.execute(k, &o)
			img := s.Emulator.cpu.XState(nil, &layout)
			got := binary.LittleEndian.Uint64(img[xsaveHeader:]) & modelledXState
			if s.Emulator.cpu.MXCSR != 0x1f80 { // XState has the SSE bit for it, XSAVE has not
				got &^= 2
				got |= uint64(^s.Emulator.cpu.NotInUse) & 2
			}
			s.Emulator.finish(k, &o, placed)
			if got != want {
				t.Errorf("%s %s [%x]: XINUSE %x, emulator %x", row.Mnemonic, row.Encoding.Text, k.Code, want, got)
			}
		}
	}
}

// nativeInUse returns the modelled part of XINUSE behind k, the least of some
// runs from XINUSE = 0; ok is false where k ends in a trap.
func nativeInUse(t *testing.T, c *CPU, k *Case) (inUse uint64, ok bool) {
	const image = requestSize - xsaveSize
	inUse = modelledXState
	for range 3 {
		b := appendRequest(nil, k)
		binary.LittleEndian.PutUint64(b[image+xsaveHeader:], 0)
		if _, err := c.in.Write(b); err != nil {
			t.Fatal(c.died(err))
		}
		var o Outcome
		if err := c.read(k, &o); err != nil {
			t.Fatal(c.died(err))
		}
		if o.Trap.Taken || o.Problem != "" {
			return 0, false
		}
		inUse &= binary.LittleEndian.Uint64(c.answer[answerSize-xsaveSize+xsaveHeader:])
	}
	return inUse, true
}
