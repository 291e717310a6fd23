//go:build linux && amd64

package record

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestIndexRandom: the search is bytes.Index, wherever the bytes stand and whatever stands around them.
func TestIndexRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	some := []byte{0x0f, 0xc7, 0x0f, 0xc7, 0, 0xff}
	for range 20_000 {
		b := make([]byte, rng.IntN(70))
		for i := range b {
			b[i] = some[rng.IntN(len(some))]
			if rng.IntN(3) > 0 {
				b[i] = byte(rng.IntN(256))
			}
		}
		b = b[min(len(b), rng.IntN(17)):]
		if got, want := indexRandom(b), bytes.Index(b, []byte{0x0f, 0xc7}); got != want {
			t.Fatalf("%x: at %d, want %d", b, got, want)
		}
	}
}
