package differential

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vplay/replay/x86"
)

// regressIdentity is the CPU whose outcomes stand in testdata/regress.txt.
var regressIdentity = &x86.CPUIdentity{Vendor: x86.VendorAMD, Family: 25, Model: 17, XCR0: 0xe7}

// rowName names a row in messages.
func rowName(i int) string {
	r := &x86.Rows()[i]
	return fmt.Sprintf("%s %s (%s)", r.Mnemonic, r.Encoding.Text, r.File)
}

// regressLines are the cases of testdata/regress.txt, with their line numbers.
func regressLines(t *testing.T) map[int]string {
	t.Helper()
	b, err := os.ReadFile("testdata/regress.txt")
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
	e := NewEmulator(regressIdentity)
	for n, line := range regressLines(t) {
		k, want, err := ParseLine(line)
		if err != nil || want == nil {
			t.Errorf("line %d: %v (want an outcome too)", n, err)
			continue
		}
		got := e.Run(k)
		if d := Diff(k, want, &got); d != "" {
			t.Errorf("line %d: %s\n\t%s", n, line, d)
		}
	}
}

// TestLineRoundTrip prints and parses generated cases.
func TestLineRoundTrip(t *testing.T) {
	g := NewGenerator(7, x86.VendorAMD)
	e := NewEmulator(regressIdentity)
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
