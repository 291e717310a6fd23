package mem

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestViews looks for all views of bytes of shared objects in maps of random regions
// that change again and again, and compares with a look at every region.
func TestViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pool := NewPool()
	defer pool.Close()
	s := NewSpace(pool, nil)
	defer s.Close()
	for step := range 400 {
		start := uint64(1+rng.IntN(2000)) * PageSize
		end := start + uint64(1+rng.IntN(30))*PageSize
		switch rng.IntN(5) {
		case 0:
			s.Unmap(start, end)
		case 1:
			s.Protect(start, end, uint8(rng.IntN(8)))
		default:
			r := Region{Start: start, End: end, Prot: ProtRead, Object: uint32(rng.IntN(3)), Offset: uint64(rng.IntN(100)) * PageSize}
			r.Shared = r.Object > 0 && rng.IntN(3) > 0
			s.Map(r)
		}
		for range 20 {
			object, off := uint32(1+rng.IntN(2)), uint64(rng.IntN(140*PageSize))
			var got, want []uint64
			s.aliases(object, off, func(a uint64) { got = append(got, a) })
			for _, r := range s.Regions() {
				if r.Shared && r.Object == object && off >= r.Offset && off-r.Offset < r.End-r.Start {
					want = append(want, r.Start+off-r.Offset)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("step %d: byte %#x of object %d is at %x, want %x", step, off, object, got, want)
			}
		}
	}
}

// TestManyObjects stores to pages of 10,000 shared objects and of private memory, and
// reads all of them: none is another's.
func TestManyObjects(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	s := NewSpace(pool, nil)
	defer s.Close()
	s.Begin()
	const n = 10_000
	for i := range uint64(n) {
		s.Map(Region{Start: 2 * i * PageSize, End: (2*i + 1) * PageSize, Prot: 3, Fresh: true})
		s.Map(Region{Start: (2*i + 1) * PageSize, End: (2*i + 2) * PageSize, Prot: 3, Shared: true, Zero: true, Object: uint32(i + 1)})
	}
	for i := range uint64(2 * n) {
		if f := s.Inject(i*PageSize, []byte{byte(i), byte(i >> 8)}); f.Kind != FaultNone {
			t.Fatalf("page %d: %+v", i, f)
		}
	}
	for i := range uint64(2 * n) {
		var b [2]byte
		if _, f := s.Peek(i*PageSize, b[:]); f.Kind != FaultNone || b != [2]byte{byte(i), byte(i >> 8)} {
			t.Fatalf("page %d holds %x: %+v", i, b, f)
		}
	}
}

// BenchmarkManyViews reads a byte of each of 65,000 shared views of one object, after a
// change of the map that has nothing to do with them.
func BenchmarkManyViews(b *testing.B) {
	pool := NewPool()
	defer pool.Close()
	s := NewSpace(pool, nil)
	defer s.Close()
	const n = 65_000
	for i := range uint64(n) {
		s.Map(Region{Start: (2 * i) * PageSize, End: (2*i + 1) * PageSize, Prot: ProtRead, Shared: true, Object: 1, Offset: i * PageSize})
	}
	for b.Loop() {
		for i := range uint64(n) {
			s.Protect(1<<40, 1<<40+PageSize, ProtRead)
			s.aliases(1, i*PageSize, func(uint64) {})
		}
	}
}
