//go:build linux && amd64

package differential

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"vplay/replay/x86"
	"vplay/tests/need"
)

// bytesTally counts random byte strings by what the decoder calls them.
type bytesTally struct {
	undefined, tooLong, accepted int
	notRun                       int // accepted, but not for this machine to execute
	refused                      int // known, not emulated
	refusedUD                    int // of those, #UD on the CPU
	wrong                        int
}

// TestRandomBytes gives random bytes to the CPU and to the emulator. Bytes that
// are no instruction raise the same exception on both, #UD or for their length
// #GP; what is one does the same on both. Refused instructions are counted.
func TestRandomBytes(t *testing.T) {
	s := newSession(t)
	r := newRandom(*seedFlag, 99)
	n := max(60000, *casesFlag)
	if testing.Short() {
		n = 5000
	}
	var l bytesTally
	var batch, check []*Case
	flush := func() {
		l.checkRefused(t, s, batch)
		fails, err := s.Check(check)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fails {
			l.fail(t, s, f)
		}
		batch, check = batch[:0], check[:0]
	}
	for range n {
		k, isRefused := l.add(s, r)
		switch {
		case k == nil:
		case isRefused:
			batch = append(batch, k)
		default:
			check = append(check, k)
		}
		if len(batch) == batchSize || len(check) == batchSize {
			flush()
		}
	}
	flush()
	t.Logf("%d strings: %d undefined, %d too long, %d accepted and compared, %d accepted and not executed, %d refused (%d of them #UD here)",
		n, l.undefined, l.tooLong, l.accepted, l.notRun, l.refused, l.refusedUD)
}

// add makes a case, nil if it may not be executed, and counts it.
func (l *bytesTally) add(s *Session, r *random) (k *Case, isRefused bool) {
	id := s.Emulator.ID()
	k = &Case{Row: -1, Code: randomBytes(r), Offset: 0x800, Steps: 1, In: DefaultRegs()}
	k.In.RIP = CodeBase + uint64(k.Offset)
	for i := range k.In.R {
		k.In.R[i] = DataBase + pageSize + r.Uint64()&0xff8
	}
	in, err := x86.DecodeInst(k.Code, k.In.RIP, id)
	switch {
	case isHypercall(k.Code):
		l.notRun++
		return nil, false
	case errors.Is(err, x86.ErrUndefined):
		l.undefined++
		return k, false
	case errors.Is(err, x86.ErrTooLong):
		l.tooLong++
		return k, false
	}
	k.Code = k.Code[:in.Len]
	row := &x86.Rows()[in.Row]
	if isRelative(row) && in.Imm+16 < 32 { // to itself, or into the trampoline
		l.notRun++
		return nil, false
	}
	has, _ := id.Has(row.CPUID)
	switch {
	case row.Attr("refuse") && has:
		l.refused++
		return k, true
	case row.Attr("refuse") && row.CPUID != "" && harmless(k.Code):
		l.undefined++
		return k, false
	case !mayRun(row, in.Imm) || !harmless(k.Code):
		l.notRun++
		return nil, false
	}
	l.accepted++
	return k, false
}

// checkRefused counts those refused instructions that are none to the CPU.
func (l *bytesTally) checkRefused(t *testing.T, s *Session, batch []*Case) {
	run := batch[:0]
	for _, k := range batch {
		if harmless(k.Code) {
			run = append(run, k)
		}
	}
	out, err := s.CPU.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		if out[i].Trap.Taken && out[i].Trap.Vector == trapUD {
			l.refusedUD++
		}
	}
}

// fail reports a difference. What AMD's CPUs do with bytes that no manual has
// is not measured: there it is only told.
func (l *bytesTally) fail(t *testing.T, s *Session, f Failure) {
	if l.wrong++; l.wrong > 20 {
		return
	}
	_, err := x86.DecodeInst(f.Case.Code, f.Case.In.RIP, s.Emulator.ID())
	if err != nil && s.Emulator.ID().Vendor == x86.VendorAMD {
		t.Logf("not measured on AMD: %s: %s", f.Diff, f.Case.Line(&f.Want))
		return
	}
	t.Errorf("%s: %s", f.Diff, f.Case.Line(&f.Want))
}

// isHypercall finds VMCALL and VMMCALL, wherever they stand.
func isHypercall(b []byte) bool {
	return bytes.Contains(b, []byte{0x0f, 0x01, 0xc1}) || bytes.Contains(b, []byte{0x0f, 0x01, 0xd9})
}

// mayRun says whether an instruction of the row with an immediate can be
// compared with the CPU.
func mayRun(row *x86.Row, imm uint64) bool {
	switch {
	case strings.HasPrefix(row.Mnemonic, "POPF"): // a single step would trap in the harness's way out
		return false
	case row.File == "xsave": // a random mask asks for components that the host uses
		return false
	case row.Mnemonic == "INT": // 3 and 4 are traps: rip is behind them
		return byte(imm) != 0x80 && byte(imm) != 3 && byte(imm) != 4
	}
	return WhyNotRun(row) == ""
}

// TestUndefinedLengths: of bytes that are no instruction, decoder and CPU want
// the same number before they say so. (On AMD this is not measured.)
func TestUndefinedLengths(t *testing.T) {
	s := newSession(t)
	need.Machine(t, "an Intel CPU", s.Emulator.ID().Vendor == x86.VendorIntel)
	r := newRandom(*seedFlag, 98)
	n, bad := 0, 0
	for n < 4000 && bad < 20 {
		b := randomBytes(r)
		if _, err := x86.DecodeInst(b, CodeBase, s.Emulator.ID()); !errors.Is(err, x86.ErrUndefined) {
			continue
		}
		n++
		want, _ := cpuLength(t, s.CPU, b)
		got := 1
		for ; got < 15; got++ {
			if _, err := x86.DecodeInst(b[:got], CodeBase, s.Emulator.ID()); !errors.Is(err, x86.ErrShort) {
				break
			}
		}
		if got != want {
			bad++
			t.Errorf("%s: CPU %d bytes, decoder %d", hexBytes(b), want, got)
		}
	}
	t.Logf("%d undefined strings", n)
}

// randomBytes is prefixes, an opcode of some map, and random bytes behind; at
// times prefixes without end. There are 16 or more.
func randomBytes(r *random) []byte {
	var b []byte
	prefixes := r.IntN(3)
	if r.IntN(64) == 0 {
		prefixes = r.IntN(16)
	}
	for range prefixes {
		b = append(b, []byte{0x66, 0xf2, 0xf3, 0x67, 0x2e, 0x64, 0xf0}[r.IntN(7)])
	}
	if r.IntN(3) == 0 {
		b = append(b, byte(0x40+r.IntN(16)))
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		b = append(b, 0x0f)
	case 3:
		b = append(b, 0x0f, 0x38)
	case 4:
		b = append(b, 0x0f, 0x3a)
	case 5:
		b = append(b, 0xd8+byte(r.IntN(8)))
	case 6:
		b = append(b, 0xc4, 0xe0|byte(1+r.IntN(3)))
	}
	for len(b) < 16 || r.IntN(2) == 0 {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// opcodeOf is the opcode bytes of b as text, without prefixes.
func opcodeOf(b []byte) string {
	for len(b) > 2 {
		switch b[0] {
		case 0x66, 0xf2, 0xf3, 0x67, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0xf0:
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
	case "0f 34", "0f 35", "0f 05", "0f 07", "0f 01", "0f 00":
		return false
	}
	return !bytes.Contains(b, []byte{0xcd, 0x80}) && !isHypercall(b)
}
