//go:build linux && amd64

package differential

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"vplay/replay/x86"
)

var updateGolden = flag.Bool("update-golden", false, "write testdata/float_*.golden of this CPU")

// TestGoldenOnCPU checks the golden file of this CPU's vendor, or writes it.
func TestGoldenOnCPU(t *testing.T) {
	s := newSession(t)
	id := s.Emulator.ID()
	file := goldenFile(id.Vendor)
	if *updateGolden {
		s.writeGolden(t, file)
		return
	}
	for _, l := range readGolden(t, file) {
		if got := s.goldenHashes(t, l.code); got != l.want {
			t.Errorf("%x # %s: CPU %v, file %v", l.code, l.name, got, l.want)
		}
	}
}

// writeGolden writes the file.
func (s *Session) writeGolden(t *testing.T, file string) {
	id := s.Emulator.ID()
	var out strings.Builder
	vendor := map[x86.Vendor]string{x86.VendorIntel: "Intel", x86.VendorAMD: "AMD"}[id.Vendor]
	fmt.Fprintf(&out, "# %s, family %d, model %d: go test ./tests/differential -run TestGoldenOnCPU -update-golden\n", vendor, id.Family, id.Model)
	for i := range x86.Rows() {
		if i == 0 {
			continue
		}
		row := &x86.Rows()[i]
		for _, code := range goldenCode(row, i, id.Vendor) {
			h := s.goldenHashes(t, code)
			fmt.Fprintf(&out, "%x %s # %s\n", code, strings.Join(h[:], " "), row.Mnemonic)
		}
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// goldenHashes asks the CPU.
func (s *Session) goldenHashes(t *testing.T, code []byte) (h [goldenGroups]string) {
	for g := range goldenGroups {
		states := goldenStates(code, g)
		out, err := s.CPU.Run(states)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			got := s.Emulator.Run(states[i])
			if d := Diff(states[i], &out[i], &got); d != "" {
				t.Errorf("%s: %s", d, states[i].Line(&out[i]))
			}
		}
		h[g] = goldenHash(out)
	}
	return h
}
