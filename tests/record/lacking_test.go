//go:build linux && amd64

package record

import (
	"testing"

	"vplay/checkpoint/abi"
	recorder "vplay/checkpoint/record"
)

// TestLacking: a program that was built for another CPU dies of an instruction that this one lacks, and is replayed up to there; where the
// CPU has it, it is executed. No CPU has all of them.
func TestLacking(t *testing.T) {
	prog := compile(t, "lacking")
	died := 0
	for _, name := range []string{"sse4a", "sha", "vaes", "avx512f", "serialize", "movdiri"} {
		r := run{args: []string{prog, name}}
		r.opt.Keep = recorder.KeepAlways
		want := r.native(t)
		if want.sig == int(abi.SIGILL) {
			died++
		}
		got, res := r.recorded(t)
		same(t, got, want)
		t.Logf("%s: signal %d; %s", name, want.sig, verify(t, res.Path))
	}
	if died == 0 {
		t.Error("this CPU has all of them")
	}
}
