package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"vplay/tests/need"
)

// TestTiny runs a kernel and a program small: the command works, and its
// figures are those of the recordings.
func TestTiny(t *testing.T) {
	need.Recorder(t)
	need.Program(t, "gcc", "gzip", "perl")
	t.Run("", func(t *testing.T) { tiny(t, "-only", "fib|gzip") })
	t.Run("more", func(t *testing.T) { tiny(t, "-more", "-only", "cc1|perl") })
}

func tiny(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"-json", "-tiny", "-rounds", "1", "-no-qemu"}, args...), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Results) != 2 {
		t.Fatalf("%d results, want 2", len(rep.Results))
	}
	for _, r := range rep.Results {
		if r.Instructions < 100_000 || r.Vplay <= 0 || r.Rate <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestMeans is the arithmetic of the table.
func TestMeans(t *testing.T) {
	rs := []*result{{Group: "g", VplayRatio: 2}, {Group: "g", VplayRatio: 8}}
	if m := means(rs, func(r *result) float64 { return r.VplayRatio })["g"]; m < 3.999 || m > 4.001 {
		t.Errorf("geometric mean %v", m)
	}
}
