//go:build linux && amd64

package record

import "testing"

// TestManyMappings records programs that make many mappings, and asks that few intervals
// come of it and that the model of the map is right.
//
// The first makes nearly as many as the kernel lets it: each of its calls used to end an
// interval, as the fork of the one before had taken longer than an interval lasts. The
// second makes 6,000 of one file, of another and of shared anonymous memory: for each of
// them the recorder read the kernel's list of all, and asked the kernel for the size of
// the file behind each line of it.
func TestManyMappings(t *testing.T) {
	for _, c := range []struct{ guest, n string }{{"manymaps", "40000"}, {"manyviews", "2000"}} {
		t.Run(c.guest, func(t *testing.T) {
			_, res := recorded(t, Options{Args: []string{guest(t, c.guest), c.n}, Keep: KeepAlways}, nil)
			if !res.Recorded || res.Stats.Intervals > 200 {
				t.Errorf("recorded %t, %d intervals", res.Recorded, res.Stats.Intervals)
			}
			if d := res.Stats.MapDriftNote; d != "" {
				t.Errorf("the model of the map drifted: %s", d)
			}
		})
	}
}
