//go:build linux && amd64

package differential

import (
	"errors"
	"math/rand/v2"
	"testing"

	"vplay/replay/x86"
)

// TestUndefinedBytes gives the CPU random bytes that the decoder calls
// undefined: the CPU must raise #UD too. Bytes that the decoder calls an
// instruction outside the emulated set are counted: where the CPU says #UD to
// them, the decoder could.
func TestUndefinedBytes(t *testing.T) {
	s := newSession(t)
	r := rand.New(rand.NewPCG(*seedFlag, 99))
	n := max(20000, *casesFlag)
	if testing.Short() {
		n = 2000
	}
	undefined, unsupported, couldBeUD := 0, 0, map[string]int{}
	var batch []*Case
	var errs []error
	flush := func() {
		out, err := s.CPU.Run(batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range batch {
			isUD := out[i].Trap.Taken && out[i].Trap.Vector == trapUD
			switch {
			case errors.Is(errs[i], x86.ErrUndefined) && !isUD:
				t.Errorf("decoder: undefined; CPU: %s", k.Line(&out[i]))
			case errors.Is(errs[i], x86.ErrUnsupported) && isUD:
				couldBeUD[opcodeOf(k.Code)]++
			}
		}
		batch, errs = batch[:0], errs[:0]
	}
	for undefined+unsupported < n {
		b := randomBytes(r)
		_, err := x86.DecodeInst(b, CodeBase, s.Emulator.ID())
		switch {
		case errors.Is(err, x86.ErrUndefined):
			undefined++
		case errors.Is(err, x86.ErrUnsupported) && harmless(b):
			unsupported++
		default:
			continue
		}
		k := &Case{Row: -1, Code: b, Offset: 0x800, Steps: 1, In: DefaultRegs()}
		k.In.RIP = CodeBase + 0x800
		batch, errs = append(batch, k), append(errs, err)
		if len(batch) == batchSize {
			flush()
		}
	}
	flush()
	t.Logf("%d undefined, %d outside the set; of those, forms of %d opcodes are #UD on this CPU", undefined, unsupported, len(couldBeUD))
}

// randomBytes is prefixes, an opcode of some map, and random bytes behind.
func randomBytes(r *rand.Rand) []byte {
	var b []byte
	for range r.IntN(3) {
		b = append(b, []byte{0x66, 0xf2, 0xf3, 0x67, 0x2e, 0x64, 0xf0}[r.IntN(7)])
	}
	if r.IntN(3) == 0 {
		b = append(b, byte(0x40+r.IntN(16)))
	}
	switch r.IntN(8) {
	case 0, 1, 2:
		b = append(b, 0x0f)
	case 3:
		b = append(b, 0x0f, 0x38)
	case 4:
		b = append(b, 0x0f, 0x3a)
	case 5:
		b = append(b, 0xd8+byte(r.IntN(8)))
	}
	for range 12 {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// opcodeOf is the opcode bytes of b as text, without prefixes.
func opcodeOf(b []byte) string {
	for len(b) > 2 {
		switch b[0] {
		case 0x66, 0xf2, 0xf3, 0x67, 0x2e, 0x64, 0xf0:
			b = b[1:]
			continue
		}
		if b[0]&0xf0 == 0x40 {
			b = b[1:]
			continue
		}
		break
	}
	switch {
	case b[0] == 0x0f && (b[1] == 0x38 || b[1] == 0x3a):
		return hexBytes(b[:3])
	case b[0] == 0x0f:
		return hexBytes(b[:2])
	}
	return hexBytes(b[:1])
}

// harmless says whether bytes outside the emulated set may be executed: not
// what could enter the kernel or the hypervisor.
func harmless(b []byte) bool {
	switch opcodeOf(b) {
	case "0f 34", "0f 35", "0f 05", "0f 07", "0f 01", "0f 00", "cd":
		return false
	}
	return true
}
