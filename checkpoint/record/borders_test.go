//go:build linux && amd64

package record

import (
	"testing"
	"time"
)

// TestBorders has the classes give back what went in, within a quarter, and from above.
func TestBorders(t *testing.T) {
	var none Borders
	if p := none.Percentile(0.99); p != 0 {
		t.Errorf("of no border: %v", p)
	}
	for _, d := range []time.Duration{0, time.Microsecond, 7 * time.Microsecond, 130 * time.Microsecond, 4999 * time.Microsecond, 3 * time.Second, 400 * time.Hour} {
		var b Borders
		b.add(d)
		b.add(2*d + time.Millisecond) // the longest does not bound the other
		if p := b.Percentile(0.5); d < time.Hour && (p < d || p > d*5/4+2*time.Microsecond) {
			t.Errorf("%v is %v", d, p)
		}
	}
	var b Borders
	for i := range 1000 {
		b.add(time.Duration(i+1) * 10 * time.Microsecond)
	}
	for _, c := range []struct {
		share  float64
		lo, hi time.Duration
	}{{0.5, 5 * time.Millisecond, 6 * time.Millisecond}, {0.99, 9900 * time.Microsecond, 10 * time.Millisecond}, {1, 10 * time.Millisecond, 10 * time.Millisecond}} {
		if p := b.Percentile(c.share); p < c.lo || p > c.hi {
			t.Errorf("share %v: %v, want %v to %v", c.share, p, c.lo, c.hi)
		}
	}
}
