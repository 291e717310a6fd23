package differential

import (
	"errors"
	"testing"

	"vplay/replay/x86"
)

// TestEveryRowHasCases wants the generator to make, for every row, bytes that
// decode to that row; or a reason in policy.go.
func TestEveryRowHasCases(t *testing.T) {
	eachReference(t, func(t *testing.T, id *x86.CPUIdentity) {
		g := NewGenerator(1, id)
		for i := range x86.Rows() {
			if i == 0 || WhyNotRun(&x86.Rows()[i]) != "" || id.Lacks(&x86.Rows()[i]) {
				continue
			}
			if !hits(g, i, id) {
				t.Errorf("no case of row %s decodes to it", rowName(i))
			}
		}
	})
}

// hits says whether one of 200 cases of the row decodes to it, at full length.
func hits(g *Generator, row int, id *x86.CPUIdentity) bool {
	for range 200 {
		k := g.Case(row)
		in, err := x86.DecodeInst(k.Code, k.In.RIP, id)
		if err == nil && int(in.Row) == row && int(in.Len) == len(k.Code) {
			return true
		}
	}
	return false
}

// TestReasonsAreUsed finds entries of policy.go that no row needs any more.
func TestReasonsAreUsed(t *testing.T) {
	rows := map[string]bool{}
	for i := range x86.Rows() {
		r := &x86.Rows()[i]
		rows[r.Mnemonic] = true
		rows[r.Mnemonic+" "+r.Encoding.Text] = true
	}
	for m, reason := range notRun {
		if reason == "" {
			t.Errorf("%s: no reason", m)
		}
		if !rows[m] {
			t.Errorf("%s: in policy.go, but no row has that mnemonic", m)
		}
	}
}

// TestRefusedRows: a row with the attribute "refuse" leaves the emulator with
// ExitUnsupported and changes nothing.
func TestRefusedRows(t *testing.T) { eachReference(t, refusedRows) }

func refusedRows(t *testing.T, id *x86.CPUIdentity) {
	e := NewEmulator(id)
	g := NewGenerator(1, id)
	for i := range x86.Rows() {
		if i == 0 || !x86.Rows()[i].Attr("refuse") {
			continue
		}
		for range 50 {
			k := g.Case(i)
			in, err := x86.DecodeInst(k.Code, k.In.RIP, id)
			if err != nil || int(in.Row) != i || int(k.Offset)+len(k.Code) > CodeSize {
				continue
			}
			o := e.Run(k)
			if o.Out.R != k.In.R || o.Problem == "" && o.Trap.Vector != trapUD {
				t.Errorf("%s: %s", rowName(i), k.Line(&o))
				break
			}
		}
	}
}

// FuzzDecode: no bytes make the decoder panic or claim more than it was given.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x48, 0x01, 0xd8})
	f.Add([]byte{0xc4, 0xe2, 0x78, 0xf2, 0xc2})
	f.Add([]byte{0x66, 0xf2, 0x0f, 0x38, 0xf1, 0x04, 0x25, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []x86.Vendor{x86.VendorAMD, x86.VendorIntel} {
			in, err := x86.DecodeInst(b, CodeBase, &x86.CPUIdentity{Vendor: v})
			if err == nil && (in.Len == 0 || int(in.Len) > len(b) || in.Len > 15) {
				t.Fatalf("length %d of %d bytes", in.Len, len(b))
			}
			if err != nil && !errors.Is(err, x86.ErrShort) && !errors.Is(err, x86.ErrTooLong) &&
				!errors.Is(err, x86.ErrUndefined) {
				t.Fatal(err)
			}
		}
	})
}
