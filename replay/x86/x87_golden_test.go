package x86

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var updateGolden = flag.Bool("update-x87", false, "rewrite testdata/x87*.golden; only after TestX87CPU and TestStateSaveCPU passed on a CPU of the vendor whose file changes")

// TestX87Golden runs random cases of each x87 and state-save row and compares
// a hash of what they do, for machines that cannot ask the CPU: the results
// must not depend on the host. Where a row differs, TestX87CPU on a CPU of the
// vendor shows in what.
func TestX87Golden(t *testing.T) {
	t.Run("AMD", func(t *testing.T) { x87Golden(t, VendorAMD, "testdata/x87.golden") })
	t.Run("Intel", func(t *testing.T) { x87Golden(t, VendorIntel, "testdata/x87-intel.golden") })
}

func x87Golden(t *testing.T, vendor Vendor, file string) {
	layout := DefaultLayout(vendor, 7)
	var out strings.Builder
	for i := range Rows() {
		row := &Rows()[i]
		var cases []fpuCase
		switch {
		case row.File == "x87":
			cases = x87RowCases(row, 100)
		case row.File == "xsave" && row.Encoding.Digit >= 0:
			r := rand.New(rand.NewPCG(1, uint64(row.Encoding.Digit)))
			for range 100 {
				cases = append(cases, xsaveCase(r, &layout, row))
			}
		default:
			continue
		}
		h := sha256.New()
		for k := range cases {
			r := emulate(t, &cases[k], &layout)
			for _, v := range []uint64{r.sig, r.rax, r.flags} {
				h.Write(binary.LittleEndian.AppendUint64(nil, v))
			}
			h.Write(r.img[:])
			h.Write(r.env[:])
			h.Write(r.mem)
		}
		fmt.Fprintf(&out, "%s %s: %x\n", row.Mnemonic, row.Encoding.Text, h.Sum(nil)[:8])
	}
	if *updateGolden {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(wanted) {
			w = wanted[i]
		}
		if g != w {
			t.Errorf("got %q, want %q", g, w)
		}
	}
}

// FuzzSetXState: no image makes SetXState or XState fail in any but the
// documented way.
func FuzzSetXState(f *testing.F) {
	f.Add([]byte{}, uint64(7))
	f.Add(make([]byte, 576), uint64(3))
	f.Add(make([]byte, 832), uint64(7))
	f.Add(make([]byte, 2432), uint64(0xe7))
	f.Fuzz(func(t *testing.T, img []byte, xcr0 uint64) {
		for _, v := range []Vendor{VendorIntel, VendorAMD} {
			l := DefaultLayout(v, xcr0)
			var s, s2 State
			if s.SetXState(img, &l) != nil {
				continue
			}
			if err := s2.SetXState(s.XState(nil, &l), &l); err != nil {
				t.Fatal(err)
			}
		}
	})
}
