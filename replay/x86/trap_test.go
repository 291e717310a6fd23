package x86

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTrapRows: for every row, behind a POPF or IRET that sets TF, and where it
// stands with TF set, Run ends where single steps do.
func TestTrapRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	rows := Rows()
	vector := map[*Row]bool{}
	for _, r := range vectorRows() {
		vector[r] = true
	}
	tested, traps := 0, 0
	for i := range rows {
		r := &rows[i]
		if r.fn == nil || r.Attr("refuse") {
			continue
		}
		for k := range 8 {
			b := randomInst(rng, r)
			if vector[r] {
				b = vectorInst(rng, r)
			}
			if b == nil {
				break
			}
			tested++
			if compareTrap(t, rng, b, k) {
				traps++
			}
		}
	}
	if traps < tested/2 {
		t.Errorf("%d programs, %d of them ended by #DB", tested, traps)
	}
	t.Logf("%d programs, %d ended by #DB", tested, traps)
}

// compareTrap runs an instruction b with TF, which is set before it, by POPF,
// by IRET or from the start, and says whether a #DB ended it.
func compareTrap(t *testing.T, rng *rand.Rand, b []byte, k int) bool {
	t.Helper()
	code := append([]byte{}, b...)
	switch k % 4 {
	case 0:
		code = append([]byte{0x9d}, code...) // popf
	case 1:
		code = append([]byte{0x48, 0xcf}, code...) // iretq
	case 2:
		code = append([]byte{0x90, 0x9d}, code...) // nop; popf
	}
	code = append(code, 0x90, 0x90, 0x90, 0x0f, 0x0b)
	seed, vendor := rng.Uint64(), Vendor(k>>2&1)
	var end [2]string
	var bus [2]*testBus
	trapped := false
	for j := range end {
		c, m := machine(seed, code, vendor)
		bus[j] = m
		c.SetFlags(c.Flags() &^ (FlagTF | FlagNT))
		var frame []byte
		switch k % 4 {
		case 1:
			for _, v := range []uint64{testText + 2, selUserCS, FlagTF | FlagIF | 2, c.R[RSP], selUserDS} {
				frame = le.AppendUint64(frame, v)
			}
		case 3:
			c.SetFlags(c.Flags() | FlagTF)
		default:
			frame = le.AppendUint64(nil, c.Flags()|FlagTF)
		}
		c.R[RSP] = testData + 0x800
		m.put(c.R[RSP], frame)
		e := ExitNone
		if j == 0 {
			e = c.Run(50)
		}
		for e == ExitNone && c.Retired < 50 {
			e = c.Step()
		}
		trapped = e == ExitFault && c.Fault.Kind == FaultDB
		end[j] = describe(c, e)
	}
	if end[0] != end[1] {
		t.Errorf("% x\nrun:   %s\nsteps: %s", code, end[0], end[1])
	}
	sameMemory(t, bus[0], bus[1], "% x", code)
	return trapped
}

// TestTrapBehind: where a #DB comes when TF is set. MOV SS holds it up, as often as it
// stands there (AMD family 25 model 1), LSS does not.
func TestTrapBehind(t *testing.T) {
	for _, tt := range []struct {
		name string
		code string
		at   uint64
	}{
		{"popf; nop", "\x9d\x90\x90", 2},
		{"popf; mov ss, ecx; nop; nop", "\x9d\x8e\xd1\x90\x90", 4},
		{"popf; mov ss, ecx; mov ss, ecx; nop; nop", "\x9d\x8e\xd1\x8e\xd1\x90\x90", 6},
		{"popf; mov ds, ecx; nop", "\x9d\x8e\xd9\x90", 3},
		{"popf; lss eax, [rdi]; nop", "\x9d\x0f\xb2\x07\x90", 4},
	} {
		c, m := program([]byte(tt.code + strings.Repeat("\x90", 8))...)
		m.add(testData, 0x1000, "rw")
		c.R[RSP], c.R[RDI], c.R[RCX] = testData, testData+64, selUserDS
		m.put(testData, le.AppendUint64(nil, FlagTF|FlagIF|2))
		m.put(testData+64, []byte{0, 0, 0, 0, selUserDS, 0})
		start := c.RIP
		if e := c.Run(20); e != ExitFault || c.Fault.Kind != FaultDB || c.RIP != start+tt.at {
			t.Errorf("%s: exit %v, fault %v at +%d, want #DB at +%d", tt.name, e, c.Fault.Kind, c.RIP-start, tt.at)
		}
	}
}
