//go:build linux && amd64

package record

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestLogMemory copies pieces of all sizes and releases them in any order: each stays what it was until then, and
// memory is used again.
func TestLogMemory(t *testing.T) {
	type piece struct {
		c    []byte
		from *logPortion
		fill byte
	}
	var m logMemory
	defer m.close()
	var all []piece
	rnd := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, smallLog - 1, smallLog, 1 << 20, logPortionSize - 1<<20, logPortionSize, logPortionSize + 1, smallLog + 3, 5}
	most := 0
	for i := range 2000 {
		n := sizes[rnd.IntN(len(sizes))]
		b := bytes.Repeat([]byte{byte(i)}, n)
		c, from := m.clone(b)
		if len(c) != n {
			t.Fatalf("%d bytes of %d", len(c), n)
		}
		if from != nil && cap(c) != n { // what is appended to one must not be another's
			t.Fatalf("%d bytes have room for %d", n, cap(c))
		}
		clear(b)
		all = append(all, piece{c, from, byte(i)})
		for len(all) > 12 {
			at := rnd.IntN(len(all))
			p := all[at]
			if !bytes.Equal(p.c, bytes.Repeat([]byte{p.fill}, len(p.c))) {
				t.Fatalf("a piece of %d bytes has changed", len(p.c))
			}
			m.release(p.from)
			all = append(all[:at], all[at+1:]...)
		}
		most = max(most, len(m.portions))
	}
	if most > 14 { // each of 13 pieces in another, and the one that is filled
		t.Errorf("%d portions were mapped for 13 pieces", most)
	}
	for _, p := range all {
		m.release(p.from)
	}
	m.trim()
	if len(m.portions) > 2 {
		t.Errorf("%d portions are mapped, and no piece is in use", len(m.portions))
	}
}

// TestDropLog: the memory of an interval is given up once, and a copy of the interval gives up none.
func TestDropLog(t *testing.T) {
	s := &session{}
	defer s.logMemory.close()
	l := &interval{}
	for range 9 {
		_, from := s.logMemory.clone(make([]byte, 1<<20))
		l.calls = append(l.calls, agentCalls{from: from})
	}
	s.dropLog(copiesOf([]*interval{l})[0])
	if len(s.logMemory.free) > 0 {
		t.Fatal("the copy has given up memory")
	}
	s.dropLog(l)
	s.dropLog(l)
	if len(s.logMemory.free) != 2 { // and one is being filled
		t.Errorf("%d portions are free", len(s.logMemory.free))
	}
}
