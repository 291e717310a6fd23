package mem

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// watchModel says by brute force which watches an access touches: byte by byte,
// where two addresses are one byte when their page has one key.
type watchModel struct {
	s  *Space
	ws []Watch
}

func (m *watchModel) byteKey(a uint64) uint64 {
	key, _ := m.s.Key(a)
	return key + a%PageSize
}

// hits returns what an access of n bytes at a must report. old and now are the
// bytes before and behind a store.
func (m *watchModel) hits(a uint64, n int, k Access, old, now []byte) []Hit {
	var out []Hit
	for _, w := range m.ws {
		if k == Store && w.Kind&WatchWrite == 0 || k == Load && w.Kind&WatchRead == 0 {
			continue
		}
		at := map[uint64]uint64{}
		for i := range w.Len {
			at[m.byteKey(w.Addr+i)] = w.Addr + i
		}
		h := Hit{Watch: w, Access: k}
		touched := false
		for i := range n {
			wa, ok := at[m.byteKey(a+uint64(i))]
			if !ok {
				continue
			}
			if !touched {
				touched, h.Addr = true, wa
			}
			h.Changed = h.Changed || k == Store && old[i] != now[i]
		}
		if touched {
			out = append(out, h)
		}
	}
	return out
}

// TestWatchesAgainstModel makes random accesses, some of them to one object by two
// addresses, beside and into random watches, and changes the watches and the map
// on the way.
func TestWatchesAgainstModel(t *testing.T) {
	s := newTestSpace(t)
	rng := rand.New(rand.NewPCG(5, 6))
	const base = 0x100000
	s.Map(Region{Start: base, End: base + 4*PageSize, Prot: ProtRead | ProtWrite, Fresh: true})
	for i := range uint64(2) {
		s.Map(Region{Start: base + (8+8*i)*PageSize, End: base + (11+8*i)*PageSize, Prot: ProtRead | ProtWrite, Shared: true, Object: 3, Offset: i * PageSize})
	}
	starts := []uint64{base, base + 8*PageSize, base + 16*PageSize}
	place := func() uint64 { return starts[rng.IntN(3)] + rng.Uint64N(3*PageSize-400) }
	var got []Hit
	s.OnHit = func(h Hit) { got = append(got, h) }
	m := &watchModel{s: s}
	var kept *Snapshot
	for i := range 6_000 {
		switch {
		case i%300 == 0:
			m.ws = nil
			for range rng.IntN(40) {
				m.ws = append(m.ws, Watch{Addr: place(), Len: 1 + rng.Uint64N([]uint64{1, 8, 64, 300}[rng.IntN(4)]), Kind: WatchKind(1 + rng.IntN(3))})
			}
			s.SetWatches(m.ws)
		case i%700 == 1: // another private page, then a shared one, at the same address
			r := Region{Start: base, End: base + PageSize, Prot: ProtRead | ProtWrite, Fresh: true}
			if rng.IntN(2) == 0 {
				r.Shared, r.Object = true, 3
			}
			s.Map(r)
		case i%500 == 2:
			if kept != nil {
				s.Restore(kept)
				kept.Release()
			}
			kept = s.Snapshot()
		}
		a, n := place(), 1+rng.IntN([]int{8, 8, 32, 300}[rng.IntN(4)])
		if len(m.ws) > 0 && rng.IntN(3) == 0 {
			a = m.ws[rng.IntN(len(m.ws))].Addr - uint64(rng.IntN(10))
		}
		old, now := make([]byte, n), make([]byte, n)
		if k, _ := s.Peek(a, old); k != n {
			continue
		}
		got = got[:0]
		var want []Hit
		if rng.IntN(2) == 0 {
			copy(now, old)
			for j := range now {
				if rng.IntN(8) == 0 {
					now[j] = byte(rng.Uint32())
				}
			}
			if f := s.Write(a, now); f.Kind != FaultNone {
				t.Fatal(f)
			}
			want = m.hits(a, n, Store, old, now)
		} else {
			if f := s.Read(a, now); f.Kind != FaultNone {
				t.Fatal(f)
			}
			if !bytes.Equal(now, old) {
				t.Fatalf("access %d: read %d bytes at %#x: % x, want % x", i, n, a, now, old)
			}
			want = m.hits(a, n, Load, nil, nil)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("access %d of %d bytes at %#x:\ngot  %+v\nwant %+v", i, n, a, got, want)
		}
		after := make([]byte, n)
		if s.Peek(a, after); !bytes.Equal(after, now) {
			t.Fatalf("access %d: %d bytes at %#x are % x, want % x", i, n, a, after, now)
		}
	}
	if kept != nil {
		kept.Release()
	}
}

// TestHugeWatch watches nearly all of the address space.
func TestHugeWatch(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x10000, End: 0x12000, Prot: ProtRead | ProtWrite, Fresh: true})
	hits := 0
	s.OnHit = func(Hit) { hits++ }
	s.SetWatches([]Watch{{Addr: 8, Len: ^uint64(0), Kind: WatchWrite}})
	s.Write(0x10ffc, make([]byte, 8))
	if hits != 1 {
		t.Errorf("%d hits, want 1", hits)
	}
}

// TestPartialPageOfWatches: a page with a watch is told with the bytes that are not watched for that kind of access, once it was
// accessed so, and not after the watch is gone.
func TestPartialPageOfWatches(t *testing.T) {
	t.Parallel()
	s, a := onePage(t)
	s.SetWatches([]Watch{{Addr: a + 62, Len: 4, Kind: WatchWrite}, {Addr: a + 200, Len: 1, Kind: WatchRead}})
	hits := 0
	s.OnHit = func(Hit) { hits++ }
	if page, _, _ := s.PartialPage(a, Store); page != nil {
		t.Error("a page is told that nobody has accessed")
	}
	var b [8]byte
	s.Read(a, b[:])
	if page, _, _ := s.PartialPage(a, Store); page != nil {
		t.Error("behind a load, a page is told for stores")
	}
	s.Write(a, b[:])
	s.Write(a+58, b[:]) // is a hit
	for _, c := range []struct {
		k       Access
		lo, end int
	}{{Load, 200, 201}, {Store, 62, 66}} {
		page, plain, unknown := s.PartialPage(a, c.k)
		if page == nil || unknown {
			t.Fatalf("access %d: told %t, unknown %t", c.k, page != nil, unknown)
		}
		for i := range PageSize {
			if plain.Has(i) == (i >= c.lo && i < c.end) {
				t.Errorf("access %d: byte %d plain %t", c.k, i, plain.Has(i))
			}
		}
	}
	flushed := false
	s.OnFlush = func(_, _ uint64) { flushed = true }
	s.SetWatches(nil)
	if page, _, _ := s.PartialPage(a, Store); page != nil || !flushed || hits != 1 {
		t.Errorf("without watches: told %t, flushed %t; %d hits, want 1", page != nil, flushed, hits)
	}
}
