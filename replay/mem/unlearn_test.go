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
