//go:build linux

package need

import "testing"

// TestSlowness: it is a number that a bound can be multiplied by.
func TestSlowness(t *testing.T) {
	if s := Slowness(); s < 1 || s > 100 {
		t.Errorf("%v", s)
	} else {
		t.Logf("%.2f", s)
	}
}
