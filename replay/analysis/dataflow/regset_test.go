package dataflow

import (
	"testing"

	"vplay/replay/x86"
)

// TestSummary: the summary has a bit for each register of which something is in the set.
func TestSummary(t *testing.T) {
	for r := range uint8(16) {
		for off := range 8 {
			if s := BytesOf(r, off, 1); s.Summary() != 1<<r {
				t.Errorf("byte %d of register %d: %#x", off, r, s.Summary())
			}
		}
	}
	for v := range uint8(32) {
		if s := LanesOf(v, 3, 5); s.Summary() != 1<<(16+v) {
			t.Errorf("vector register %d: %#x", v, s.Summary())
		}
	}
	if s := FlagsOf(x86.FlagZF); s.Summary() != 1<<48 {
		t.Errorf("a flag: %#x", s.Summary())
	}
	if s := Part(PartFSBase); s.Summary() != 1<<50 {
		t.Errorf("FS base: %#x", s.Summary())
	}
	if s := (RegSet{}); s.Summary() != 0 {
		t.Errorf("nothing: %#x", s.Summary())
	}
}
