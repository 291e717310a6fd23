package differential

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vplay/replay/x86"
)

// The CPUs whose outcomes stand in testdata.
var (
	amd   = &x86.CPUIdentity{Vendor: x86.VendorAMD, Family: 25, Model: 17, XCR0: 0xe7}
	zen3  = &x86.CPUIdentity{Vendor: x86.VendorAMD, Family: 25, Model: 1, XCR0: 7}
	intel = &x86.CPUIdentity{Vendor: x86.VendorIntel, Family: 6, Model: 207, XCR0: 0xe7}

	// Its leaf 7 as it is but for RTM, which its answers do not show and which it executes, and of leaf 1 what instructions ask for.
	cascadeLake = &x86.CPUIdentity{Vendor: x86.VendorIntel, Family: 6, Model: 85, XCR0: 0x2ff, Leaves: []x86.CPUIDLeaf{
		{Leaf: 1, ECX: 0xfffa3203, EDX: 0x1f8bfbff}, {Leaf: 7, EBX: 0xd19f6feb, ECX: 0x81c, EDX: 0xbc000400}, {Leaf: 0x80000001, ECX: 0x121},
	}}

	references = []reference{
		{"amd", amd, []string{"testdata/regress_amd.txt", "testdata/regress_zen4.txt", "testdata/wide_zen4.txt"}},
		{"zen3", zen3, []string{"testdata/regress_amd.txt", "testdata/regress_zen3.txt"}},
		{"intel", intel, []string{"testdata/regress_intel.txt"}},
		{"cascadelake", cascadeLake, []string{"testdata/regress_cascade_lake.txt"}},
	}
)

// reference is a CPU and the files of what it made of cases.
type reference struct {
	name  string
	id    *x86.CPUIdentity
	files []string
}

// isLike reports whether id is a CPU of the reference's generation: AMD's differ
// within a family, by the upper half of the model.
func (r *reference) isLike(id *x86.CPUIdentity) bool {
	return id.Vendor == r.id.Vendor && id.Family == r.id.Family &&
		(id.Vendor != x86.VendorAMD || id.Model>>4 == r.id.Model>>4)
}

// eachReference runs test for each CPU the emulator is compared with.
func eachReference(t *testing.T, test func(t *testing.T, id *x86.CPUIdentity)) {
	t.Helper()
	for _, r := range references {
		t.Run(r.name, func(t *testing.T) { test(t, r.id) })
	}
}

// rowName names a row in messages.
func rowName(i int) string {
	r := &x86.Rows()[i]
	return fmt.Sprintf("%s %s (%s)", r.Mnemonic, r.Encoding.Text, r.File)
}

// lines are the cases of the files, by file and line number.
func (r *reference) lines(t *testing.T) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, file := range r.files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			if text, _, _ := strings.Cut(line, "#"); strings.TrimSpace(text) != "" {
				m[fmt.Sprintf("%s:%d", file, i+1)] = line
			}
		}
	}
	return m
}

// TestRegress runs the emulator on every case that once failed or that
// documents a fact, on any machine.
func TestRegress(t *testing.T) {
	for _, r := range references {
		e := NewEmulator(r.id)
		for n, line := range r.lines(t) {
			k, want, err := ParseLine(line)
			if err != nil || want == nil {
				t.Errorf("%s: %v (want an outcome too)", n, err)
				continue
			}
			got := e.Run(k)
			if d := Diff(k, want, &got); d != "" {
				t.Errorf("%s, %s: %s\n\t%s", r.name, n, line, d)
			}
		}
	}
}

// TestLineRoundTrip prints and parses generated cases.
func TestLineRoundTrip(t *testing.T) {
	g := NewGenerator(7, amd)
	e := NewEmulator(amd)
	for i := 1; i < len(x86.Rows()); i += 3 {
		k := g.Case(i)
		o := e.Run(k)
		if o.Problem != "" {
			continue
		}
		line := k.Line(&o)
		k2, o2, err := ParseLine(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if s := k2.Line(o2); s != line {
			t.Fatalf("printed  %s\nand then %s", line, s)
		}
	}
}
