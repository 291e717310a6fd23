package slice

import (
	"testing"

	"vplay/replay/x86"
)

// TestSummary: the summary has a bit for each register of which something is in the set.
func TestSummary(t *testing.T) {
	for r := range uint8(16) {
		for off := range 8 {
			if s := bytesOf(r, off, 1); s.summary() != 1<<r {
				t.Errorf("byte %d of register %d: %#x", off, r, s.summary())
			}
		}
	}
	for v := range uint8(32) {
		if s := lanesOf(v, 3, 5); s.summary() != 1<<(16+v) {
			t.Errorf("vector register %d: %#x", v, s.summary())
		}
	}
	if s := flagsOf(x86.FlagZF); s.summary() != 1<<48 {
		t.Errorf("a flag: %#x", s.summary())
	}
	if s := part(partFSBase); s.summary() != 1<<50 {
		t.Errorf("FS base: %#x", s.summary())
	}
	if s := (regSet{}); s.summary() != 0 {
		t.Errorf("nothing: %#x", s.summary())
	}
}
