//go:build linux && amd64

package record

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
)

// TestForcedEnds ends intervals at arbitrary instructions of loops that make no
// system call: every end must be found by state. With -long each loop takes 2 s
// with an end each 20 ms.
func TestForcedEnds(t *testing.T) {
	ms, every := 40, 4*time.Millisecond
	if *long {
		ms, every = 2000, 20*time.Millisecond
		limit = time.Hour
	}
	counter := compile(t, "counter", "-O0")
	n := strconv.Itoa(ms)
	seconds := fmt.Sprintf("%.3f", float64(ms)/1000)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"awk", []string{"awk", "BEGIN { srand(); t = srand(); for (i = 0; i < " + strconv.Itoa(ms*12000) + "; i++) x++; print x }"}},
		{"python", []string{"python3", "-c", "import time\nx = 0\ne = time.process_time() + " + seconds + "\nwhile True:\n    x += 1\n    if x % 100000 == 0 and time.process_time() > e: break\nprint('done')"}},
		{"counter in memory", []string{counter, "memory", n}},
		{"rep movsb", []string{counter, "movs", n}},
		{"timer", []string{counter, "timer", n}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run{args: installed(t, c.args), opt: recorder.Options{ForceEvery: every, Interval: time.Minute}}
			want := r.native(t)
			began := time.Now()
			got, res := r.recorded(t)
			took := time.Since(began)
			same(t, got, want)
			if !res.Recorded {
				t.Fatalf("nothing recorded: %s", res.Reason)
			}
			if res.Stats.ForcedEnds == 0 {
				t.Error("no interval ended by force")
			}
			v := verify(t, res.Path)
			t.Logf("recorded in %.2f s, %d forced ends, %d signals; %v, %.0f ms for each end", took.Seconds(), res.Stats.ForcedEnds,
				res.Stats.Signals, v, v.took.Seconds()*1000/float64(max(res.Stats.ForcedEnds, 1)))
		})
	}
}
