//go:build linux && amd64

package record

import "testing"

// TestManyMappings records a program that makes nearly as many mappings as the
// kernel lets it. Each of its calls used to end an interval, as the fork of the
// one before had taken longer than an interval lasts.
func TestManyMappings(t *testing.T) {
	const n = "40000"
	_, res := recorded(t, Options{Args: []string{guest(t, "manymaps"), n}, Keep: KeepAlways}, nil)
	if !res.Recorded || res.Stats.Intervals > 200 {
		t.Errorf("recorded %t, %d intervals for 20,000 calls", res.Recorded, res.Stats.Intervals)
	}
	if d := res.Stats.MapDriftNote; d != "" {
		t.Errorf("the model of the map drifted: %s", d)
	}
}

// TestManyViews records a program that makes 6,000 mappings of one file, of another and
// of shared anonymous memory. For each of them the recorder read the kernel's list of all,
// and asked the kernel for the size of the file behind each line of it.
func TestManyViews(t *testing.T) {
	const n = "2000"
	_, res := recorded(t, Options{Args: []string{guest(t, "manyviews"), n}, Keep: KeepAlways}, nil)
	if !res.Recorded || res.Stats.Intervals > 200 {
		t.Errorf("recorded %t, %d intervals for 6,000 calls", res.Recorded, res.Stats.Intervals)
	}
	if d := res.Stats.MapDriftNote; d != "" {
		t.Errorf("the model of the map drifted: %s", d)
	}
}
