package windows

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A log of first loads is read back: with the loads that it does not have, known from before, it
// gives every value.

// bits reads what bitBlocks wrote.
type bits struct {
	raw []byte
	at  uint
}

func (b *bits) get(n uint) (v uint64) {
	for i := range n {
		v |= uint64(b.raw[b.at/8]>>(b.at%8)&1) << i
		b.at++
	}
	return v
}

// TestLoadLog writes loads and reads the log as replay would, which knows how wide each load is and has every value of
// a location that it has seen.
func TestLoadLog(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	type load struct {
		at      int
		data    []byte
		isFirst bool
	}
	var l loadLog
	var loads []load
	seen := map[int][]byte{}
	for range 5000 {
		x := load{at: r.IntN(200)}
		if r.IntN(4) == 0 {
			x.at = r.IntN(100_000)
		}
		if x.data = seen[x.at]; x.data == nil {
			x.isFirst = true
			x.data = make([]byte, []int{1, 2, 4, 8, 16, 32, 24}[r.IntN(7)])
			for i := range x.data {
				if r.IntN(3) == 0 {
					x.data[i] = byte(r.IntN(4))
				}
			}
			seen[x.at] = x.data
		}
		loads = append(loads, x)
		l.load(x.data, x.isFirst)
	}
	for range 8 { // the last bits into whole bytes
		l.entries.put(0, 1)
	}
	log := bits{raw: slices.Clone(l.entries.raw)}
	var d dictionary
	known := map[int][]byte{}
	count := func() uint64 {
		if log.get(1) == 0 {
			return log.get(shortCountBits)
		}
		return log.get(longCountBits)
	}
	left := count()
	for i, x := range loads {
		isFirst := left == 0
		if isFirst != x.isFirst {
			t.Fatalf("load %d: in the log %t, want %t", i, isFirst, x.isFirst)
		}
		var got []byte
		for n := len(x.data); isFirst && n > 0; n -= 8 {
			var v uint64
			if log.get(1) == 1 {
				v = d.values[log.get(placeBits)]
			} else {
				v = log.get(uint(8 * min(n, 8)))
			}
			d.look(v)
			for b := range min(n, 8) {
				got = append(got, byte(v>>(8*b)))
			}
		}
		if isFirst {
			known[x.at] = got
			if slices.ContainsFunc(loads[i+1:], func(x load) bool { return x.isFirst }) {
				left = count()
			} else {
				left = ^uint64(0)
			}
		} else {
			left--
			got = known[x.at]
			var again loadLog // the dictionary sees every load
			again.d = d
			again.load(got, false)
			d = again.d
		}
		if !slices.Equal(got, x.data) {
			t.Fatalf("load %d: % x, want % x", i, got, x.data)
		}
	}
	l.end()
	if l.Loads != uint64(len(seen)) || l.InDictionary == 0 || l.InDictionary == l.Values || l.BugNetStored == 0 || l.PlainStored == 0 || l.BugNet < int64(l.Loads) {
		t.Errorf("%+v", l.LoadLog)
	}
}

// TestDictionary: what is loaded often stays, what is loaded once goes.
func TestDictionary(t *testing.T) {
	var d dictionary
	for range 10 {
		d.look(42)
	}
	for v := range uint64(1000) {
		d.look(1000 + v)
	}
	if d.look(42) < 0 {
		t.Error("a value that was loaded often is gone")
	}
	if d.look(1500) >= 0 {
		t.Error("a value that was loaded once is there")
	}
	if d.n != dictionarySize {
		t.Errorf("%d values", d.n)
	}
}

// TestBytesSet: sets of bytes across words.
func TestBytesSet(t *testing.T) {
	var s bytesSet
	for _, k := range []struct {
		off, n uint64
		isNew  bool
	}{{60, 8, true}, {60, 8, false}, {64, 4, false}, {59, 2, true}, {0, pageSize, true}, {1, 4000, false}} {
		if got := s.add(k.off, k.n); got != k.isNew {
			t.Errorf("%d bytes at %d: new %t", k.n, k.off, got)
		}
	}
}
