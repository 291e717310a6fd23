package record

import (
	"testing"
	"time"
)

// TestRingPolicy: the ring keeps what its time and its bytes allow, and one interval always.
func TestRingPolicy(t *testing.T) {
	const sec = time.Second
	ring := []ringEntry{{10, 0}, {20, 1 * sec}, {30, 2 * sec}, {40, 3 * sec}}
	for _, c := range []struct {
		name      string
		ring      []ringEntry
		now, keep time.Duration
		limit     int64
		first     int
	}{
		{"room for all", ring, 4 * sec, 5 * sec, 1000, 0},
		{"the second is old enough", ring, 6 * sec, 5 * sec, 1000, 1},
		{"just not", ring, 6*sec - 1, 5 * sec, 1000, 0},
		{"three are old enough", ring, 60 * sec, 5 * sec, 1000, 3},
		{"one too many by bytes", ring, 4 * sec, 5 * sec, 99, 1},
		{"exactly the bytes", ring, 4 * sec, 5 * sec, 100, 0},
		{"the newest stays whatever it takes", ring, 4 * sec, 5 * sec, 1, 3},
		{"one", ring[:1], 60 * sec, 5 * sec, 1, 0},
		{"none", nil, 60 * sec, 5 * sec, 1, 0},
	} {
		if got := firstKept(c.ring, c.now, c.keep, c.limit); got != c.first {
			t.Errorf("%s: %d, want %d", c.name, got, c.first)
		}
	}
}
