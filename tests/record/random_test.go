//go:build linux && amd64

package record

import (
	"testing"
	"time"

	"vplay/tests/need"
)

// TestRandom: what RDRAND and RDSEED give is in the log, in the program and in its child.
func TestRandom(t *testing.T) {
	need.CPU(t, "rdrand", "rdseed")
	prog := compile(t, "random")
	for _, every := range []time.Duration{0, 3 * time.Millisecond} {
		r := run{args: []string{prog}}
		native := r.native(t)
		r.opt.Agent, r.opt.ForceEvery = true, every
		got, res := r.recorded(t)
		if got.out != native.out {
			t.Errorf("output\n%swant\n%s", got.out, native.out)
		}
		t.Log(verify(t, res.Path))
	}
}
