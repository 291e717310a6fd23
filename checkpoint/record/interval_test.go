//go:build linux && amd64

package record

import (
	"testing"
	"time"
)

// TestSpacing: cuts that are dear make intervals longer without bound, copies of pages up to four times.
func TestSpacing(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ wanted, cut, copies, want time.Duration }{
		{100 * ms, ms, 0, 100 * ms},
		{100 * ms, 2 * ms, ms, 100 * ms},
		{100 * ms, 2 * ms, 8 * ms, 160 * ms},
		{100 * ms, 2 * ms, 100 * ms, 400 * ms},
		{100 * ms, 30 * ms, 100 * ms, 480 * ms},
		{time.Microsecond, ms, 100 * ms, 16 * ms},
	} {
		if got := spacing(c.wanted, c.cut, c.copies); got != c.want {
			t.Errorf("wanted %v, a cut of %v, copies of %v: %v, not %v", c.wanted, c.cut, c.copies, got, c.want)
		}
	}
}
