//go:build linux && amd64

package record

import (
	"bytes"
	"math/rand"
	"testing"

	"vplay/checkpoint"
)

// TestKnownPage: with what changed of a page, written over what it was, it is what it is; what was kept of it stays.
func TestKnownPage(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	now := make([]byte, checkpoint.PageSize)
	p, log := &knownPage{data: bytes.Clone(now)}, bytes.Clone(now)
	type kept struct{ got, want []byte }
	var all []kept
	for range 5000 {
		for n := rnd.Intn(4); n > 0; n-- {
			at, length := rnd.Intn(len(now)), rnd.Intn(3*lineSize)
			for i := at; i < min(at+length, len(now)); i++ {
				now[i] = byte(rnd.Intn(2))
			}
		}
		if rnd.Intn(3) == 0 {
			all = append(all, kept{p.keep(), bytes.Clone(p.data)})
		}
		was := bytes.Clone(p.data)
		changed, size, last := p.update(now), 0, -1
		changed.each(func(from, to int) {
			if from <= last || to <= from || to > len(now) || bytes.Equal(was[from:from+lineSize], now[from:from+lineSize]) {
				t.Fatalf("[%d,%d) behind %d", from, to, last)
			}
			copy(log[from:to], p.data[from:to])
			size, last = size+to-from, to
		})
		if size != changed.size() || !bytes.Equal(log, now) || !bytes.Equal(p.data, now) {
			t.Fatalf("lines %x: %d bytes, size %d", uint64(changed), size, changed.size())
		}
	}
	for i, k := range all {
		if !bytes.Equal(k.got, k.want) {
			t.Fatalf("content %d has changed behind keep", i)
		}
	}
	n := 0
	allLines.each(func(from, to int) { n += to - from })
	if n != checkpoint.PageSize || allLines.size() != n {
		t.Errorf("all lines are %d bytes", n)
	}
}
