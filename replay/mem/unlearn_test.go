package mem

import (
	"math/rand/v2"
	"testing"
)

// TestUnlearn makes bytes unknown at random, beside stores, loads, probes and
// snapshots, through both addresses of a shared page as well, and compares with a
// model.
func TestUnlearn(t *testing.T) {
	s := newTestSpace(t)
	s.Map(Region{Start: 0x20000, End: 0x22000, Prot: ProtRead | ProtWrite, Fresh: true})
	s.Map(Region{Start: 0x30000, End: 0x31000, Prot: ProtRead | ProtWrite, Shared: true, Fresh: true, Object: 5, Zero: true})
	s.Map(Region{Start: 0x40000, End: 0x41000, Prot: ProtRead | ProtWrite, Shared: true, Fresh: true, Object: 5, Zero: true})
	type state struct {
		content, unknown [3 * PageSize]byte
	}
	var now state
	place := func(r *rand.Rand) (a uint64, o int) {
		o = r.IntN(100)
		switch r.IntN(4) {
		case 0:
			return 0x20000 + uint64(o), o
		case 1:
			o += PageSize - 50 // across the boundary
			return 0x20000 + uint64(o), o
		case 2:
			return 0x30000 + uint64(o), 2*PageSize + o
		}
		return 0x40000 + uint64(o), 2*PageSize + o
	}
	r := rand.New(rand.NewPCG(1, 2))
	var snap *Snapshot
	var then state
	for i := range 200_000 {
		a, o := place(r)
		n := 1 + r.IntN(32)
		switch r.IntN(8) {
		case 0:
			s.Unlearn(a, n)
			for k := range n {
				now.unknown[o+k] = 1
			}
		case 1, 2:
			b := make([]byte, n)
			for k := range b {
				b[k] = byte(r.Uint32())
				now.content[o+k], now.unknown[o+k] = b[k], 0
			}
			if f := s.Write(a, b); f.Kind != FaultNone {
				t.Fatal(f)
			}
		case 3:
			if r.IntN(100) > 0 {
				continue
			}
			if snap != nil && r.IntN(2) == 0 {
				s.Restore(snap)
				now = then
				continue
			}
			if snap != nil {
				snap.Release()
			}
			snap, then = s.Snapshot(), now
		default:
			want := Fault{}
			for k := n - 1; k >= 0; k-- {
				if now.unknown[o+k] != 0 {
					want = Fault{FaultNotCaptured, Load, a + uint64(k)}
				}
			}
			b := make([]byte, n)
			if f := s.Probe(a, n, Load); f != want {
				t.Fatalf("step %d: probe of %d bytes at %#x: %+v, want %+v", i, n, a, f, want)
			}
			if f := s.Read(a, b); f != want {
				t.Fatalf("step %d: load of %d bytes at %#x: %+v, want %+v", i, n, a, f, want)
			}
			if want.Kind == FaultNone && string(b) != string(now.content[o:o+n]) {
				t.Fatalf("step %d: %d bytes at %#x are % x, want % x", i, n, a, b, now.content[o:o+n])
			}
			if b, known := s.RawByte(a); b != now.content[o] || known != (now.unknown[o] == 0) {
				t.Fatalf("step %d: byte %#x is %#x, known %t", i, a, b, known)
			}
		}
	}
	if snap != nil {
		snap.Release()
	}
}

// onePage returns a space with one page, at a, that can be written.
func onePage(t *testing.T) (s *Space, a uint64) {
	p := NewPool()
	t.Cleanup(func() { _ = p.Close() })
	s, a = NewSpace(p, zeros{}), 0x10000
	t.Cleanup(s.Close)
	s.Map(Region{Start: a, End: a + PageSize, Prot: ProtRead | ProtWrite})
	return s, a
}

// TestPartialPage: a page is told with its mask once it was accessed, for stores once it was stored to, and no more when
// all of it is known or a watch stands on it.
func TestPartialPage(t *testing.T) {
	t.Parallel()
	s, a := onePage(t)
	flushed := 0
	s.OnFlush = func(_, _ uint64) { flushed++ }
	told := func(k Access) bool {
		page, mask, unknown := s.PartialPage(a, k)
		if page != nil && !unknown {
			t.Error("unknown bytes are not told")
		}
		if page != nil && (page[8] != 7 || mask.Has(0) || !mask.Has(8)) {
			t.Errorf("byte 8 is %d; byte 0 known %t, byte 8 known %t", page[8], mask.Has(0), mask.Has(8))
		}
		return page != nil
	}
	s.Write(a+8, []byte{7})
	if told(Load) || told(Store) {
		t.Error("a page that is known is told")
	}
	s.Unlearn(a, 4)
	var b [1]byte
	s.Read(a+8, b[:])
	if !told(Load) || told(Store) {
		t.Error("behind a load, it must be told for loads alone")
	}
	s.Write(a+8, b[:])
	if !told(Load) || !told(Store) {
		t.Error("behind a store, it must be told")
	}
	flushed = 0
	s.SetWatches([]Watch{{Addr: a + 100, Len: 1, Kind: WatchAccess}})
	s.Read(a+8, b[:])
	if told(Load) || flushed == 0 {
		t.Error("a page with a watch and unknown bytes is told, or was not flushed")
	}
	s.SetWatches(nil)
	s.Read(a+8, b[:])
	flushed = 0
	s.Write(a, make([]byte, 4))
	if told(Load) || flushed == 0 {
		t.Error("a page that is known by now is told, or was not flushed")
	}
}
