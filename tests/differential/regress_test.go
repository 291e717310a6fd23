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
	intel = &x86.CPUIdentity{Vendor: x86.VendorIntel, Family: 6, Model: 207, XCR0: 0xe7}

	references = []reference{{"amd", amd, "testdata/regress_amd.txt"}, {"intel", intel, "testdata/regress_intel.txt"}}
)

// reference is a CPU and the file of what it made of cases.
type reference struct {
	name string
	id   *x86.CPUIdentity
	file string
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

// lines are the cases of the file, with their line numbers.
func (r *reference) lines(t *testing.T) map[int]string {
	t.Helper()
	b, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	m := map[int]string{}
	for i, line := range strings.Split(string(b), "\n") {
		if text, _, _ := strings.Cut(line, "#"); strings.TrimSpace(text) != "" {
			m[i+1] = line
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
				t.Errorf("%s:%d: %v (want an outcome too)", r.file, n, err)
				continue
			}
			got := e.Run(k)
			if d := Diff(k, want, &got); d != "" {
				t.Errorf("%s:%d: %s\n\t%s", r.file, n, line, d)
			}
		}
	}
}

// TestLineRoundTrip prints and parses generated cases.
func TestLineRoundTrip(t *testing.T) {
	g := NewGenerator(7, amd.Vendor)
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
