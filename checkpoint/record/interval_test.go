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
		{50 * ms, ms, 0, 50 * ms},
		{50 * ms, 2 * ms, ms, 50 * ms},
		{50 * ms, 2 * ms, 4 * ms, 96 * ms},
		{50 * ms, 2 * ms, 100 * ms, 200 * ms},
		{50 * ms, 20 * ms, 100 * ms, 320 * ms},
		{time.Microsecond, ms, 100 * ms, 16 * ms},
	} {
		if got := spacing(c.wanted, c.cut, c.copies); got != c.want {
			t.Errorf("wanted %v, a cut of %v, copies of %v: %v, not %v", c.wanted, c.cut, c.copies, got, c.want)
		}
	}
}
