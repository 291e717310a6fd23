//go:build linux && amd64

package record

import (
	"testing"
	"time"

	recorder "vplay/checkpoint/record"
	"vplay/tests/need"
)

// TestAVX512 records a program that computes with AVX-512 in two threads and a signal handler,
// with glibc's own choice of functions: two lists of hwcaps are given to it, of which the recorder
// extends the first and glibc takes the second. Turns of threads end by force between any two
// instructions, in the last mode intervals too.
func TestAVX512(t *testing.T) {
	need.CPU(t, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")
	t.Setenv("GLIBC_TUNABLES", "glibc.cpu.hwcaps=AVX2:glibc.cpu.hwcaps=AVX2")
	guest := compile(t, "avx512", "-O1", "-pthread")
	for _, mode := range []struct {
		name string
		opt  recorder.Options
	}{
		{"plain", recorder.Options{}},
		{"forced", recorder.Options{Interval: 20 * time.Millisecond, ForceEvery: 3 * time.Millisecond}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			r := run{args: []string{guest}, opt: mode.opt}
			want := r.native(t)
			got, res := r.recorded(t)
			same(t, got, want)
			if !res.Recorded {
				t.Fatal(res.Reason)
			}
			t.Logf("%d forced ends: %v", res.Stats.ForcedEnds, verify(t, res.Path))
		})
	}
}
