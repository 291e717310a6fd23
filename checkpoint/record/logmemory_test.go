//go:build linux && amd64

package record

import (
	"bytes"
	"testing"
)

// TestLogMemory copies pieces of all sizes: each stays what it was.
func TestLogMemory(t *testing.T) {
	var m logMemory
	var all [][]byte
	sizes := []int{0, 1, smallLog - 1, smallLog, 1 << 20, logPortion - 1<<20, logPortion, 2*logPortion + 1, smallLog + 3, 5}
	for i, n := range sizes {
		b := bytes.Repeat([]byte{byte(i + 1)}, n)
		c := m.clone(b)
		if len(c) != n {
			t.Fatalf("%d bytes of %d", len(c), n)
		}
		if n >= smallLog && cap(c) != n { // what is appended to one must not be another's
			t.Fatalf("%d bytes have room for %d", n, cap(c))
		}
		clear(b)
		all = append(all, c)
	}
	for i, c := range all {
		if !bytes.Equal(c, bytes.Repeat([]byte{byte(i + 1)}, sizes[i])) {
			t.Errorf("piece %d of %d bytes has changed", i, sizes[i])
		}
	}
}
